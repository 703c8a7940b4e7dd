// The statements that lists are answered with, one per shape of question.
import { and, asc, desc, eq, getTableColumns, gt, gte, inArray, lt, ne, type SQL, sql } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import { columnOf, type IndexedRow, type ResourceIndex } from "./resource-index.js";
import { type Sql, statementFamily } from "./statement.js";
import type { Tables } from "./tables.js";

/** Values of a list statement; which there are depends on its shape. */
export type ListParams = Record<string, string | number>;

/** Which rows of a kind a statement is about. */
export interface RowShape {
  readonly kind: ResourceIndex;
  readonly from: "subtree" | "children";
  /** Whether only rows with the parameter `name` count. */
  readonly named: boolean;
  /** Columns that must equal the parameters of their names. */
  readonly equals: readonly string[];
  /** Whether the top of a subtree is part of it. */
  readonly withSelf: boolean;
}

/** What makes one page query another statement than the next. */
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
 * A page. Parameters: `scope` (and `end`, the first uid beyond the subtree), `list` (of the order,
 * or of the name order when only a name counts), `skip`, `limit`.
 */
export const pageStatement = statementFamily<PageShape, ListParams, IndexedRow>(
  (s) => [s.field, s.descending, s.after, rowKey(s)].join(" "),
  (shape) => {
    if (byTable(shape) || (shape.field === "uid" && !shape.named)) return tablePage(shape);
    return shape.named ? namedPage(shape) : orderedPage(shape);
  },
);

// Children and filtered rows come straight from the kind's table: children by
// their indexes; of filtered ones only those within the subtree are looked at.
const byTable = ({ from, equals }: RowShape) => from === "children" || equals.length > 0;

/**
 * The conditions on rows of the kind itself that a shape asks for.
 *
 * @param compared what of a filtered column is compared
 */
export function inTable(
  shape: RowShape,
  t: Tables,
  place = placeOf(shape, t),
  compared: (column: AnySQLiteColumn) => AnySQLiteColumn | SQL = (column) => column,
): SQL | undefined {
  const { kind, named, equals } = shape;
  const table = kind.table(t);
  return and(
    place,
    kind.only?.condition(t),
    named ? eq(columnOf(table, "name"), value("name")) : undefined,
    ...equals.map((name) => kind.filters?.[name]?.(t) ?? eq(compared(columnOf(table, name)) as SQL, value(name))),
  );
}

function placeOf({ kind, from, withSelf }: RowShape, t: Tables): SQL | undefined {
  const table = kind.table(t);
  if (from === "children") return eq(columnOf(table, kind.place), value("scope"));
  return and((withSelf ? gte : gt)(table.uid, value("scope")), lt(table.uid, value("end")));
}

// In uid order the position is itself a bound of the range. Beside the range's own bound it would
// not be used as one: SQLite seeks by the first of two and steps through all up to the other.
function restOf({ kind, withSelf, descending }: PageShape, t: Tables): SQL | undefined {
  const { uid } = kind.table(t);
  return descending
    ? and((withSelf ? gte : gt)(uid, value("scope")), lt(uid, value("uid")))
    : and(gt(uid, value("uid")), lt(uid, value("end")));
}

function tablePage(shape: PageShape) {
  return (q: Sql, t: Tables) => {
    const { kind, from, field, descending, after } = shape;
    const table = kind.table(t);
    const sort = kind.sorts[field];
    const key = sort && columnOf(table, sort.column);
    const direction = descending ? desc : asc;
    return withJoined(q.select(shownOf(kind, t)).from(table), kind, t)
      .where(
        after && from === "subtree" && key === undefined
          ? inTable(shape, t, restOf(shape, t))
          : and(inTable(shape, t), after ? past(key && sql`${key}`, sql`${table.uid}`, descending) : undefined),
      )
      .orderBy(...(key ? [direction(key)] : []), direction(table.uid))
      .limit(value("limit"))
      .offset(value("skip"));
  };
}

/** What is shown of a row. */
export function shownOf(kind: ResourceIndex, t: Tables) {
  return { ...getTableColumns(kind.table(t)), ...kind.joined?.columns(t) };
}

/** Joins the kind's own table where `on` or `inner` says how, and the other tables it shows. */
export function withJoined<Q>(query: Q, kind: ResourceIndex, t: Tables, on?: SQL, inner?: SQLiteTable): Q {
  const own: (readonly [SQLiteTable, SQL])[] = on ? [[kind.table(t), on]] : [];
  let joined = query as Joinable;
  if (inner) joined = joined.crossJoin(inner);
  for (const [table, condition] of [...own, ...(kind.joined?.tables(t) ?? [])])
    joined = joined.leftJoin(table, condition);
  return joined as Q;
}

interface Joinable {
  crossJoin(table: SQLiteTable): Joinable;
  leftJoin(table: SQLiteTable, on: SQL): Joinable;
}

/** The order table of a field. The text table stands for both: they differ in the type of the key alone. */
export function orderTableOf(kind: ResourceIndex, field: string, t: Tables): typeof t.textOrder {
  return (kind.sorts[field]?.type === "time" ? t.timeOrder : t.textOrder) as typeof t.textOrder;
}

// By the order table: the entries of the page are found first, so that rows
// passed over by `skip` are never fetched.
function orderedPage({ kind, field, descending, after, withSelf }: PageShape) {
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
          after ? past(sql`${o.key}`, sql`${o.uid}`, descending) : undefined,
        ),
      )
      .orderBy(direction(o.key), direction(o.uid))
      .limit(value("limit"))
      .offset(value("skip"))
      .as("entries");
    return withJoined(q.select(shownOf(kind, t)).from(entries), kind, t, eq(table.uid, entries.uid)).orderBy(
      direction(entries.key),
      direction(entries.uid),
    );
  };
}

// Of one name: a range of the name order, at a cost bounded by how many share it.
function namedPage({ kind, field, descending, after, withSelf }: PageShape) {
  return (q: Sql, t: Tables) => {
    const table = kind.table(t);
    const direction = descending ? desc : asc;
    const sort = kind.sorts[field];
    const key = sort && sort.type !== "text" ? columnOf(table, sort.column) : undefined;
    return withJoined(q.select(shownOf(kind, t)).from(t.textOrder), kind, t, eq(table.uid, t.textOrder.uid))
      .where(
        and(
          inNamedRange(t, withSelf),
          after ? past(key && sql`${key}`, sql`${t.textOrder.uid}`, descending) : undefined,
        ),
      )
      .orderBy(...(key ? [direction(key)] : []), direction(t.textOrder.uid))
      .limit(value("limit"))
      .offset(value("skip"));
  };
}

function inNamedRange(t: Tables, withSelf: boolean): SQL | undefined {
  return and(
    eq(t.textOrder.list, value("list")),
    eq(t.textOrder.scope, value("scope")),
    eq(t.textOrder.key, value("name")),
    withSelf ? undefined : ne(t.textOrder.uid, value("scope")),
  );
}

/**
 * Behind the position that the parameters `key` and `uid` name. As a row value: written as `key > ? OR (key = ? AND uid > ?)` the last page of
 * a long list costs a hundred times the first.
 */
export function past(key: SQL | undefined, uid: SQL, descending: boolean): SQL {
  const sign = sql.raw(descending ? "<" : ">");
  return key ? sql`(${key}, ${uid}) ${sign} (${value("key")}, ${value("uid")})` : sql`${uid} ${sign} ${value("uid")}`;
}

/** How many rows there are where a counter cannot tell. Parameters as of a page. */
export const countStatement = statementFamily<RowShape, ListParams, { total: number }>(
  rowKey,
  (shape) => (q, t) =>
    byTable(shape)
      ? q
          .select({ total: total(sql`count(*)`) })
          .from(shape.kind.table(t))
          .where(inTable(shape, t))
      : q
          .select({ total: total(sql`count(*)`) })
          .from(t.textOrder)
          .where(inNamedRange(t, shape.withSelf)),
);

/** The value of a counter. Parameters: `counter`, `scope`. */
export const counterTotal = statementFamily<"counter", ListParams, { total: number }>(
  String,
  () => (q, t) =>
    q
      .select({ total: total(sql`coalesce(sum(n), 0)`) })
      .from(t.counters)
      .where(and(eq(t.counters.counter, value("counter")), eq(t.counters.scope, value("scope")))),
)("counter");

/** A count as a number: PostgreSQL gives it as text. */
export function total(expression: SQL): SQL<number> {
  return sql<number>`${expression}`.mapWith(Number);
}

/** Which rows {@link rowsByUid} finds: `size` of them, if they pass the filters of these names. */
export interface UidShape {
  readonly kind: ResourceIndex;
  readonly size: number;
  readonly filters: readonly string[];
}

/** The rows with given uids. Parameters: `uid0`, `uid1` and so on, and those of the filters. */
export const rowsByUid = statementFamily<UidShape, ListParams, IndexedRow>(
  ({ kind, size, filters }) => [kind.counter, size, ...filters].join(" "),
  ({ kind, size, filters }) =>
    (q, t) => {
      const table = kind.table(t);
      const uids = Array.from({ length: size }, (_, i) => value(`uid${i}`));
      const conditions = filters.map((name) => kind.filters?.[name]?.(t));
      return withJoined(q.select(shownOf(kind, t)).from(table), kind, t).where(
        and(inArray(table.uid, uids), kind.only?.condition(t), ...conditions),
      );
    },
);
