// The statements that find advisories by the values of filters.
import { and, asc, desc, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import type { ListPosition } from "../lists/query.js";
import type { ListedKind } from "../lists/resource.js";
import { param, unindexed } from "../lists/statements.js";
import { columnOf, rowLimit, type Sql, statement, statementFamily, toNumber, value } from "../statement.js";
import type { Tables } from "../tables/tables.js";

type Params = Record<string, string | number>;

/** The parameters that these statements take besides those of lists (lists/statements.ts). */
export const searchParam = {
  /** A condition as `isOneOf` takes it: the number of a filter and some values. */
  driver: "$driver",
  excluded: "$excluded",
  text: "$text",
  /** Numbers of advisories: at least the first, and less than the second. */
  from: "$from",
  to: "$to",
} as const;

/** The parameter of another condition than the one that drives. */
export const otherParam = (i: number) => `$other${i}`;

const selectNumber = (column: AnySQLiteColumn | SQL) => sql<number>`${column}`.mapWith(Number).as("number");

const driven = (q: Sql, { advisoryValues: v, isOneOf }: Tables) =>
  q
    .select({ number: v.number })
    .from(v)
    .where(and(eq(v.rootUid, value(param.root)), isOneOf(v.filter, v.value, searchParam.driver)))
    .limit(rowLimit(param.limit));

/** Reads the numbers of advisories of an organisation that meet the driving condition; with several values some repeatedly. */
export const drivenNumbers = statement<Params, { number: number }>(driven);

/** Counts them. */
export const countDriven = statement<Params, { count: number }>((q, t) =>
  q.select({ count: toNumber(sql`count(*)`).as("count") }).from(driven(q, t).as("driven")),
);

/** Reads how many texts the index of texts searches at a time; 0 where there is none. */
export const searchedTexts = statement<object, { texts: number }>((q, t) =>
  q.select({ texts: toNumber(t.searchedTexts).as("texts") }).from(sql`(select 1) one`),
);

/** Reads the numbers of advisories of any organisation by the index of texts; see `foundTexts`. */
export const textNumbers = statement<Params, { number: number }>((q, t) =>
  q.select({ number: selectNumber(sql`number`) }).from(t.foundTexts),
);

// Reads all advisories of an organisation with numbers of a range. PostgreSQL has no other way to this order than the
// index, because it avoids sorts.
function readAll(q: Sql, t: Tables, direction: typeof asc | typeof desc = asc) {
  const { number, rootUid } = t.advisories;
  const range = { low: value(searchParam.from), end: value(searchParam.to) };
  return q
    .select({ root: sql`${rootUid}`.as("root_uid"), number: selectNumber(number) })
    .from(t.readBy(t.advisories, "advisories_by_number"))
    .where(t.inIndexRange([rootUid], [value(param.root)], number, range))
    .orderBy(direction(rootUid), direction(number));
}

/** Reads the greatest number of an organisation. */
export const lastNumber = statement<Params, { number: number }>((q, t) => readAll(q, t, desc).limit(rowLimit(1)));

/** Reads the number of an advisory that follows some others of an organisation; none where there are not so many. */
export const nthNumber = statement<Params, { number: number }>((q, t) =>
  readAll(q, t).limit(rowLimit(1)).offset(rowLimit(param.skip)),
);

/** The matching advisories among the numbers of a range. */
export interface MatchShape {
  readonly read: "count" | "numbers";
  /** Whether the values of one condition lead to the advisories; otherwise all of the organisation are tried. */
  readonly isDriven: boolean;
  /** Whether that condition has several values, so that it leads to some advisories repeatedly. */
  readonly hasDuplicates: boolean;
  /** How many other conditions there are. */
  readonly others: number;
  readonly hasExcluded: boolean;
  readonly hasText: boolean;
  /** Whether uids are compared with the range of a part, or with the children of a group. */
  readonly among: "all" | "subtree" | "children";
}

/** Counts or reads the numbers of matching advisories. */
export const matchStatement = statementFamily<MatchShape, Params, { number: number }>(
  (shape) => Object.values(shape).join(" "),
  (shape) => (q, t) => {
    const { read, isDriven, hasDuplicates, others, hasExcluded, hasText, among } = shape;
    const d = { root: sql`d.root_uid`, filter: sql`d.filter`, value: sql`d.value`, number: sql`d.number` };
    const range = { low: value(searchParam.from), end: value(searchParam.to) };
    const driver = isDriven ? sql`${t.advisoryValues} d` : sql`${readAll(q, t).as("d")}`;
    // The columns of the advisory itself are not in an index.
    const readsRow = hasText || among !== "all";
    const from = readsRow ? sql`${driver} cross join ${t.advisories} a` : driver;
    // The advisory is looked up by its number alone.
    const uid = unindexed(sql`a.uid`);
    const number = hasDuplicates ? sql`distinct ${d.number}` : d.number;
    return q
      .select({ number: read === "count" ? toNumber(sql`count(${number})`).as("number") : selectNumber(number) })
      .from(from)
      .where(
        and(
          isDriven
            ? and(
                eq(d.root, value(param.root)),
                t.isOneOf(d.filter, d.value, searchParam.driver),
                gte(d.number, range.low),
                lt(d.number, range.end),
              )
            : undefined,
          readsRow ? sql`a.number = ${d.number}` : undefined,
          among === "all" ? undefined : and(gte(uid, value(param.low)), lt(uid, value(param.end))),
          among === "children" ? sql`length(${uid}) = ${value(param.length)}` : undefined,
          ...Array.from({ length: others }, (_, i) => sql`${isAmong(t, otherParam(i))} is true`),
          hasExcluded ? sql`${isAmong(t, searchParam.excluded)} is not true` : undefined,
          hasText ? t.contains(sql`a.searched`, searchParam.text) : undefined,
        ),
      );
  },
);

// The numbers of the range that meet the condition are read once. As a join, which PostgreSQL would make of it without
// `is true`, each number would be looked up for each of the values.
function isAmong(t: Tables, name: string): SQL {
  const v = { filter: sql`v.filter`, value: sql`v.value` };
  return sql`(d.number in (select v.number from ${t.advisoryValues} v where v.root_uid = ${value(param.root)}
    and ${t.isOneOf(v.filter, v.value, name)} and v.number >= ${value(searchParam.from)} and v.number < ${value(searchParam.to)}))`;
}

/** The shape of {@link positionsByNumber}: the field of the order, and the filters of the kind that must match. */
export interface PositionShape {
  readonly kind: ListedKind;
  readonly field: string;
  readonly filters: readonly string[];
}

/** Reads the positions of advisories by their numbers. Parameters: `numbers`, and those of the filters. */
export const positionsByNumber = statementFamily<PositionShape, Params, ListPosition>(
  ({ field, filters }) => [field, ...filters].join(" "),
  ({ kind, field, filters }) =>
    (q, t) => {
      const { advisories: a } = t;
      const key = kind.sorts[field] === undefined ? a.uid : columnOf(a, kind.sorts[field]);
      const matches = filters.map((name) => kind.filters?.[name]?.(t));
      return q
        .select({ key: sql<string | number>`${key}`.mapWith(key).as("entry_key"), uid: a.uid })
        .from(a)
        .where(and(t.anyNumberOf(a.number, "numbers"), ...matches));
    },
);
