import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const UNITS = [
  ["year", 365 * 24 * 3600],
  ["month", 30 * 24 * 3600],
  ["day", 24 * 3600],
  ["hour", 3600],
  ["minute", 60],
] as const;

interface TimeProps {
  readonly at: Timestamp | undefined;
  /** What stands in place of a time that is not set. */
  readonly absent?: string;
  /** Whether it is shown by its distance from now. */
  readonly relative?: boolean;
}

/** A time in the viewer's zone, with UTC on hover. */
export function Time({ at, absent = "never", relative = false }: TimeProps) {
  if (at === undefined) return <span className="soft">{absent}</span>;
  const date = timestampDate(at);
  const utc = date.toISOString();
  const local = LOCAL.format(date);
  return (
    <time dateTime={utc} title={relative ? `${local} (${utc})` : utc}>
      {relative ? formatDistance(date) : local}
    </time>
  );
}

/** Formats a time by its distance from now, such as "in 3 days". */
export function formatDistance(date: Date): string {
  const seconds = (date.getTime() - Date.now()) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return RELATIVE.format(Math.round(seconds / size), unit);
  }
  return seconds < 0 ? "just now" : "in less than a minute";
}
