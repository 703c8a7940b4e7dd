// The statements for lists over many subtrees: each reads hundreds of subtrees, at a cost that depends on
// their number.
import { and, asc, desc, eq, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import {
  applyJoins,
  buildAfter,
  buildConditions,
  entryTableOf,
  type ListParams,
  scopeOf,
  selectColumns,
  toNumber,
} from "./list-statements.js";
import { columnOf, findList, type IndexedRow, type ResourceIndex } from "./resource-index.js";
import { type Preparable, statementFamily, value } from "./statement.js";
import type { Tables } from "./tables.js";

/** The rows of many subtrees that a statement reads; each without its top. */
export interface ManyShape {
  readonly kind: ResourceIndex;
  /** The sort field; `uid` or one the kind declares. */
  readonly field: string;
  readonly descending: boolean;
  readonly after: boolean;
  readonly named: boolean;
  readonly equals: readonly string[];
}

const manyKey = (s: ManyShape) => [s.kind.counter, s.field, s.descending, s.after, s.named, ...s.equals].join(" ");
const top = sql.raw("tops.top");
const bound = sql.raw("tops.bound");

/**
 * Reads the first entry of each subtree in the order of a field, after a position if there is one.
 * Parameters: `tops`, `list`, `key`.
 */
export const headsStatement = statementFamily<ManyShape, ListParams, OrderEntry>(
  manyKey,
  ({ kind, field, descending, after }) =>
    (q, t) => {
      const e = entryTableOf(findList(kind, "subtree", field)?.type ?? "text", t);
      const direction = descending ? desc : asc;
      const sign = sql.raw(descending ? "<" : ">");
      const first = (column: SQLWrapper) =>
        sql`(select ${column} from ${e} where ${and(
          eq(e.list, value("list")),
          eq(e.scope, scopeOf(t, top)),
          after ? sql`(${e.key}, ${e.below}) ${sign} (${value("key")}, ${bound})` : undefined,
        )} order by ${direction(e.key)}, ${direction(e.below)} limit 1)`;
      return q
        .select({
          scope: sql<string>`${top}`.as("scope"),
          key: first(e.key).mapWith(e.key).as("key"),
          uid: sql<string | null>`${first(t.uidBelow(top, e.below))}`.as("uid"),
        })
        .from(t.topsIn("tops")) as Preparable;
    },
);

/** Reads the entries of one subtree after a position. Parameters: `scope`, `list`, `key`, `below`, `limit`. */
export const entriesStatement = statementFamily<ManyShape, ListParams, OrderEntry>(
  manyKey,
  ({ kind, field, descending }) =>
    (q, t) => {
      const e = entryTableOf(findList(kind, "subtree", field)?.type ?? "text", t);
      const direction = descending ? desc : asc;
      return q
        .select({ key: e.key, uid: sql<string>`${t.uidBelow(value("scope"), e.below)}`.as("uid") })
        .from(e)
        .where(
          and(
            eq(e.list, value("list")),
            eq(e.scope, scopeOf(t, value("scope"))),
            buildAfter(sql`${e.key}`, sql`${e.below}`, descending, "below"),
          ),
        )
        .orderBy(direction(e.key), direction(e.below))
        .limit(value("limit"));
    },
);

/** An entry of a list, and for a head its subtree; `uid` is null for the head of an empty one. */
export interface OrderEntry {
  readonly scope?: string;
  readonly key: string | number;
  readonly uid: string | null;
}

/** Reads the total of each subtree. Parameters: `tops`, `counter`. */
export const totalsStatement = statementFamily<"totals", ListParams, { scope: string; total: number }>(
  String,
  () => (q, t) =>
    q
      .select({
        scope: sql<string>`${top}`.as("scope"),
        total: toNumber(
          sql`(select coalesce(sum(${t.totals.n}), 0) from ${t.totals} where ${and(
            eq(t.totals.counter, value("counter")),
            eq(t.totals.scope, scopeOf(t, top)),
          )})`,
        ).as("total"),
      })
      .from(t.topsIn("tops")) as Preparable,
)("totals");

/**
 * Reads a page of the rows with one name, or with given values, in any of several subtrees. Parameters as for
 * {@link pageStatement}, but `tops` instead of `scope`.
 */
export const manyPageStatement = statementFamily<ManyShape, ListParams, IndexedRow>(manyKey, (shape) => (q, t) => {
  const { kind, field, descending, after, equals } = shape;
  const table = kind.table(t);
  const direction = descending ? desc : asc;
  const sort = kind.sorts[field];
  // Rows of the same name are in the order of their uids.
  const key = sort && (equals.length > 0 || sort.type !== "text") ? columnOf(table, sort.column) : undefined;
  const position = after ? buildAfter(key && sql`${key}`, sql`${table.uid}`, descending) : undefined;
  const order = [...(key ? [direction(key)] : []), direction(table.uid)];
  const rows = q.select(selectColumns(kind, t)).from(t.topsIn("tops"));
  const isRow = eq(table.uid, t.uidBelow(top, t.textEntries.below));
  return (
    equals.length > 0
      ? applyJoins(rows, kind, t, undefined, table).where(and(buildTopsCondition(shape, t), position))
      : applyJoins(rows, kind, t, isRow, t.textEntries).where(and(buildNameCondition(t), position))
  )
    .orderBy(...order)
    .limit(value("limit"));
});

/** Counts the rows of all pages of {@link manyPageStatement}. Parameters: `tops`, `list`, `name`, those of `equals`. */
export const manyCountStatement = statementFamily<ManyShape, ListParams, { total: number }>(
  manyKey,
  (shape) => (q, t) => {
    const { kind, equals } = shape;
    const counted = { total: toNumber(sql`count(*)`) };
    const rows = q.select(counted).from(t.topsIn("tops"));
    return (
      equals.length > 0
        ? rows.crossJoin(kind.table(t)).where(buildTopsCondition(shape, t))
        : rows.crossJoin(t.textEntries).where(buildNameCondition(t))
    ) as Preparable;
  },
);

const buildNameCondition = (t: Tables) =>
  and(
    eq(t.textEntries.list, value("list")),
    eq(t.textEntries.scope, scopeOf(t, top)),
    eq(t.textEntries.key, value("name")),
  );

// Reads subtree by subtree through the primary key: an index of a filtered column would be scanned
// completely for each subtree, so `coalesce` keeps the planner from using one. SQLite does not reorder
// a cross join.
function buildTopsCondition(shape: ManyShape, t: Tables): SQL | undefined {
  const { uid } = shape.kind.table(t);
  const inScope = sql`${uid} > ${top} and ${uid} < ${top} || '0'`;
  return buildConditions({ ...shape, from: "subtree" }, t, inScope, (column) => sql`coalesce(${column}, ${column})`);
}
