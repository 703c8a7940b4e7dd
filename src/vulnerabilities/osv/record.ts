// Reads a record of the Open Source Vulnerability format (OSV schema 1.x,
// https://ossf.github.io/osv-schema/), as far as advisories are made from it.
import { invalidArgument } from "../../kernel/errors.js";
import { at, type JsonLocation, list, text, textAt, timeAt } from "./json-location.js";

/** A way of scoring and its score, as OSV names them. */
export interface OsvSeverity {
  readonly type: string;
  readonly score: string;
}

/** What a record says of one package, over all of its entries for it. */
export interface OsvPackage {
  readonly ecosystem: string;
  readonly name: string;
  readonly severities: readonly OsvSeverity[];
  /** The versions that an affected range ends with, each once, in the order of the record. */
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

/** The largest record that is read, in bytes. */
export const MAX_RECORD_BYTES = 16 * 1024 * 1024;
const MAX_ENTRIES = 10_000;
const RANGE_ENDS = ["introduced", "fixed", "last_affected", "limit"];

/**
 * Parses a record.
 *
 * @throws ApiError INVALID_ARGUMENT that names the field and the rule it breaks.
 */
export function parseOsv(bytes: Uint8Array): OsvRecord {
  const record = at(jsonOf(bytes), "record");
  const version = text(record, "schema_version");
  if (version !== undefined && !/^1\.\d+(?:\.|$)/.test(version)) {
    throw invalidArgument({ field: "schema_version", description: "schema_version must be 1.x" });
  }
  const id = textAt(record, "id");
  const modifiedMs = timeAt(record, "modified");
  if (modifiedMs === undefined) throw invalidArgument({ field: "modified", description: "modified is required" });
  const severities = severitiesAt(record);
  return {
    id,
    modifiedMs,
    publishedMs: timeAt(record, "published"),
    withdrawnMs: timeAt(record, "withdrawn"),
    aliases: list(record, "aliases", MAX_ENTRIES).map(({ field, value }) =>
      textAt({ field, value: { "": value } }, ""),
    ),
    packages: packagesAt(record, severities),
  };
}

function jsonOf(bytes: Uint8Array): unknown {
  const refuse = (rule: string) => invalidArgument({ field: "record", description: `record ${rule}` });
  if (bytes.length > MAX_RECORD_BYTES) throw refuse(`must be at most ${MAX_RECORD_BYTES} bytes`);
  let json: string;
  try {
    json = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refuse("must be UTF-8");
  }
  try {
    return JSON.parse(json);
  } catch {
    throw refuse("must be JSON");
  }
}

function packagesAt(record: JsonLocation, ofRecord: readonly OsvSeverity[]): OsvPackage[] {
  const packages = new Map<
    string,
    { ecosystem: string; name: string; severities: OsvSeverity[]; fixed: Set<string> }
  >();
  for (const entry of list(record, "affected", MAX_ENTRIES)) {
    const affected = at(entry.value, entry.field);
    const fixed = fixedAt(affected);
    const severities = severitiesAt(affected);
    const said = affected.value.package;
    // Records about source code alone name a repository instead.
    if (said === undefined || said === null) continue;
    const named = at(said, `${entry.field}.package`);
    const [ecosystem, name] = [textAt(named, "ecosystem"), textAt(named, "name")];
    const key = JSON.stringify([ecosystem, name]);
    const known = packages.get(key) ?? { ecosystem, name, severities: [], fixed: new Set<string>() };
    known.severities.push(...severities);
    for (const version of fixed) known.fixed.add(version);
    packages.set(key, known);
  }
  return [...packages.values()].map(({ severities, fixed, ...named }) => ({
    ...named,
    severities: distinct(severities.length > 0 ? severities : ofRecord),
    fixed: [...fixed],
  }));
}

function fixedAt(affected: JsonLocation): string[] {
  return list(affected, "ranges", MAX_ENTRIES).flatMap((range) => {
    const { field, value } = at(range.value, range.field);
    const type = textAt({ field, value }, "type");
    return list({ field, value }, "events", MAX_ENTRIES).flatMap((one) => {
      const event = at(one.value, one.field);
      const ends = RANGE_ENDS.filter((end) => event.value[end] !== undefined);
      const [end = ""] = ends;
      if (ends.length !== 1) {
        const rule = `${event.field} must have one of ${RANGE_ENDS.join(", ")}`;
        throw invalidArgument({ field: event.field, description: rule });
      }
      const version = textAt(event, end);
      // Those of a repository are commits, not versions.
      return end === "fixed" && type !== "GIT" ? [version] : [];
    });
  });
}

function severitiesAt(place: JsonLocation): OsvSeverity[] {
  return list(place, "severity", MAX_ENTRIES).map((one) => {
    const severity = at(one.value, one.field);
    return { type: textAt(severity, "type"), score: textAt(severity, "score") };
  });
}

function distinct(severities: readonly OsvSeverity[]): OsvSeverity[] {
  return [...new Map(severities.map((one) => [`${one.type} ${one.score}`, one])).values()];
}
