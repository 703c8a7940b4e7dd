// JSON text of scalars and of well-known types that are written like scalars.

const SHORT = 80;

/** A string as JSON. Short ones that need no escape, which is most, are not handed to JSON.stringify. */
export function quote(text: string): string {
  if (text.length > SHORT) return JSON.stringify(text);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 32 || code === 34 || code === 92 || (code >= 0xd800 && code <= 0xdfff)) return JSON.stringify(text);
  }
  return `"${text}"`;
}

/** A float or double as JSON; what JSON has no number for is a string. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? '"NaN"' : value > 0 ? '"Infinity"' : '"-Infinity"';
  return Object.is(value, -0) ? "-0" : String(value);
}

/** Bytes as JSON: padded base64 of the standard alphabet. */
export function formatBytes(bytes: Uint8Array): string {
  return `"${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")}"`;
}

const DAY_MS = 86_400_000;
const MIN_SECONDS = -62_135_596_800;
const MAX_SECONDS = 253_402_300_799;
const TWO = Array.from({ length: 100 }, (_, i) => String(i).padStart(2, "0"));
/** How many days are remembered as text: a decade of them. */
const MAX_DAYS = 4096;
const dayTexts = new Map<number, string>();

/**
 * A google.protobuf.Timestamp as JSON: RFC 3339 in UTC with exactly three fraction digits, truncated
 * rather than rounded.
 *
 * @param seconds since 1970, in whole seconds.
 * @param nanos fraction of the second in nanoseconds, never negative.
 * @throws RangeError outside the years 1 to 9999.
 */
export function formatTimestamp(seconds: bigint | number | string, nanos: number): string {
  const whole = Number(seconds);
  if (!(whole >= MIN_SECONDS && whole <= MAX_SECONDS)) throw new RangeError(`no timestamp: ${whole} s`);
  const ms = whole * 1000 + Math.floor(nanos / 1_000_000);
  const day = Math.floor(ms / DAY_MS);
  const rest = ms - day * DAY_MS;
  const hour = TWO[Math.floor(rest / 3_600_000)];
  const minute = TWO[Math.floor(rest / 60_000) % 60];
  const second = TWO[Math.floor(rest / 1000) % 60];
  const milli = rest % 1000;
  const fraction = milli < 10 ? `00${milli}` : milli < 100 ? `0${milli}` : milli;
  return `${dayTexts.get(day) ?? newDayText(day)}${hour}:${minute}:${second}.${fraction}Z"`;
}

// Working a date out costs as much as writing the rest of a small answer.
function newDayText(day: number): string {
  if (dayTexts.size === MAX_DAYS) dayTexts.clear();
  const text = `"${new Date(day * DAY_MS).toISOString().slice(0, 11)}`;
  dayTexts.set(day, text);
  return text;
}

/**
 * A google.protobuf.Duration as JSON: seconds with 0, 3, 6 or 9 fraction digits and the suffix `s`.
 *
 * @param seconds whole seconds.
 * @param nanos fraction in nanoseconds, of the same sign as the seconds.
 */
export function formatDuration(seconds: bigint | number | string, nanos: number): string {
  const whole = BigInt(seconds);
  const sign = whole < 0n || nanos < 0 ? "-" : "";
  let fraction = "";
  if (nanos !== 0) {
    fraction = String(Math.abs(nanos)).padStart(9, "0");
    if (fraction.endsWith("000000")) fraction = fraction.slice(0, 3);
    else if (fraction.endsWith("000")) fraction = fraction.slice(0, 6);
    fraction = `.${fraction}`;
  }
  return `"${sign}${whole < 0n ? -whole : whole}${fraction}s"`;
}

/** The paths of a google.protobuf.FieldMask as JSON: camelCase, separated by commas. */
export function formatFieldMask(paths: readonly string[]): string {
  return quote(
    paths.map((path) => path.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())).join(","),
  );
}
