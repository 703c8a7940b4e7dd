// Checks a database: the integrity of a SQLite file, and whether the counters and the roots of listed rows match the rows.
// The expected values are computed from the rows, without the code that maintains them.
import { getTableName } from "drizzle-orm";
import { kinds } from "../../src/store/kinds.js";
import type { SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { schema as tables } from "../../src/store/tables/schema-sqlite.js";

/** How many differences of one sort are printed; the rest are counted. */
const MAX_PRINTED = 5;

/** Reads all rows of a table, by the names of their columns. */
type ReadAll = (table: string) => readonly Readonly<Record<string, unknown>>[];

/** The inconsistencies of a database; empty when there are none. */
export function inconsistenciesIn(db: SqliteDatabase): string[] {
  const integrity = db.pragma("integrity_check", { simple: true });
  const orphans = db.pragma("foreign_key_check") as object[];
  return [
    ...(integrity === "ok" ? [] : [`integrity_check: ${integrity}`]),
    ...orphans.map((orphan) => `foreign_key_check: ${JSON.stringify(orphan)}`),
    ...findListDifferences((table) => db.prepare(`SELECT * FROM ${table}`).all() as ReturnType<ReadAll>),
  ];
}

// The differences between what lists are read by and the rows.
function findListDifferences(read: ReadAll): string[] {
  const expected = new Map<string, number>();
  const wrongRoots: string[] = [];
  for (const kind of kinds) {
    const table = getTableName(kind.table(tables));
    for (const row of read(table)) {
      const segments = String(row.uid).split("/");
      if (row.root_uid !== segments[0]) wrongRoots.push(`${table}: ${row.uid} has the root ${row.root_uid}`);
      const scopes = segments.slice(0, -1).map((_, i) => segments.slice(0, i + 1).join("/"));
      const parent = scopes.at(-1);
      if (parent === undefined) continue;
      const counter = kind.counter + 2 * (kind.families ? Number(row[kind.families.column]) : 0);
      for (const scope of scopes) add(expected, counter, scope, 1);
      add(expected, counter + 1, parent, 1);
    }
  }
  const found = new Map<string, number>();
  for (const { counter, scope, n } of read("counters")) add(found, counter, scope, Number(n));
  return [...wrongRoots.slice(0, MAX_PRINTED), ...differences("counters", format(expected), format(found))];
}

function add(counters: Map<string, number>, counter: unknown, scope: unknown, n: number): void {
  const name = JSON.stringify([Number(counter), scope]);
  counters.set(name, (counters.get(name) ?? 0) + n);
}

function format(counters: ReadonlyMap<string, number>): Set<string> {
  return new Set([...counters].filter(([, n]) => n !== 0).map(([name, n]) => `${name} ${n}`));
}

function differences(name: string, expected: ReadonlySet<string>, found: ReadonlySet<string>): string[] {
  const missing = [...expected].filter((one) => !found.has(one));
  const surplus = [...found].filter((one) => !expected.has(one));
  const formatSome = (what: string, all: readonly string[]) =>
    all.length === 0 ? [] : [`${name}: ${all.length} ${what}, such as ${all.slice(0, MAX_PRINTED).join("; ")}`];
  return [...formatSome("missing", missing), ...formatSome("too many", surplus)];
}
