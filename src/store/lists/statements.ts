// The statements that read lists, one per shape of query.
import { and, asc, desc, eq, getTableName, gte, inArray, is, lt, SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import { ownColumns } from "../rows.js";
import { columnOf, rowLimit, type Sql, statementFamily, toNumber, value } from "../statement.js";
import { childIndexName, orderIndexName, uidIndexName } from "../tables/list-indexes.js";
import type { Tables } from "../tables/tables.js";
import type { ListedKind, ListedRow, ListedTables } from "./resource.js";

/** The values of a list statement, by their names. Those of filters have the names of the filters. */
export type ListParams = Record<string, string | number>;

/**
 * The index that a statement reads: the key of the table, with the order of uids; the children of a parent, the rows of
 * one name, both in the order of uids as well; or the rows of an organisation in the order of a field.
 */
export type Access = "uid" | "parent" | "name" | "sort";

/** The rows that a statement reads, and their order. */
export interface Shape {
  readonly kind: ListedKind;
  readonly by: Access;
  /** Whether only uids of a range match. Other statements read all rows of an organisation. */
  readonly inRange: boolean;
  /** Whether only children of a parent match, where the index is not the one of children. */
  readonly childrenOnly: boolean;
  /** The names of the filters: columns that must have a value, or filters of the kind. */
  readonly filters: readonly string[];
  /** The field that rows are sorted by; `uid` or one that the kind declares. */
  readonly field: string;
  readonly descending: boolean;
  /** Whether only rows after a position are read, and whether only those up to another one. */
  readonly after: boolean;
  readonly until: boolean;
}

const keyOf = ({ kind, by, inRange, childrenOnly, filters, field, descending, after, until }: Shape) =>
  [kind.counter, by, inRange, childrenOnly, field, descending, after, until, ...filters].join(" ");

/**
 * The parameters that all statements take: the root, the family, and the range of uids; the parent where its index is
 * read; the length of a child's uid; the positions; how many rows to skip and how many to read then.
 */
export const param = {
  root: "$root",
  family: "$family",
  low: "$low",
  end: "$end",
  parent: "$parent",
  length: "$length",
  afterKey: "$afterKey",
  afterUid: "$afterUid",
  untilKey: "$untilKey",
  untilUid: "$untilUid",
  skip: "$skip",
  limit: "$limit",
} as const;

/** The key and the uid of a row. In the order of uids there is no key. */
export interface EntryRow extends ListedRow {
  readonly key?: string | number;
}

/** Reads positions of rows. */
export const entriesStatement = statementFamily<Shape, ListParams, EntryRow>(
  keyOf,
  (shape) => (q, t) => buildEntries(shape, q, t),
);

/**
 * Reads rows. Those to skip are passed over in the index, and only the others are looked up in the table.
 */
export const rowsStatement = statementFamily<Shape, ListParams, ListedRow>(keyOf, (shape) => (q, t) => {
  const { kind, field, descending } = shape;
  const entries = buildEntries(shape, q, t).as("entries");
  const direction = descending ? desc : asc;
  const order = [...(field === "uid" ? [] : [direction(entries.key)]), direction(entries.uid)];
  const rows = q.select(selectColumns(kind, t)).from(entries);
  return applyJoins(rows, kind, t, eq(kind.table(t).uid, entries.uid)).orderBy(...order);
});

/**
 * Reads the first positions of several parts by one statement, each with the number of its part. The parameters that say
 * where a part is have that number at the end of their names.
 */
export const firstEntriesStatement = statementFamily<
  { readonly shape: Shape; readonly parts: number },
  ListParams,
  EntryRow & { readonly part: number }
>(
  ({ shape, parts }) => `${parts} ${keyOf(shape)}`,
  ({ shape, parts }) =>
    (q, t) => {
      const { uid } = shape.kind.table(t);
      const key = keyColumn(shape, t) ?? uid;
      const direction = shape.descending ? desc : asc;
      const first = (i: number) =>
        sql`select * from (select ${sql.raw(String(i))} as part, ${key} as entry_key, ${uid} as entry_uid
          from ${readIndex(shape, t)} where ${buildConditions(shape, t, String(i))}
          order by ${direction(key)}, ${direction(uid)} limit ${rowLimit(param.limit)}) ${sql.identifier(`part${i}`)}`;
      const all = sql.join(
        Array.from({ length: parts }, (_, i) => first(i)),
        sql` union all `,
      );
      return q
        .select({
          part: toNumber(sql`part`).as("part"),
          key: sql<string>`entry_key`.mapWith(key).as("entry_key"),
          uid: sql<string>`entry_uid`.as("entry_uid"),
        })
        .from(sql`(${all}) found`);
    },
);

/** Counts rows. */
export const countStatement = statementFamily<Shape, ListParams, { total: number }>(
  keyOf,
  (shape) => (q, t) => q.select({ total: toNumber(sql`count(*)`) }).from(readInOrder(shape, q, t).as("found")),
);

function buildEntries(shape: Shape, q: Sql, t: Tables) {
  const { by, field, descending, after } = shape;
  const direction = descending ? desc : asc;
  const rows = readInOrder(shape, q, t);
  if (by === "sort" || field === "uid") return rows.limit(rowLimit(param.limit)).offset(rowLimit(param.skip));
  const found = rows.as("found");
  return q
    .select({ key: found.key, uid: found.uid })
    .from(found)
    .where(after ? compareTo(found.key, found.uid, descending ? "<" : ">", param.afterKey, param.afterUid) : undefined)
    .orderBy(direction(found.key), direction(found.uid))
    .limit(rowLimit(param.limit))
    .offset(rowLimit(param.skip));
}

// Reads positions from an index in its order. PostgreSQL has no other way to that order, because it avoids sorts.
function readInOrder(shape: Shape, q: Sql, t: Tables) {
  const { uid } = shape.kind.table(t);
  const key = keyColumn(shape, t);
  const direction = shape.descending ? desc : asc;
  const { columns, last } = indexOf(shape, t);
  const select = (column: AnySQLiteColumn) => sql<string>`${column}`.mapWith(column);
  // The query builder rejects columns where the table is given as text.
  const fields = { ...(key && { key: select(key).as("entry_key") }), uid: select(uid).as("entry_uid") };
  return q
    .select(fields as Required<typeof fields>)
    .from(readIndex(shape, t))
    .where(buildConditions(shape, t))
    .orderBy(...[...columns, ...last].map((column) => direction(column)));
}

function keyColumn({ kind, field }: Shape, t: Tables): AnySQLiteColumn | undefined {
  return field === "uid" ? undefined : columnOf(kind.table(t), kind.sorts[field] ?? field);
}

// Row values are compared: with `key > ? OR (key = ? AND uid > ?)` the last page of a long list costs a hundred times
// the first.
function compareTo(key: SQLWrapper, uid: SQLWrapper, sign: string, keyParam: string, uidParam: string) {
  return sql`(${key}, ${uid}) ${sql.raw(sign)} (${value(keyParam)}, ${value(uidParam)})`;
}

// The columns of the index that a statement reads: those that have one value, and those that have the order.
function indexOf({ kind, by, field }: Shape, t: Tables, part = "") {
  const table = kind.table(t);
  const { rootUid, uid } = table;
  const family = kind.families ? [columnOf(table, kind.families.column)] : [];
  const ofFamily = kind.families ? [value(param.family + part)] : [];
  const root = value(param.root + part);
  switch (by) {
    case "uid":
      return kind.families
        ? { columns: [rootUid, ...family], values: [root, ...ofFamily], last: [uid] }
        : { columns: [], values: [], last: [uid] };
    case "parent":
      return {
        columns: [columnOf(table, kind.parent), ...family],
        values: [value(param.parent + part), ...ofFamily],
        last: [uid],
      };
    case "name":
      return {
        columns: [rootUid, ...family, columnOf(table, "name")],
        values: [root, ...ofFamily, value("name")],
        last: [uid],
      };
    case "sort":
      return {
        columns: [rootUid, ...family],
        values: [root, ...ofFamily],
        last: [columnOf(table, kind.sorts[field] ?? field), uid],
      };
  }
}

// In the order of uids a position is a bound of their range. As a second bound it would not be used to find the first
// row: SQLite steps through all rows from the first of two bounds.
function buildConditions(shape: Shape, t: Tables, part = ""): SQL | undefined {
  const { kind, by, inRange, childrenOnly, filters, descending, after, until } = shape;
  const table = kind.table(t);
  const { columns, values, last } = indexOf(shape, t, part);
  const range = { low: value(param.low + part), end: value(param.end + part) };
  const [key = table.uid] = last;
  // In an index with the order of the list the uid is a filter.
  const uid = unindexed(table.uid);
  const bounds =
    by === "sort"
      ? [
          ...columns.map((column, i) => eq(column, values[i])),
          inRange ? and(gte(uid, range.low), lt(uid, range.end)) : undefined,
          after ? compareTo(key, table.uid, descending ? "<" : ">", param.afterKey, param.afterUid) : undefined,
          until ? compareTo(key, table.uid, descending ? ">=" : "<=", param.untilKey, param.untilUid) : undefined,
        ]
      : [t.inIndexRange(columns, values, table.uid, range)];
  return and(
    ...bounds,
    childrenOnly ? sql`length(${table.uid}) = ${value(param.length + part)}` : undefined,
    ...filters.map((name) => kind.filters?.[name]?.(t) ?? eq(unindexed(columnOf(table, name)), value(name))),
  );
}

/**
 * A column that no index is used for. The index of each statement is chosen with the counters (plan.ts); PostgreSQL would
 * choose another one for a filter that its statistics make look selective.
 */
export function unindexed(column: SQLWrapper): SQL {
  return sql`coalesce(${column}, ${column})`;
}

// In a page by a field, the index is the one with its order. Where rows are sorted, it is another.
function readIndex({ kind, by, field }: Shape, t: Tables): SQL {
  const table = kind.table(t);
  const name = getTableName(table);
  if (by === "parent") return t.readBy(table, childIndexName(name));
  if (by === "uid") return t.readBy(table, kind.families ? orderIndexName(name, "uid") : uidIndexName(table.uid));
  return t.readBy(table, orderIndexName(name, by === "name" ? "name" : field));
}

/** The columns of a row in a list. */
function selectColumns(kind: ListedKind, t: Tables) {
  return { ...ownColumns(kind.table(t)), ...kind.join?.columns(t) };
}

// Joins the tables of the kind's join, and before them its own table by `on`.
function applyJoins<Q>(query: Q, kind: ListedKind, t: Tables, on?: SQL): Q {
  const own: (readonly [SQLiteTable, SQL])[] = on ? [[kind.table(t), on]] : [];
  let result = query as Joinable;
  for (const [table, condition] of [...own, ...(kind.join?.tables(t) ?? [])])
    result = result.leftJoin(table, condition);
  return result as Q;
}

interface Joinable {
  leftJoin(table: SQLiteTable, on: SQL): Joinable;
}

/** The shape of {@link rowsByUid}: up to `size` rows that match the filters of the kind with these names. */
export interface UidShape {
  readonly kind: ListedKind;
  readonly size: number;
  readonly filters: readonly string[];
}

/** Reads rows by uid. Parameters: `uid0`, `uid1` and so on, and those of the filters. */
export const rowsByUid = statementFamily<UidShape, ListParams, ListedRow>(
  ({ kind, size, filters }) => [kind.counter, size, ...filters].join(" "),
  ({ kind, size, filters }) =>
    (q, t) => {
      const table: ListedTables = kind.table(t);
      const uids = Array.from({ length: size }, (_, i) => value(`uid${i}`));
      const conditions = filters.map((name) => kind.filters?.[name]?.(t));
      // The query builder rejects columns where the table is given as text.
      const columns = Object.entries(selectColumns(kind, t)).map(([name, column]) => [
        name,
        is(column, SQL) ? column : sql`${column}`.mapWith(column),
      ]);
      const rows = q.select(Object.fromEntries(columns)).from(t.readBy(table, uidIndexName(table.uid)));
      return applyJoins(rows, kind, t).where(and(inArray(table.uid, uids), ...conditions));
    },
);

/** Reads which of some uids have rows. Parameters: `uid0`, `uid1` and so on. */
export const existingUids = statementFamily<Omit<UidShape, "filters">, ListParams, ListedRow>(
  ({ kind, size }) => [kind.counter, size].join(" "),
  ({ kind, size }) =>
    (q, t) => {
      const { uid } = kind.table(t);
      const uids = Array.from({ length: size }, (_, i) => value(`uid${i}`));
      return q.select({ uid }).from(kind.table(t)).where(inArray(uid, uids));
    },
);
