// The statements for lists over many subtrees: each answers for hundreds of them
// at a cost that follows from their number.
import { and, asc, desc, eq, type SQL, sql } from "drizzle-orm";
import { inTable, type ListParams, orderTableOf, past, shownOf, total, value, withJoined } from "./list-statements.js";
import { columnOf, type IndexedRow, type ResourceIndex } from "./resource-index.js";
import { type Preparable, statementFamily } from "./statement.js";
import type { Tables } from "./tables.js";

/** Which rows of many subtrees a statement is about; each includes its top. */
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
 * The first entry of each subtree in the order of a field, behind a position if there is one.
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
          after ? past(sql`${o.key}`, sql`${o.uid}`, descending) : undefined,
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

/** The entries of one subtree behind a position. Parameters: `scope`, `list`, `key`, `uid`, `limit`. */
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
          and(eq(o.list, value("list")), eq(o.scope, value("scope")), past(sql`${o.key}`, sql`${o.uid}`, descending)),
        )
        .orderBy(direction(o.key), direction(o.uid))
        .limit(value("limit"));
    },
);

/** An entry of an order table; `uid` is null for the head of a subtree with nothing in it. */
export interface OrderEntry {
  readonly scope: string;
  readonly key: string | number;
  readonly uid: string | null;
}

/** What the counter of each subtree says. Parameters: `scopes`, `counter`. */
export const countersStatement = statementFamily<"counters", ListParams, { scope: string; total: number }>(
  String,
  () => (q, t) =>
    q
      .select({
        scope: sql<string>`${scope}`.as("scope"),
        total: total(
          sql`(select coalesce(sum(${t.counters.n}), 0) from ${t.counters} where ${and(
            eq(t.counters.counter, value("counter")),
            sql`${t.counters.scope} = ${scope}`,
          )})`,
        ).as("total"),
      })
      .from(t.scopesIn("scopes")) as Preparable,
)("counters");

/**
 * The rows with one name, or with given values, in any of several subtrees, as one page. Parameters as of
 * {@link pageStatement}, but `scopes` for `scope`.
 */
export const manyPageStatement = statementFamily<ManyShape, ListParams, IndexedRow>(manyKey, (shape) => (q, t) => {
  const { kind, field, descending, after, equals } = shape;
  const table = kind.table(t);
  const direction = descending ? desc : asc;
  const sort = kind.sorts[field];
  // Those of one name stand in the order of their uids.
  const key = sort && (equals.length > 0 || sort.type !== "text") ? columnOf(table, sort.column) : undefined;
  const uid = equals.length > 0 ? table.uid : t.textOrder.uid;
  const position = after ? past(key && sql`${key}`, sql`${uid}`, descending) : undefined;
  const order = [...(key ? [direction(key)] : []), direction(uid)];
  return (
    equals.length > 0
      ? withJoined(q.select(shownOf(kind, t)).from(t.scopesIn("scopes")), kind, t, undefined, table).where(
          and(inScopes(shape, t), position),
        )
      : withJoined(q.select(shownOf(kind, t)).from(t.textOrder), kind, t, eq(table.uid, uid)).where(
          and(namedIn(t), position),
        )
  )
    .orderBy(...order)
    .limit(value("limit"));
});

/** How many rows {@link manyPageStatement} would find. Parameters: `scopes`, `list`, `name`, those of `equals`. */
export const manyCountStatement = statementFamily<ManyShape, ListParams, { total: number }>(
  manyKey,
  (shape) => (q, t) => {
    const { kind, equals } = shape;
    const counted = { total: total(sql`count(*)`) };
    if (equals.length === 0) return q.select(counted).from(t.textOrder).where(namedIn(t));
    return q
      .select(counted)
      .from(t.scopesIn("scopes"))
      .crossJoin(kind.table(t))
      .where(inScopes(shape, t)) as Preparable;
  },
);

const namedIn = (t: Tables) =>
  and(eq(t.textOrder.list, value("list")), t.anyOf(t.textOrder.scope, "scopes"), eq(t.textOrder.key, value("name")));

// Subtree by subtree through the primary key: an index of a filtered column would be gone through as a
// whole for each subtree, so none may serve. SQLite keeps to the order of a cross join.
function inScopes(shape: ManyShape, t: Tables): SQL | undefined {
  const { uid } = shape.kind.table(t);
  const place = sql`${uid} >= ${scope} and ${uid} < ${scope} || '0'`;
  return inTable(
    { ...shape, from: "subtree", withSelf: true },
    t,
    place,
    (column) => sql`coalesce(${column}, ${column})`,
  );
}
