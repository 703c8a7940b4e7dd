// The statements that lists are answered with, one per shape of question.
import { and, asc, desc, eq, getTableColumns, gt, gte, inArray, lt, ne, type SQL, sql } from "drizzle-orm";
import type { Listed } from "./list-upkeep.js";
import type { ListedKind } from "./listed-kind.js";
import { type Sql, statementFamily } from "./statement.js";
import type { Tables } from "./tables.js";

/** Values of a list statement; which there are depends on its shape. */
export type ListParams = Record<string, string | number>;

/** What makes one page query another statement than the next. */
export interface PageShape {
  readonly kind: ListedKind;
  readonly from: "subtree" | "children";
  /** The sort field; `uid` or one the kind declares. */
  readonly field: string;
  readonly descending: boolean;
  /** Whether the page begins after a position: parameters `key` and `uid`. */
  readonly after: boolean;
  /** Whether only rows with the parameter `name` count. */
  readonly named: boolean;
  /** Whether the top of a subtree is part of it. */
  readonly withSelf: boolean;
}

const value = (name: string) => sql.placeholder(name);

/**
 * A page. Parameters: `scope` (and `end`, the first uid beyond the subtree), `list` (of the order,
 * or of the name order when only a name counts), `skip`, `limit`.
 */
export const pageStatement = statementFamily<PageShape, ListParams, Listed>(
  (s) => [s.kind.counter, s.from, s.field, s.descending, s.after, s.named, s.withSelf].join(" "),
  (shape) => {
    if (shape.from === "children" || (shape.field === "uid" && !shape.named)) return plainPage(shape);
    return shape.named ? namedPage(shape) : orderedPage(shape);
  },
);

// Straight from the kind's table: children by their indexes, and subtrees in
// uid order, where the uid itself is the index.
function plainPage({ kind, from, field, descending, after, named, withSelf }: PageShape) {
  return (q: Sql, t: Tables) => {
    const table = kind.table(t);
    const sort = kind.sorts[field];
    const key = sort && table[sort.column];
    const direction = descending ? desc : asc;
    const place =
      from === "children"
        ? eq(table.parentUid, value("scope"))
        : and((withSelf ? gte : gt)(table.uid, value("scope")), lt(table.uid, value("end")));
    return q
      .select(getTableColumns(table))
      .from(table)
      .where(
        and(
          place,
          named ? eq(table.name, value("name")) : undefined,
          after ? past(key && sql`${key}`, sql`${table.uid}`, descending) : undefined,
        ),
      )
      .orderBy(...(key ? [direction(key)] : []), direction(table.uid))
      .limit(value("limit"))
      .offset(value("skip"));
  };
}

// By the order table: the entries of the page are found first, so that rows
// passed over by `skip` are never fetched.
function orderedPage({ kind, field, descending, after, withSelf }: PageShape) {
  return (q: Sql, t: Tables) => {
    const table = kind.table(t);
    const direction = descending ? desc : asc;
    // The text table stands for both: they differ in the type of the key alone.
    const o = (kind.sorts[field]?.type === "time" ? t.timeOrder : t.textOrder) as typeof t.textOrder;
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
    return q
      .select(getTableColumns(table))
      .from(entries)
      .innerJoin(table, eq(table.uid, entries.uid))
      .orderBy(direction(entries.key), direction(entries.uid));
  };
}

// Of one name: a range of the name order, at a cost bounded by how many share it.
function namedPage({ kind, field, descending, after, withSelf }: PageShape) {
  return (q: Sql, t: Tables) => {
    const table = kind.table(t);
    const direction = descending ? desc : asc;
    const sort = kind.sorts[field];
    const key = sort && sort.type !== "text" ? table[sort.column] : undefined;
    return q
      .select(getTableColumns(table))
      .from(t.textOrder)
      .innerJoin(table, eq(table.uid, t.textOrder.uid))
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

// As a row value: written as `key > ? OR (key = ? AND uid > ?)` the last page of
// a long list costs a hundred times the first.
function past(key: SQL | undefined, uid: SQL, descending: boolean): SQL {
  const sign = sql.raw(descending ? "<" : ">");
  return key ? sql`(${key}, ${uid}) ${sign} (${value("key")}, ${value("uid")})` : sql`${uid} ${sign} ${value("uid")}`;
}

/** How many rows of a subtree have a name. Parameters: `list`, `scope`, `name`. */
export const namedTotal = statementFamily<boolean, ListParams, { total: number }>(
  String,
  (withSelf) => (q, t) =>
    q
      .select({ total: total("count(*)") })
      .from(t.textOrder)
      .where(inNamedRange(t, withSelf)),
);

/** How many children of a group have a name. Parameters: `scope`, `name`. */
export const namedChildrenTotal = statementFamily<ListedKind, ListParams, { total: number }>(
  (kind) => String(kind.counter),
  (kind) => (q, t) => {
    const table = kind.table(t);
    return q
      .select({ total: total("count(*)") })
      .from(table)
      .where(and(eq(table.parentUid, value("scope")), eq(table.name, value("name"))));
  },
);

/** The value of a counter. Parameters: `counter`, `scope`. */
export const counterTotal = statementFamily<"counter", ListParams, { total: number }>(
  String,
  () => (q, t) =>
    q
      .select({ total: total("coalesce(sum(n), 0)") })
      .from(t.counters)
      .where(and(eq(t.counters.counter, value("counter")), eq(t.counters.scope, value("scope")))),
)("counter");

// Counts come from PostgreSQL as strings.
function total(expression: string): SQL<number> {
  return sql<number>`${sql.raw(expression)}`.mapWith(Number);
}

/** The rows with given uids. Parameters: `uid0`, `uid1` and so on. */
export const rowsByUid = statementFamily<{ kind: ListedKind; size: number }, ListParams, Listed>(
  ({ kind, size }) => `${kind.counter} ${size}`,
  ({ kind, size }) =>
    (q, t) => {
      const table = kind.table(t);
      const uids = Array.from({ length: size }, (_, i) => value(`uid${i}`));
      return q.select(getTableColumns(table)).from(table).where(inArray(table.uid, uids));
    },
);
