// The report of a comparison for people, without the differences that are intended.
import type { JsonObject } from "@bufbuild/protobuf";
import type { WireRequest } from "./exchange.js";
import type { CompareReport, Row } from "./run.js";

/** A difference that is intended: each pattern that is there must match. */
export interface Expectation {
  readonly label?: RegExp;
  readonly path?: RegExp;
  readonly a?: RegExp;
  readonly b?: RegExp;
  readonly reason: string;
}

const PATTERNS = ["label", "path", "a", "b"] as const;
const SHOWN_CHARACTERS = 1_500;

/**
 * Reads the differences that are intended.
 *
 * @throws TypeError for an entry without a reason or without a pattern
 */
export function readExpectations(json: string): readonly Expectation[] {
  return (JSON.parse(json) as Record<string, string>[]).map((entry) => {
    const patterns = PATTERNS.flatMap((name) => (entry[name] === undefined ? [] : [[name, new RegExp(entry[name])]]));
    if (entry.reason === undefined || patterns.length === 0)
      throw new TypeError(
        `an expected difference needs a reason and one of ${PATTERNS.join(", ")}: ${JSON.stringify(entry)}`,
      );
    return { ...(Object.fromEntries(patterns) as Omit<Expectation, "reason">), reason: entry.reason };
  });
}

function isExpected({ label, difference: { path, a, b } }: Row, expectation: Expectation): boolean {
  const texts = { label, path, a, b };
  return PATTERNS.every((name) => expectation[name]?.test(texts[name]) ?? true);
}

/** Formats a report; `differences` is how many rows and faults are left. */
export function formatReport(
  { requests, seconds, rows, counts, skipped, faults }: CompareReport,
  expectations: readonly Expectation[],
): { readonly text: string; readonly differences: number } {
  const expected = expectations.map((one) => ({ one, rows: rows.filter((row) => isExpected(row, one)) }));
  const left = rows.filter((row) => !expected.some((entry) => entry.rows.includes(row)));
  const lines = [
    `${requests} requests in ${seconds.toFixed(0)} s, of which ${skipped.length} could not be made the same for both`,
  ];
  for (const [label, outcomes] of Object.entries(counts).sort()) {
    const all = Object.entries(outcomes).sort((x, y) => y[1] - x[1]);
    lines.push(`  ${label}: ${all.map(([outcome, count]) => `${outcome} × ${count}`).join(", ")}`);
  }
  for (const { one, rows: found } of expected) {
    const count = countOf(found);
    lines.push(`expected × ${count}: ${one.reason}${count === 0 ? " (not found: take it out of the list)" : ""}`);
  }
  const groups = groupByDifference(left);
  for (const group of groups) lines.push("", ...formatGroup(group));
  for (const fault of faults) lines.push("", `fault: ${fault}`);
  lines.push("", `differences: ${groups.length}, faults: ${faults.length}`);
  return { text: lines.join("\n"), differences: groups.length + faults.length };
}

// The same difference over several protocols is one.
function groupByDifference(rows: readonly Row[]): readonly (readonly Row[])[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = JSON.stringify(row.difference);
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()].sort((a, b) => countOf(b) - countOf(a));
}

function countOf(rows: readonly Row[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0);
}

function formatGroup(rows: readonly Row[]): string[] {
  const [first] = rows;
  if (first === undefined) return [];
  const { difference, example } = first;
  return [
    `× ${countOf(rows)}: ${difference.path}`,
    `  this:  ${difference.a}`,
    `  other: ${difference.b}`,
    `  over ${rows.map(({ label, count }) => `${label} × ${count}`).join("; ")}`,
    `  for example ${example.where}: ${formatRequest(example.request)}`,
    `    this:  ${shorten(example.a)}`,
    `    other: ${shorten(example.b)}`,
  ];
}

function formatRequest({ http, method, path, fields, block, body, raw }: WireRequest): string {
  if (raw !== undefined) return JSON.stringify(hideTokens(raw.toString("latin1"))).slice(0, SHOWN_CHARACTERS);
  const all = (block ?? fields).map(([name, value]) => `${name}: ${hideTokens(value)}`).join("; ");
  const sent = body === undefined ? "" : ` ${JSON.stringify(body.subarray(0, 300).toString("latin1"))}`;
  return `HTTP/${http} ${method} ${path.slice(0, 500)} (${all.slice(0, 600)})${sent}`;
}

function hideTokens(text: string): string {
  return text.replace(/eyJ[\w-]{20,}\.[\w-]+\.[\w-]+/g, "TOKEN");
}

function shorten(response: JsonObject): string {
  const text = hideTokens(JSON.stringify(response));
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}
