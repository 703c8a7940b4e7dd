// Sources of regular expressions. A setting is parsed and its JSON schema is written with the same one, so that a value is
// accepted by both or by neither.

/**
 * A pattern of the whole numbers from `min` to `max`, both at least 0, with as many zeros before them as anybody likes.
 *
 * The range is cut where the number of equal digits changes: 5 to 120 is 5-9, 10-99, 100-119 and 120.
 */
export function numberPattern(min: number, max: number): string {
  return `0*(?:${digitPatterns(min, max).join("|")})`;
}

function digitPatterns(min: number, max: number): string[] {
  const ends = new Set([max]);
  for (let unit = 10, end: number; ; unit *= 10) {
    end = Math.floor(min / unit) * unit + unit - 1;
    if (end > max) break;
    ends.add(end);
  }
  for (let unit = 10, end: number; ; unit *= 10) {
    end = Math.floor((max + 1) / unit) * unit - 1;
    if (end < min) break;
    ends.add(end);
  }
  let start = min;
  return [...ends]
    .sort((a, b) => a - b)
    .map((end) => {
      const [first, last] = [String(start), String(end)];
      start = end + 1;
      const digits = [...first].map((digit, i) => (digit === last[i] ? digit : `[${digit}-${last[i]}]`)).join("");
      return digits.replace(/(?:\[0-9\]){2,}/, (run) => `[0-9]{${run.length / "[0-9]".length}}`);
    });
}

/**
 * A pattern of numbers with a unit, between two others.
 *
 * @param units the factor of each unit
 */
export function measurePattern(units: Readonly<Record<string, number>>, min: number, max: number): string {
  return Object.entries(units)
    .map(([unit, factor]) => ({ unit, least: Math.ceil(min / factor), most: Math.floor(max / factor) }))
    .filter(({ least, most }) => least <= most)
    .map(({ unit, least, most }) => `${numberPattern(least, most)}${unit}`)
    .join("|");
}

/** A pattern of a list whose items are separated by commas, with blanks around them. */
export function listPattern(item: string, most?: number): string {
  const padded = `\\s*(?:${item})\\s*`;
  return `${padded}(?:,${padded})${most === undefined ? "*" : `{0,${most - 1}}`}`;
}

export const PORT = numberPattern(0, 65_535);

const OCTET = `(?:${digitPatterns(0, 255).join("|")})`;
const IPV4 = `(?:${OCTET}\\.){3}${OCTET}`;

/** RFC 3986, section 3.2.2, without zones. */
export const IPV6 = ipv6Pattern();

function ipv6Pattern(): string {
  const group = "[0-9A-Fa-f]{1,4}";
  const end = `(?:${group}:${group}|${IPV4})`;
  const before = (most: number) => `(?:(?:${group}:){0,${most}}${group})?`;
  return [
    `(?:${group}:){6}${end}`,
    `::(?:${group}:){5}${end}`,
    ...[0, 1, 2, 3, 4].map((most) => `${before(most)}::(?:${group}:){${4 - most}}${end}`),
    `${before(5)}::${group}`,
    `${before(6)}::`,
  ].join("|");
}

/** An IP address or a network, such as `10.0.0.0/8`. */
export const NETWORK = `${IPV4}(?:/${numberPattern(0, 32)})?|(?:${IPV6})(?:/${numberPattern(0, 128)})?`;

/**
 * An origin with an optional slash at its end. URLs take a host for an IPv4 address when its last label is a number, also a
 * hexadecimal one, so only the usual form of an address is accepted there. Whether a label in another script than ASCII is
 * valid takes the tables of IDNA.
 */
export const ORIGIN = `${originPattern()}/?`;

const PATH = "(?:/[A-Za-z0-9._~!$&'()*+;:@%/-]*)?";

/** An issuer: an http or https URL without query, comma and equals sign. */
export const ISSUER = `${originPattern()}${PATH}`;

/** An http or https URL without comma, user and fragment. */
export const PLAIN_URL = `${ISSUER}(?:\\?[A-Za-z0-9._~!$&'()*+;:@%/?=-]*)?`;

function originPattern(): string {
  // Letters, digits, `-` and `_`, and everything beyond ASCII but blanks.
  const letter = "[^\\s\\x00-,./:-@\\[-\\^`{-\\x7f]";
  const letterButX = letter.replace("{-", "Xx{-").replace("/:-@", "/-@");
  const lastLabel = `(?:[0-9]*${letterButX}|(?:0[0-9]+|[1-9][0-9]*)?[Xx])${letter}*`;
  const name = `(?:${letter}+\\.)*${lastLabel}\\.?`;
  return `[Hh][Tt][Tt][Pp][Ss]?://(?:${name}|${IPV4}|\\[(?:${IPV6})\\])(?::${PORT})?`;
}
