// The statements that read lists, one per shape of query.
import { and, asc, desc, eq, getTableColumns, gt, inArray, lt, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import { columnOf, findList, type IndexedRow, type IndexList, type ResourceIndex } from "./resource-index.js";
import { type Sql, statementFamily, value } from "./statement.js";
import type { Tables } from "./tables.js";

/** The parameters of a list statement; its shape decides which there are. */
export type ListParams = Record<string, string | number | Buffer>;

/** The rows of a kind that a statement reads. */
export interface RowShape {
  readonly kind: ResourceIndex;
  readonly from: "subtree" | "children";
  /** Whether only rows with the name in the parameter `name` match. */
  readonly named: boolean;
  /** Columns that must equal the parameters with their names. */
  readonly equals: readonly string[];
}

/** The shape of a page statement. */
export interface PageShape extends RowShape {
  /** The sort field; `uid` or one the kind declares. */
  readonly field: string;
  readonly descending: boolean;
  /** Whether the page begins after a position: parameters `key`, `uid` and `below`. */
  readonly after: boolean;
}

const rowKey = (s: RowShape) => [s.kind.counter, s.from, s.named, ...s.equals].join(" ");

/**
 * Reads a page. Parameters: `scope` (and `end`, the first uid after the subtree), `list` (the number of the list, or of
 * the list by name when rows of one name are read), `skip`, `limit`.
 */
export const pageStatement = statementFamily<PageShape, ListParams, IndexedRow>(
  (s) => [s.field, s.descending, s.after, rowKey(s)].join(" "),
  (shape) => {
    const list = findShapeList(shape, shape.field);
    if (list === undefined) return buildTablePage(shape);
    return shape.named ? buildNamedPage(shape) : buildOrderedPage(shape, list);
  },
);

/**
 * The list that rows of a shape are read from, in the order of `field`, or by name where rows of one name are read.
 * Filtered rows are read from the kind's own table, by scanning the subtree.
 */
export function findShapeList({ kind, from, named, equals }: RowShape, field: string): IndexList | undefined {
  return equals.length > 0 ? undefined : findList(kind, from, named ? "name" : field);
}

/**
 * Builds the conditions of a shape on the kind's own table.
 *
 * @param scope the condition that restricts the rows to the segment
 * @param operand the expression that is compared for a filtered column
 */
export function buildConditions(
  shape: RowShape,
  t: Tables,
  scope = buildScope(shape, t),
  operand: (column: AnySQLiteColumn) => AnySQLiteColumn | SQL = (column) => column,
): SQL | undefined {
  const { kind, named, equals } = shape;
  const table = kind.table(t);
  return and(
    scope,
    kind.where?.condition(t),
    named ? eq(columnOf(table, "name"), value("name")) : undefined,
    ...equals.map((name) => kind.filters?.[name]?.(t) ?? eq(operand(columnOf(table, name)) as SQL, value(name))),
  );
}

function buildScope({ kind, from }: RowShape, t: Tables): SQL | undefined {
  const table = kind.table(t);
  if (from === "children") return eq(columnOf(table, kind.parent), value("scope"));
  return and(gt(table.uid, value("scope")), lt(table.uid, value("end")));
}

// In uid order the position replaces a bound of the range. As a second bound it would not be used for
// the seek: SQLite seeks by the first of two and steps through all rows up to the other.
function buildScopeAfter({ kind, descending }: PageShape, t: Tables): SQL | undefined {
  const { uid } = kind.table(t);
  return descending
    ? and(gt(uid, value("scope")), lt(uid, value("uid")))
    : and(gt(uid, value("uid")), lt(uid, value("end")));
}

function buildTablePage(shape: PageShape) {
  return (q: Sql, t: Tables) => {
    const { kind, from, field, descending, after } = shape;
    const table = kind.table(t);
    const sort = kind.sorts[field];
    const key = sort && columnOf(table, sort.column);
    const direction = descending ? desc : asc;
    return applyJoins(q.select(selectColumns(kind, t)).from(table), kind, t)
      .where(
        after && from === "subtree" && key === undefined
          ? buildConditions(shape, t, buildScopeAfter(shape, t))
          : and(
              buildConditions(shape, t),
              after ? buildAfter(key && sql`${key}`, sql`${table.uid}`, descending) : undefined,
            ),
      )
      .orderBy(...(key ? [direction(key)] : []), direction(table.uid))
      .limit(value("limit"))
      .offset(value("skip"));
  };
}

/** The columns of a row in a list. */
export function selectColumns(kind: ResourceIndex, t: Tables) {
  return { ...getTableColumns(kind.table(t)), ...kind.join?.columns(t) };
}

/** Joins the tables of the kind's {@link Join}, and first its own table: by `on`, or all rows of `inner`. */
export function applyJoins<Q>(query: Q, kind: ResourceIndex, t: Tables, on?: SQL, inner?: SQLiteTable): Q {
  const own: (readonly [SQLiteTable, SQL])[] = on ? [[kind.table(t), on]] : [];
  let result = query as Joinable;
  if (inner) result = result.crossJoin(inner);
  for (const [table, condition] of [...own, ...(kind.join?.tables(t) ?? [])])
    result = result.leftJoin(table, condition);
  return result as Q;
}

interface Joinable {
  crossJoin(table: SQLiteTable): Joinable;
  leftJoin(table: SQLiteTable, on: SQL): Joinable;
}

/** The table of entries with this type of keys. Both have the same columns; only the type of the key differs. */
export function entryTableOf(type: IndexList["type"], t: Tables): typeof t.textEntries {
  return (type === "time" ? t.timeEntries : t.textEntries) as typeof t.textEntries;
}

/** The number of the lists of a scope, which is given by its uid. */
export function scopeOf(t: Tables, uid: SQLWrapper): SQL {
  return sql`(select ${t.scopes.id} from ${t.scopes} where ${t.scopes.uid} = ${uid})`;
}

// The inner query selects the entries of the page, so that the rows of skipped entries are not read.
function buildOrderedPage({ kind, descending, after }: PageShape, { type }: IndexList) {
  return (q: Sql, t: Tables) => {
    const direction = descending ? desc : asc;
    const e = entryTableOf(type, t);
    const entries = q
      .select({ key: e.key, below: e.below })
      .from(e)
      .where(
        and(
          eq(e.list, value("list")),
          eq(e.scope, scopeOf(t, value("scope"))),
          after ? buildAfter(sql`${e.key}`, sql`${e.below}`, descending, "below") : undefined,
        ),
      )
      .orderBy(direction(e.key), direction(e.below))
      .limit(value("limit"))
      .offset(value("skip"))
      .as("entries");
    const isRow = eq(kind.table(t).uid, t.uidBelow(value("scope"), entries.below));
    return applyJoins(q.select(selectColumns(kind, t)).from(entries), kind, t, isRow).orderBy(
      direction(entries.key),
      direction(entries.below),
    );
  };
}

// By the list by name: the rows of one name are a range of it, so the cost depends on their number alone.
function buildNamedPage({ kind, field, descending, after }: PageShape) {
  return (q: Sql, t: Tables) => {
    const table = kind.table(t);
    const e = t.textEntries;
    const direction = descending ? desc : asc;
    const sort = kind.sorts[field];
    // Rows of the same name are in the order of their uids.
    const key = sort && sort.type !== "text" ? columnOf(table, sort.column) : undefined;
    const isRow = eq(table.uid, t.uidBelow(value("scope"), e.below));
    return applyJoins(q.select(selectColumns(kind, t)).from(e), kind, t, isRow)
      .where(
        and(
          buildNameRange(t),
          after
            ? buildAfter(
                key && sql`${key}`,
                key ? sql`${table.uid}` : sql`${e.below}`,
                descending,
                key ? "uid" : "below",
              )
            : undefined,
        ),
      )
      .orderBy(...(key ? [direction(key)] : []), direction(e.below))
      .limit(value("limit"))
      .offset(value("skip"));
  };
}

function buildNameRange(t: Tables): SQL | undefined {
  const e = t.textEntries;
  return and(eq(e.list, value("list")), eq(e.scope, scopeOf(t, value("scope"))), eq(e.key, value("name")));
}

/**
 * Builds the condition that a row comes after the position in the parameters `key` and `uid` (or the one named by
 * `last`). It compares row values: with `key > ? OR (key = ? AND uid > ?)` the last page of a long list costs a
 * hundred times the first.
 */
export function buildAfter(key: SQL | undefined, uid: SQL, descending: boolean, last: "uid" | "below" = "uid"): SQL {
  const sign = sql.raw(descending ? "<" : ">");
  return key ? sql`(${key}, ${uid}) ${sign} (${value("key")}, ${value(last)})` : sql`${uid} ${sign} ${value(last)}`;
}

/** Counts rows of which no total is kept. Parameters as for a page. */
export const countStatement = statementFamily<RowShape, ListParams, { total: number }>(
  rowKey,
  (shape) => (q, t) =>
    shape.named && findShapeList(shape, "name")
      ? q
          .select({ total: toNumber(sql`count(*)`) })
          .from(t.textEntries)
          .where(buildNameRange(t))
      : q
          .select({ total: toNumber(sql`count(*)`) })
          .from(shape.kind.table(t))
          .where(buildConditions(shape, t)),
);

/** Reads a total. Parameters: `counter`, `scope`. */
export const counterTotal = statementFamily<"counter", ListParams, { total: number }>(
  String,
  () => (q, t) =>
    q
      .select({ total: toNumber(sql`coalesce(sum(n), 0)`) })
      .from(t.totals)
      .where(and(eq(t.totals.counter, value("counter")), eq(t.totals.scope, scopeOf(t, value("scope"))))),
)("counter");

/** Reads the number of a scope. Parameter: `scope`, its uid. */
export const scopeNumber = statementFamily<"scope", ListParams, { id: number }>(
  String,
  () => (q, t) =>
    q
      .select({ id: t.scopes.id })
      .from(t.scopes)
      .where(eq(t.scopes.uid, value("scope"))),
)("scope");

/** A count as a number: PostgreSQL returns it as text. */
export function toNumber(expression: SQL): SQL<number> {
  return sql<number>`${expression}`.mapWith(Number);
}

/** The shape of {@link rowsByUid}: up to `size` rows that match the filters with these names. */
export interface UidShape {
  readonly kind: ResourceIndex;
  readonly size: number;
  readonly filters: readonly string[];
}

/** Reads rows by uid. Parameters: `uid0`, `uid1` and so on, and those of the filters. */
export const rowsByUid = statementFamily<UidShape, ListParams, IndexedRow>(
  ({ kind, size, filters }) => [kind.counter, size, ...filters].join(" "),
  ({ kind, size, filters }) =>
    (q, t) => {
      const table = kind.table(t);
      const uids = Array.from({ length: size }, (_, i) => value(`uid${i}`));
      const conditions = filters.map((name) => kind.filters?.[name]?.(t));
      return applyJoins(q.select(selectColumns(kind, t)).from(table), kind, t).where(
        and(inArray(table.uid, uids), kind.where?.condition(t), ...conditions),
      );
    },
);
