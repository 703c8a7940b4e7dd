// The statements for lists over many subtrees: each reads hundreds of subtrees, at a cost that depends on
// their number.
import { and, asc, desc, eq, type SQL, sql } from "drizzle-orm";
import {
  applyJoins,
  buildAfter,
  buildConditions,
  type ListParams,
  orderTableOf,
  selectColumns,
  toNumber,
  value,
} from "./list-statements.js";
import { columnOf, type IndexedRow, type ResourceIndex } from "./resource-index.js";
import { type Preparable, statementFamily } from "./statement.js";
import type { Tables } from "./tables.js";

/** The rows of many subtrees that a statement reads; each subtree includes its top. */
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
const scope = sql.raw("scopes.scope");

/**
 * Reads the first entry of each subtree in the order of a field, after a position if there is one.
 * Parameters: `scopes`, `list`, `key`, `uid`.
 */
export const headsStatement = statementFamily<ManyShape, ListParams, OrderEntry>(
  manyKey,
  ({ kind, field, descending, after }) =>
    (q, t) => {
      const o = orderTableOf(kind, field, t);
      const direction = descending ? desc : asc;
      const first = (column: typeof o.uid | typeof o.key) =>
        sql`(select ${column} from ${o} where ${and(
          eq(o.list, value("list")),
          sql`${o.scope} = ${scope}`,
          after ? buildAfter(sql`${o.key}`, sql`${o.uid}`, descending) : undefined,
        )} order by ${direction(o.key)}, ${direction(o.uid)} limit 1)`;
      return q
        .select({
          scope: sql<string>`${scope}`.as("scope"),
          key: first(o.key).mapWith(o.key).as("key"),
          uid: first(o.uid).as("uid"),
        })
        .from(t.scopesIn("scopes")) as Preparable;
    },
);

/** Reads the entries of one subtree after a position. Parameters: `scope`, `list`, `key`, `uid`, `limit`. */
export const entriesStatement = statementFamily<ManyShape, ListParams, OrderEntry>(
  manyKey,
  ({ kind, field, descending }) =>
    (q, t) => {
      const o = orderTableOf(kind, field, t);
      const direction = descending ? desc : asc;
      return q
        .select({ scope: o.scope, key: o.key, uid: o.uid })
        .from(o)
        .where(
          and(
            eq(o.list, value("list")),
            eq(o.scope, value("scope")),
            buildAfter(sql`${o.key}`, sql`${o.uid}`, descending),
          ),
        )
        .orderBy(direction(o.key), direction(o.uid))
        .limit(value("limit"));
    },
);

/** An entry of an order table; `uid` is null for the head of an empty subtree. */
export interface OrderEntry {
  readonly scope: string;
  readonly key: string | number;
  readonly uid: string | null;
}

/** Reads the counter of each subtree. Parameters: `scopes`, `counter`. */
export const countersStatement = statementFamily<"counters", ListParams, { scope: string; total: number }>(
  String,
  () => (q, t) =>
    q
      .select({
        scope: sql<string>`${scope}`.as("scope"),
        total: toNumber(
          sql`(select coalesce(sum(${t.counters.n}), 0) from ${t.counters} where ${and(
            eq(t.counters.counter, value("counter")),
            sql`${t.counters.scope} = ${scope}`,
          )})`,
        ).as("total"),
      })
      .from(t.scopesIn("scopes")) as Preparable,
)("counters");

/**
 * Reads a page of the rows with one name, or with given values, in any of several subtrees. Parameters as for
 * {@link pageStatement}, but `scopes` instead of `scope`.
 */
export const manyPageStatement = statementFamily<ManyShape, ListParams, IndexedRow>(manyKey, (shape) => (q, t) => {
  const { kind, field, descending, after, equals } = shape;
  const table = kind.table(t);
  const direction = descending ? desc : asc;
  const sort = kind.sorts[field];
  // Rows of the same name are in the order of their uids.
  const key = sort && (equals.length > 0 || sort.type !== "text") ? columnOf(table, sort.column) : undefined;
  const uid = equals.length > 0 ? table.uid : t.textOrder.uid;
  const position = after ? buildAfter(key && sql`${key}`, sql`${uid}`, descending) : undefined;
  const order = [...(key ? [direction(key)] : []), direction(uid)];
  return (
    equals.length > 0
      ? applyJoins(q.select(selectColumns(kind, t)).from(t.scopesIn("scopes")), kind, t, undefined, table).where(
          and(buildScopesCondition(shape, t), position),
        )
      : applyJoins(q.select(selectColumns(kind, t)).from(t.textOrder), kind, t, eq(table.uid, uid)).where(
          and(buildNameCondition(t), position),
        )
  )
    .orderBy(...order)
    .limit(value("limit"));
});

/** Counts the rows of all pages of {@link manyPageStatement}. Parameters: `scopes`, `list`, `name`, those of `equals`. */
export const manyCountStatement = statementFamily<ManyShape, ListParams, { total: number }>(
  manyKey,
  (shape) => (q, t) => {
    const { kind, equals } = shape;
    const counted = { total: toNumber(sql`count(*)`) };
    if (equals.length === 0) return q.select(counted).from(t.textOrder).where(buildNameCondition(t));
    return q
      .select(counted)
      .from(t.scopesIn("scopes"))
      .crossJoin(kind.table(t))
      .where(buildScopesCondition(shape, t)) as Preparable;
  },
);

const buildNameCondition = (t: Tables) =>
  and(eq(t.textOrder.list, value("list")), t.anyOf(t.textOrder.scope, "scopes"), eq(t.textOrder.key, value("name")));

// Reads subtree by subtree through the primary key: an index of a filtered column would be scanned
// completely for each subtree, so `coalesce` keeps the planner from using one. SQLite does not reorder
// a cross join.
function buildScopesCondition(shape: ManyShape, t: Tables): SQL | undefined {
  const { uid } = shape.kind.table(t);
  const inScope = sql`${uid} >= ${scope} and ${uid} < ${scope} || '0'`;
  return buildConditions(
    { ...shape, from: "subtree", withSelf: true },
    t,
    inScope,
    (column) => sql`coalesce(${column}, ${column})`,
  );
}
