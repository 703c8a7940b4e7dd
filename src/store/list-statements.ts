// The statements that read lists, one per shape of query.
import { and, asc, desc, eq, getTableColumns, gt, gte, inArray, lt, ne, type SQL, sql } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import { columnOf, type IndexedRow, type ResourceIndex } from "./resource-index.js";
import { type Sql, statementFamily } from "./statement.js";
import type { Tables } from "./tables.js";

/** The parameters of a list statement; its shape decides which there are. */
export type ListParams = Record<string, string | number>;

/** The rows of a kind that a statement reads. */
export interface RowShape {
  readonly kind: ResourceIndex;
  readonly from: "subtree" | "children";
  /** Whether only rows with the name in the parameter `name` match. */
  readonly named: boolean;
  /** Columns that must equal the parameters with their names. */
  readonly equals: readonly string[];
  /** Whether the top of a subtree is part of it. */
  readonly withSelf: boolean;
}

/** The shape of a page statement. */
export interface PageShape extends RowShape {
  /** The sort field; `uid` or one the kind declares. */
  readonly field: string;
  readonly descending: boolean;
  /** Whether the page begins after a position: parameters `key` and `uid`. */
  readonly after: boolean;
}

/** The parameter of this name. */
export const value = (name: string) => sql.placeholder(name);
const rowKey = (s: RowShape) => [s.kind.counter, s.from, s.named, s.withSelf, ...s.equals].join(" ");

/**
 * Reads a page. Parameters: `scope` (and `end`, the first uid after the subtree), `list` (the number of the
 * order, or of the order by name when rows of one name are read), `skip`, `limit`.
 */
export const pageStatement = statementFamily<PageShape, ListParams, IndexedRow>(
  (s) => [s.field, s.descending, s.after, rowKey(s)].join(" "),
  (shape) => {
    if (readsTable(shape) || (shape.field === "uid" && !shape.named)) return buildTablePage(shape);
    return shape.named ? buildNamedPage(shape) : buildOrderedPage(shape);
  },
);

// Children and filtered rows are read from the kind's own table: children by an index, filtered rows by
// scanning the subtree.
const readsTable = ({ from, equals }: RowShape) => from === "children" || equals.length > 0;

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

function buildScope({ kind, from, withSelf }: RowShape, t: Tables): SQL | undefined {
  const table = kind.table(t);
  if (from === "children") return eq(columnOf(table, kind.parent), value("scope"));
  return and((withSelf ? gte : gt)(table.uid, value("scope")), lt(table.uid, value("end")));
}

// In uid order the position replaces a bound of the range. As a second bound it would not be used for
// the seek: SQLite seeks by the first of two and steps through all rows up to the other.
function buildScopeAfter({ kind, withSelf, descending }: PageShape, t: Tables): SQL | undefined {
  const { uid } = kind.table(t);
  return descending
    ? and((withSelf ? gte : gt)(uid, value("scope")), lt(uid, value("uid")))
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

/** The order table of a field. Both have the same columns; only the type of the key differs. */
export function orderTableOf(kind: ResourceIndex, field: string, t: Tables): typeof t.textOrder {
  return (kind.sorts[field]?.type === "time" ? t.timeOrder : t.textOrder) as typeof t.textOrder;
}

// By the order table: the inner query selects the entries of the page, so that skipped rows are not read.
function buildOrderedPage({ kind, field, descending, after, withSelf }: PageShape) {
  return (q: Sql, t: Tables) => {
    const table = kind.table(t);
    const direction = descending ? desc : asc;
    const o = orderTableOf(kind, field, t);
    const entries = q
      .select({ key: o.key, uid: o.uid })
      .from(o)
      .where(
        and(
          eq(o.list, value("list")),
          eq(o.scope, value("scope")),
          withSelf ? undefined : ne(o.uid, value("scope")),
          after ? buildAfter(sql`${o.key}`, sql`${o.uid}`, descending) : undefined,
        ),
      )
      .orderBy(direction(o.key), direction(o.uid))
      .limit(value("limit"))
      .offset(value("skip"))
      .as("entries");
    return applyJoins(q.select(selectColumns(kind, t)).from(entries), kind, t, eq(table.uid, entries.uid)).orderBy(
      direction(entries.key),
      direction(entries.uid),
    );
  };
}

// By the order of names: the rows of one name are a range of it, so the cost depends on their number alone.
function buildNamedPage({ kind, field, descending, after, withSelf }: PageShape) {
  return (q: Sql, t: Tables) => {
    const table = kind.table(t);
    const direction = descending ? desc : asc;
    const sort = kind.sorts[field];
    const key = sort && sort.type !== "text" ? columnOf(table, sort.column) : undefined;
    return applyJoins(q.select(selectColumns(kind, t)).from(t.textOrder), kind, t, eq(table.uid, t.textOrder.uid))
      .where(
        and(
          buildNameRange(t, withSelf),
          after ? buildAfter(key && sql`${key}`, sql`${t.textOrder.uid}`, descending) : undefined,
        ),
      )
      .orderBy(...(key ? [direction(key)] : []), direction(t.textOrder.uid))
      .limit(value("limit"))
      .offset(value("skip"));
  };
}

function buildNameRange(t: Tables, withSelf: boolean): SQL | undefined {
  return and(
    eq(t.textOrder.list, value("list")),
    eq(t.textOrder.scope, value("scope")),
    eq(t.textOrder.key, value("name")),
    withSelf ? undefined : ne(t.textOrder.uid, value("scope")),
  );
}

/**
 * Builds the condition that a row comes after the position in the parameters `key` and `uid`. It compares row
 * values: with `key > ? OR (key = ? AND uid > ?)` the last page of a long list costs a hundred times the first.
 */
export function buildAfter(key: SQL | undefined, uid: SQL, descending: boolean): SQL {
  const sign = sql.raw(descending ? "<" : ">");
  return key ? sql`(${key}, ${uid}) ${sign} (${value("key")}, ${value("uid")})` : sql`${uid} ${sign} ${value("uid")}`;
}

/** Counts rows where no counter does. Parameters as for a page. */
export const countStatement = statementFamily<RowShape, ListParams, { total: number }>(
  rowKey,
  (shape) => (q, t) =>
    readsTable(shape)
      ? q
          .select({ total: toNumber(sql`count(*)`) })
          .from(shape.kind.table(t))
          .where(buildConditions(shape, t))
      : q
          .select({ total: toNumber(sql`count(*)`) })
          .from(t.textOrder)
          .where(buildNameRange(t, shape.withSelf)),
);

/** Reads a counter. Parameters: `counter`, `scope`. */
export const counterTotal = statementFamily<"counter", ListParams, { total: number }>(
  String,
  () => (q, t) =>
    q
      .select({ total: toNumber(sql`coalesce(sum(n), 0)`) })
      .from(t.counters)
      .where(and(eq(t.counters.counter, value("counter")), eq(t.counters.scope, value("scope")))),
)("counter");

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
