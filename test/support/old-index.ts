// Rows as version 0.4.0 writes them: with entries in its own order index, by the statements of that version.
import { lineageOf, parentOf } from "../../src/kernel/uidp.js";
import type { ReadAll } from "./consistency.js";
import type { Change, ChangedRow, ChangedTable } from "./row-changes.js";

interface Kind {
  readonly table: ChangedTable;
  readonly id: number;
  /** Whether its rows are entries of their own lists. */
  readonly self?: boolean;
  readonly includes?: (row: ChangedRow) => boolean;
}

const kinds: readonly Kind[] = [
  { table: "groups", id: 1, self: true },
  { table: "account_associations", id: 6, self: true },
  { table: "repos", id: 9 },
  { table: "tags", id: 10 },
  { table: "tags", id: 11, includes: ({ family }) => Number(family) === 0 },
];

const keys = [
  { table: "text_order", column: "name" },
  { table: "time_order", column: "create_time_ms" },
  { table: "time_order", column: "update_time_ms" },
] as const;

/** The statements of a change. */
export function toOldStatements(change: Change): string[] {
  const { table, before, after } = change;
  const row = (after ?? before) as ChangedRow;
  const entries = kindsOf(table, row).flatMap((kind) => [
    ...changeEntries(kind, before, after),
    ...(before && after ? [] : addToCounters(kind, row, after ? 1 : -1)),
  ]);
  if (after === undefined) return [...entries, `DELETE FROM ${table} WHERE uid = '${row.uid}'`];
  if (before !== undefined) {
    const set = Object.entries(after).map(([column, value]) => `${column} = ${toLiteral(value)}`);
    return [`UPDATE ${table} SET ${set.join(", ")} WHERE uid = '${row.uid}'`, ...entries];
  }
  const values = Object.values(row).map(toLiteral);
  return [`INSERT INTO ${table} (${Object.keys(row).join(", ")}) VALUES (${values.join(", ")})`, ...entries];
}

function kindsOf(table: ChangedTable, row: ChangedRow): Kind[] {
  return kinds.filter(
    (kind) => kind.table === table && kind.includes?.(row) !== false && scopesOf(kind, row).length > 0,
  );
}

function scopesOf({ self = false }: Kind, { uid }: ChangedRow): string[] {
  return self ? lineageOf(uid) : lineageOf(uid).slice(0, -1);
}

function changeEntries(kind: Kind, before: ChangedRow | undefined, after: ChangedRow | undefined): string[] {
  return keys.flatMap(({ table, column }, i) => {
    if (before?.[column] === after?.[column]) return [];
    const list = kind.id * 8 + i;
    const scopes = scopesOf(kind, (before ?? after) as ChangedRow).map(toLiteral);
    const key = (row: ChangedRow) => toLiteral(row[column] ?? "");
    return [
      ...(before
        ? [
            `DELETE FROM ${table} WHERE list = ${list} AND scope IN (${scopes.join(", ")}) AND key = ${key(before)}
              AND uid = '${before.uid}'`,
          ]
        : []),
      ...(after
        ? [
            `INSERT INTO ${table} (list, scope, key, uid)
              VALUES ${scopes.map((scope) => `(${list}, ${scope}, ${key(after)}, '${after.uid}')`).join(", ")}`,
          ]
        : []),
    ];
  });
}

function addToCounters(kind: Kind, row: ChangedRow, n: number): string[] {
  const counters = scopesOf(kind, row).map((scope) => `(${kind.id * 2}, '${scope}', 0, ${n})`);
  const parent = parentOf(row.uid);
  if (parent !== undefined) counters.push(`(${kind.id * 2 + 1}, '${parent}', 0, ${n})`);
  return [
    `INSERT INTO counters (counter, scope, slot, n) VALUES ${counters.join(", ")}
      ON CONFLICT (counter, scope, slot) DO UPDATE SET n = counters.n + excluded.n`,
  ];
}

function toLiteral(value: string | number | boolean | null): string {
  return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value);
}

/** The differences between the order index of version 0.4.0 and the rows; empty when there are none. */
export function findOldIndexDifferences(read: ReadAll): string[] {
  const expected = new Map<string, number>();
  const add = (values: readonly unknown[], n: number) => {
    const name = values.map(String).join(" ");
    expected.set(name, (expected.get(name) ?? 0) + n);
  };
  for (const kind of kinds) {
    for (const row of read(kind.table) as unknown as ChangedRow[]) {
      if (!kindsOf(kind.table, row).includes(kind)) continue;
      const parent = parentOf(row.uid);
      for (const scope of scopesOf(kind, row)) {
        for (const [i, { table, column }] of keys.entries())
          add([table, kind.id * 8 + i, scope, row[column], row.uid], 1);
        add(["counters", kind.id * 2, scope], 1);
      }
      if (parent !== undefined) add(["counters", kind.id * 2 + 1, parent], 1);
    }
  }
  for (const table of ["text_order", "time_order"]) {
    for (const { list, scope, key, uid } of read(table)) add([table, list, scope, key, uid], -1);
  }
  for (const { counter, scope, n } of read("counters")) add(["counters", counter, scope], -Number(n));
  return [...expected].filter(([, n]) => n !== 0).map(([name, n]) => `${name}: ${n > 0 ? "missing" : "too many"}`);
}
