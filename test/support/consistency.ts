// Checks a database: the integrity of a SQLite file, and whether the index of lists matches the
// rows. The expected entries are computed from the rows, without the code that maintains them.
import { getTableColumns, getTableName } from "drizzle-orm";
import type { IndexedRow, ResourceIndex } from "../../src/store/resource-index.js";
import { resourceIndexes } from "../../src/store/resource-indexes.js";
import * as schema from "../../src/store/schema-sqlite.js";
import type { SqliteDatabase } from "../../src/store/sqlite-driver.js";
import type { Tables } from "../../src/store/tables.js";

const tables = schema as unknown as Tables;
/** How many differences of one sort are printed; the rest are counted. */
const MAX_PRINTED = 5;

/** Reads all rows of a table, by the names of their columns. */
export type ReadAll = (table: string) => readonly Readonly<Record<string, unknown>>[];

interface Contents {
  readonly text_entries: Set<string>;
  readonly time_entries: Set<string>;
  readonly totals: Map<string, number>;
}

/** The tables that {@link findIndexDifferences} reads. */
export const INDEX_TABLES: readonly string[] = [
  ...new Set(resourceIndexes.map((kind) => getTableName(kind.table(tables)))),
  ...["scopes", "text_entries", "time_entries", "totals"],
];

/** The inconsistencies of a database; empty when there are none. */
export function inconsistenciesIn(db: SqliteDatabase): string[] {
  const integrity = db.pragma("integrity_check", { simple: true });
  const orphans = db.pragma("foreign_key_check") as object[];
  return [
    ...(integrity === "ok" ? [] : [`integrity_check: ${integrity}`]),
    ...orphans.map((orphan) => `foreign_key_check: ${JSON.stringify(orphan)}`),
    ...findIndexDifferences((table) => db.prepare(`SELECT * FROM ${table}`).all() as ReturnType<ReadAll>),
  ];
}

/** The differences between the index of lists and the rows, on either store; empty when there are none. */
export function findIndexDifferences(read: ReadAll): string[] {
  const expected: Contents = { text_entries: new Set(), time_entries: new Set(), totals: new Map() };
  for (const kind of resourceIndexes) addExpected(read, kind, expected);
  const scopes = new Map(read("scopes").map(({ id, uid }) => [String(id), uid]));
  return [
    ...differences("text_entries", expected.text_entries, readEntries(read, "text_entries", scopes)),
    ...differences("time_entries", expected.time_entries, readEntries(read, "time_entries", scopes)),
    ...findDeadScopes(read, expected.totals),
    ...differences("totals", formatTotals(expected.totals), formatTotals(readTotals(read, scopes))),
  ];
}

// What has lists is a group, a repo or a provider. Tests also make rows below roots that do not exist.
function findDeadScopes(read: ReadAll, totals: ReadonlyMap<string, number>): string[] {
  const alive = new Set(
    ["groups", "repos", "identity_providers"].flatMap((table) => read(table).map(({ uid }) => uid)),
  );
  for (const total of totals.keys()) alive.add((JSON.parse(total) as unknown[])[1]);
  const dead = read("scopes").filter(({ uid }) => !alive.has(uid));
  return dead.map(({ uid }) => `scopes: ${uid} has neither rows below it nor a row`);
}

function addExpected(read: ReadAll, kind: ResourceIndex, expected: Contents): void {
  const table = kind.table(tables);
  const columns = getTableColumns(table) as Record<string, { name: string } | undefined>;
  for (const row of read(getTableName(table))) {
    // The columns that the predicate reads have the same names in SQL.
    if (kind.where?.includes(row as unknown as IndexedRow) === false) continue;
    const segments = String(row.uid).split("/");
    const lineage = segments.map((_, i) => segments.slice(0, i + 1).join("/"));
    const scopes = lineage.slice(0, -1);
    const parent = scopes.at(-1);
    if (parent === undefined) continue;
    const add = (type: "text" | "time", list: number, scope: string, key: unknown) => {
      const below = segments.slice(scope.split("/").length).join("");
      expected[`${type}_entries`].add(JSON.stringify([list, scope, String(key), below]));
    };
    for (const { list, type, column } of Object.values(kind.sorts)) {
      const key = row[columns[column]?.name ?? ""];
      for (const scope of scopes) add(type, list, scope, key);
      if (kind.childLists) add(type, list + 4, parent, key);
    }
    if (kind.childLists) add("text", kind.counter * 4 + 7, parent, "");
    for (const scope of scopes) addTotal(expected.totals, kind.counter, scope, 1);
    addTotal(expected.totals, kind.counter + 1, parent, 1);
  }
}

function addTotal(totals: Map<string, number>, counter: unknown, scope: unknown, n: number): void {
  const name = JSON.stringify([counter, scope]);
  totals.set(name, (totals.get(name) ?? 0) + n);
}

function readEntries(read: ReadAll, table: string, scopes: ReadonlyMap<string, unknown>): Set<string> {
  return new Set(
    read(table).map(({ list, scope, key, below }) => {
      const uid = scopes.get(String(scope)) ?? "no scope";
      return JSON.stringify([list, uid, String(key), (below as Buffer).toString("hex")]);
    }),
  );
}

function readTotals(read: ReadAll, scopes: ReadonlyMap<string, unknown>): Map<string, number> {
  const totals = new Map<string, number>();
  for (const { counter, scope, n } of read("totals")) {
    addTotal(totals, counter, scopes.get(String(scope)) ?? "no scope", Number(n));
  }
  return totals;
}

function formatTotals(totals: ReadonlyMap<string, number>): Set<string> {
  return new Set([...totals].filter(([, n]) => n !== 0).map(([name, n]) => `${name} ${n}`));
}

function differences(name: string, expected: ReadonlySet<string>, found: ReadonlySet<string>): string[] {
  const missing = [...expected].filter((one) => !found.has(one));
  const surplus = [...found].filter((one) => !expected.has(one));
  const format = (what: string, all: readonly string[]) =>
    all.length === 0 ? [] : [`${name}: ${all.length} ${what}, such as ${all.slice(0, MAX_PRINTED).join("; ")}`];
  return [...format("missing", missing), ...format("too many", surplus)];
}
