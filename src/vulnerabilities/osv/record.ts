// Parses the parts of a record of the Open Source Vulnerability format that advisories are made from (OSV schema 1.x,
// https://ossf.github.io/osv-schema/).
import { invalidArgument } from "../../kernel/errors.js";
import { isPrintable } from "../../pipeline/resource/rules.js";

/** A scoring system and its score, as OSV names them. */
export interface OsvSeverity {
  readonly type: string;
  readonly score: string;
}

/** One package of a record, joined from all of its entries. */
export interface OsvPackage {
  readonly ecosystem: string;
  readonly name: string;
  readonly severities: readonly OsvSeverity[];
  /** The distinct versions that end an affected range, in the order of the record. */
  readonly fixed: readonly string[];
}

/** A record; times in epoch milliseconds. */
export interface OsvRecord {
  readonly id: string;
  readonly modifiedMs: number;
  readonly publishedMs: number | undefined;
  readonly withdrawnMs: number | undefined;
  readonly aliases: readonly string[];
  readonly packages: readonly OsvPackage[];
}

export const MAX_RECORD_BYTES = 16 * 1024 * 1024;
const MAX_TEXT = 1_000;
// RFC 3339 in UTC, as OSV requires.
const TIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?Z$/;
const MAX_ENTRIES = 10_000;
const RANGE_ENDS = ["introduced", "fixed", "last_affected", "limit"];

/** An object in the JSON, and its name in errors. */
interface JsonLocation {
  readonly field: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/**
 * Parses a record.
 *
 * @throws ApiError INVALID_ARGUMENT that names the field and the rule it breaks.
 */
export function parseOsv(bytes: Uint8Array): OsvRecord {
  const record = requireObject(parseJson(bytes), "record");
  const version = readText(record, "schema_version");
  if (version !== undefined && !/^1\.\d+(?:\.|$)/.test(version)) {
    throw invalidArgument({ field: "schema_version", rule: "must be 1.x" });
  }
  const id = requireText(record, "id");
  const modifiedMs = readTime(record, "modified");
  if (modifiedMs === undefined) throw invalidArgument({ field: "modified", rule: "is required" });
  const severities = readSeverities(record);
  return {
    id,
    modifiedMs,
    publishedMs: readTime(record, "published"),
    withdrawnMs: readTime(record, "withdrawn"),
    aliases: readList(record, "aliases", MAX_ENTRIES).map(({ field, value }) =>
      requireText({ field, value: { "": value } }, ""),
    ),
    packages: readPackages(record, severities),
  };
}

function parseJson(bytes: Uint8Array): unknown {
  const recordError = (rule: string) => invalidArgument({ field: "record", rule: `${rule}` });
  if (bytes.length > MAX_RECORD_BYTES) throw recordError(`must be at most ${MAX_RECORD_BYTES} bytes`);
  let json: string;
  try {
    json = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw recordError("must be UTF-8");
  }
  try {
    return JSON.parse(json);
  } catch {
    throw recordError("must be JSON");
  }
}

function readPackages(record: JsonLocation, ofRecord: readonly OsvSeverity[]): OsvPackage[] {
  const packages = new Map<
    string,
    { ecosystem: string; name: string; severities: OsvSeverity[]; fixed: Set<string> }
  >();
  for (const entry of readList(record, "affected", MAX_ENTRIES)) {
    const affected = requireObject(entry.value, entry.field);
    const fixed = readFixedVersions(affected);
    const severities = readSeverities(affected);
    const packageValue = affected.value.package;
    // Records about source code alone name a repository instead.
    if (packageValue === undefined || packageValue === null) continue;
    const named = requireObject(packageValue, `${entry.field}.package`);
    const [ecosystem, name] = [requireText(named, "ecosystem"), requireText(named, "name")];
    const key = JSON.stringify([ecosystem, name]);
    const known = packages.get(key) ?? { ecosystem, name, severities: [], fixed: new Set<string>() };
    known.severities.push(...severities);
    for (const version of fixed) known.fixed.add(version);
    packages.set(key, known);
  }
  return [...packages.values()].map(({ severities, fixed, ...named }) => ({
    ...named,
    severities: removeDuplicates(severities.length > 0 ? severities : ofRecord),
    fixed: [...fixed],
  }));
}

function readFixedVersions(affected: JsonLocation): string[] {
  return readList(affected, "ranges", MAX_ENTRIES).flatMap((range) => {
    const { field, value } = requireObject(range.value, range.field);
    const type = requireText({ field, value }, "type");
    return readList({ field, value }, "events", MAX_ENTRIES).flatMap((one) => {
      const event = requireObject(one.value, one.field);
      const ends = RANGE_ENDS.filter((end) => event.value[end] !== undefined);
      const [end = ""] = ends;
      if (ends.length !== 1) {
        throw fieldError(event.field, `must have one of ${RANGE_ENDS.join(", ")}`);
      }
      const version = requireText(event, end);
      // The events of a GIT range are commits, not versions.
      return end === "fixed" && type !== "GIT" ? [version] : [];
    });
  });
}

function readSeverities(location: JsonLocation): OsvSeverity[] {
  return readList(location, "severity", MAX_ENTRIES).map((one) => {
    const severity = requireObject(one.value, one.field);
    return { type: requireText(severity, "type"), score: requireText(severity, "score") };
  });
}

function removeDuplicates(severities: readonly OsvSeverity[]): OsvSeverity[] {
  return [...new Map(severities.map((one) => [`${one.type} ${one.score}`, one])).values()];
}

// Throws INVALID_ARGUMENT for a value that is not an object.
function requireObject(value: unknown, field: string): JsonLocation {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { field, value: value as never };
  throw fieldError(field, "must be an object");
}

// The elements of a list with their names for errors; none where the list is absent or null.
function readList(
  location: JsonLocation,
  name: string,
  max: number,
): { readonly field: string; readonly value: unknown }[] {
  const field = formatPath(location, name);
  const value = location.value[name] ?? [];
  if (!Array.isArray(value)) throw fieldError(field, "must be an array");
  if (value.length > max) throw fieldError(field, `must be at most ${max}`);
  return value.map((element, i) => ({ field: `${field}[${i}]`, value: element }));
}

// An optional text: one printable line of at most 1,000 characters.
function readText(location: JsonLocation, name: string): string | undefined {
  const value = location.value[name];
  const field = formatPath(location, name);
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw fieldError(field, "must be a string");
  if (value.length > MAX_TEXT) throw fieldError(field, `must be at most ${MAX_TEXT} characters`);
  if (!isPrintable(value)) throw fieldError(field, "must not contain control characters");
  return value;
}

// A required text that is not empty.
function requireText(location: JsonLocation, name: string): string {
  const value = readText(location, name);
  if (value === undefined || value === "") throw fieldError(formatPath(location, name), "is required");
  return value;
}

// An optional time, in epoch milliseconds.
function readTime(location: JsonLocation, name: string): number | undefined {
  if (location.value[name] === null) return undefined;
  const value = readText(location, name);
  if (value === undefined) return undefined;
  const [, year, month, day] = TIME.exec(value) ?? [];
  const timeMs = year === undefined || year === "0000" ? Number.NaN : Date.parse(value);
  // Date.parse accepts February 30th as March 1st or 2nd.
  if (Number.isNaN(timeMs) || new Date(Date.parse(`${year}-${month}-${day}`)).getUTCDate() !== Number(day)) {
    throw fieldError(formatPath(location, name), "must be a time such as 2024-01-31T12:00:00Z");
  }
  return timeMs;
}

function formatPath({ field }: JsonLocation, name: string): string {
  if (name === "") return field;
  return field === "record" ? name : `${field}.${name}`;
}

function fieldError(field: string, rule: string) {
  return invalidArgument({ field, rule });
}
