// Checks a SQLite database: the integrity of the file, and whether the order tables and counters match the
// rows. The expected entries are computed from the rows, without the code that maintains them.
import { getTableColumns, getTableName } from "drizzle-orm";
import { advisoryIndex } from "../../src/store/advisory-store.js";
import { groupIndex } from "../../src/store/group-store.js";
import { identityIndex } from "../../src/store/identity-store.js";
import { repoIndex } from "../../src/store/registry-store.js";
import type { IndexedRow, ResourceIndex } from "../../src/store/resource-index.js";
import { subscriptionIndex } from "../../src/store/resource-index.js";
import { roleBindingIndex, roleIndex } from "../../src/store/role-store.js";
import * as schema from "../../src/store/schema-sqlite.js";
import type { SqliteDatabase } from "../../src/store/sqlite-driver.js";
import type { Tables } from "../../src/store/tables.js";
import { tagIndex, usualTagIndex } from "../../src/store/tag-store.js";

const kinds: readonly ResourceIndex[] = [
  groupIndex,
  identityIndex,
  roleIndex,
  roleBindingIndex,
  repoIndex,
  tagIndex,
  usualTagIndex,
  advisoryIndex,
  subscriptionIndex,
];
const tables = schema as unknown as Tables;
/** How many differences of one sort are printed; the rest are counted. */
const MAX_PRINTED = 5;

interface Expected {
  readonly text_order: Set<string>;
  readonly time_order: Set<string>;
  readonly counters: Map<string, number>;
}

/** The inconsistencies of a database; empty when there are none. */
export function inconsistenciesIn(db: SqliteDatabase): string[] {
  const integrity = db.pragma("integrity_check", { simple: true });
  const orphans = db.pragma("foreign_key_check") as object[];
  const expected: Expected = { text_order: new Set(), time_order: new Set(), counters: new Map() };
  for (const kind of kinds) addExpected(db, kind, expected);
  return [
    ...(integrity === "ok" ? [] : [`integrity_check: ${integrity}`]),
    ...orphans.map((orphan) => `foreign_key_check: ${JSON.stringify(orphan)}`),
    ...differences("text_order", expected.text_order, readEntries(db, "text_order")),
    ...differences("time_order", expected.time_order, readEntries(db, "time_order")),
    ...differences("counters", formatCounters(expected.counters), readCounters(db)),
  ];
}

function addExpected(db: SqliteDatabase, kind: ResourceIndex, expected: Expected): void {
  const table = kind.table(tables);
  const columns = getTableColumns(table) as Record<string, { name: string } | undefined>;
  const rows = db.prepare(`SELECT * FROM ${getTableName(table)}`).all() as Record<string, unknown>[];
  for (const row of rows) {
    // The columns that the predicate reads have the same names in SQL.
    if (kind.where?.includes(row as unknown as IndexedRow) === false) continue;
    const segments = String(row.uid).split("/");
    const lineage = segments.map((_, i) => segments.slice(0, i + 1).join("/"));
    const scopes = kind.includesSelf ? lineage : lineage.slice(0, -1);
    if (scopes.length === 0) continue;
    for (const { list, type, column } of Object.values(kind.sorts)) {
      const key = row[columns[column]?.name ?? ""];
      const order = type === "text" ? expected.text_order : expected.time_order;
      for (const scope of scopes) order.add(JSON.stringify([list, scope, key, row.uid]));
    }
    const counters = scopes.map((scope) => [kind.counter, scope] as const);
    const parent = lineage.at(-2);
    if (parent !== undefined) counters.push([kind.counter + 1, parent]);
    for (const counter of counters) {
      const name = JSON.stringify(counter);
      expected.counters.set(name, (expected.counters.get(name) ?? 0) + 1);
    }
  }
}

function readEntries(db: SqliteDatabase, table: string): Set<string> {
  const rows = db.prepare(`SELECT list, scope, "key", uid FROM ${table}`).raw().all();
  return new Set(rows.map((row) => JSON.stringify(row)));
}

function readCounters(db: SqliteDatabase): Set<string> {
  const rows = db.prepare("SELECT counter, scope, sum(n) FROM counters GROUP BY counter, scope HAVING sum(n) <> 0");
  return new Set(
    (rows.raw().all() as unknown[][]).map(([counter, scope, n]) => `${JSON.stringify([counter, scope])} ${n}`),
  );
}

function formatCounters(counters: ReadonlyMap<string, number>): Set<string> {
  return new Set([...counters].map(([name, n]) => `${name} ${n}`));
}

function differences(name: string, expected: ReadonlySet<string>, found: ReadonlySet<string>): string[] {
  const missing = [...expected].filter((one) => !found.has(one));
  const surplus = [...found].filter((one) => !expected.has(one));
  const format = (what: string, all: readonly string[]) =>
    all.length === 0 ? [] : [`${name}: ${all.length} ${what}, such as ${all.slice(0, MAX_PRINTED).join("; ")}`];
  return [...format("missing", missing), ...format("too many", surplus)];
}
