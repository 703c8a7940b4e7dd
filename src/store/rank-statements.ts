// The statements of ranks (ranks.ts). Those that read entries exist in two forms, because lists ordered by uid have
// none: their rows are read from the kind's own table.
import { and, asc, eq, gte, lt, lte, type SQL, sql } from "drizzle-orm";
import { entryTableOf, toNumber } from "./list-statements.js";
import type { ResourceIndex } from "./resource-index.js";
import { type Sql, statement, statementFamily, value } from "./statement.js";
import type { Tables } from "./tables.js";

/** The type of a list's keys; each has its tables. */
export type KeyType = "text" | "time";

/** The values of a rank statement, by their names. */
export type RankParams = Record<string, string | number | Buffer | null>;

/** A position in a list: the sort key, and the segments of the uid below the scope, 8 bytes each. */
export interface RankPosition {
  readonly key: string | number;
  readonly below: Buffer;
}

/** The slot of the row that marks a boundary; it is greater than those that concurrent writers add to. */
export const BASE_SLOT = 1_000;

/** Stands for the entries of a bucket that is not counted: more than any list has. */
export const UNCOUNTED = 1e15;

// The tables of both types have the same columns; only the type of the key differs.
const rankTable = (type: KeyType, t: Tables) => (type === "text" ? t.textRanks : t.timeRanks) as typeof t.textRanks;

/** A boundary that {@link boundariesAt} found; `i` is the number of the position that was looked for. */
export interface FoundBoundary extends RankPosition {
  readonly i: number;
  readonly n: number | null;
}

/**
 * Reads the last boundary at or before each of `size` positions. Parameters: `list0`, `scope0`, `key0`, `below0` and
 * so on. A list without ranks has no row in the result.
 */
export const boundariesAt = statementFamily<{ type: KeyType; size: number }, RankParams, FoundBoundary>(
  ({ type, size }) => `${type}${size}`,
  ({ type, size }) =>
    (q, t) => {
      const r = rankTable(type, t);
      // In this order the base row of a boundary is the first. On PostgreSQL no other may be read: concurrent writers
      // change them, and each would conflict with this one.
      const last = (i: number) =>
        sql`select * from (select ${sql.raw(String(i))} as i, ${r.key}, ${r.below}, ${r.n} from ${r} where ${and(
          eq(r.list, value(`list${i}`)),
          eq(r.scope, value(`scope${i}`)),
          sql`(${r.key}, ${r.below}) <= (${value(`key${i}`)}, ${value(`below${i}`)})`,
        )} order by ${r.key} desc, ${r.below} desc, ${r.slot} desc limit 1) b${sql.raw(String(i))}`;
      const all = sql.join(
        Array.from({ length: size }, (_, i) => last(i)),
        sql` union all `,
      );
      return q
        .select({
          i: sql<number>`i`.as("i"),
          key: sql`${sql.identifier("key")}`.mapWith(r.key).as("key"),
          below: sql`below`.mapWith(r.below).as("below"),
          n: sql<number | null>`n`.mapWith(Number).as("n"),
        })
        .from(sql`(${all}) found`);
    },
);

/** A row of ranks. */
export interface RankRow extends RankPosition {
  readonly list: number;
  readonly scope: number;
  readonly n: number;
}

/**
 * Adds to `size` buckets, no two the same. Parameters: `slot`; `list0`, `scope0`, `key0`, `below0`, `n0` and so on.
 * Returns what the slots contain then, where `returning` is set: it doubles the cost on SQLite.
 */
export const addToBuckets = statementFamily<{ type: KeyType; size: number; returning: boolean }, RankParams, RankRow>(
  ({ type, size, returning }) => `${type}${size}${returning}`,
  ({ type, size, returning }) =>
    (q, t) => {
      const r = rankTable(type, t);
      const insert = q
        .insert(r)
        .values(Array.from({ length: size }, (_, i) => rankValues(value("slot"), String(i))))
        .onConflictDoUpdate({
          target: [r.scope, r.list, r.key, r.below, r.slot],
          set: { n: sql`${r.n} + excluded.n` },
        });
      return returning
        ? insert.returning({ list: r.list, scope: r.scope, key: r.key, below: r.below, n: r.n })
        : insert;
    },
);

/** Sets the base row of a bucket. Parameters: `list`, `scope`, `key`, `below`, `n`. */
export const putBucket = statementFamily<KeyType, RankParams>(String, (type) => (q, t) => {
  const r = rankTable(type, t);
  return q
    .insert(r)
    .values(rankValues(sql`${BASE_SLOT}`, ""))
    .onConflictDoUpdate({ target: [r.scope, r.list, r.key, r.below, r.slot], set: { n: sql`excluded.n` } });
});

function rankValues(slot: ReturnType<typeof value> | SQL, suffix: string) {
  const valueFor = (name: string) => value(`${name}${suffix}`);
  return {
    list: valueFor("list"),
    scope: valueFor("scope"),
    key: valueFor("key"),
    below: valueFor("below"),
    slot: slot as SQL,
    n: valueFor("n"),
  };
}

const isBucket = (r: Tables["textRanks"]) =>
  and(eq(r.list, value("list")), eq(r.scope, value("scope")), eq(r.key, value("key")), eq(r.below, value("below")));

/** Reads how many entries a bucket has. Parameters: `list`, `scope`, `key`, `below`. */
export const bucketSize = statementFamily<KeyType, RankParams, { n: number }>(String, (type) => (q, t) => {
  const r = rankTable(type, t);
  return q
    .select({ n: toNumber(sql`coalesce(sum(${r.n}), 0)`).as("n") })
    .from(r)
    .where(isBucket(r));
});

/** Deletes the rows of a bucket, or all but the base row. Parameters: `list`, `scope`, `key`, `below`. */
export const deleteBucket = statementFamily<{ type: KeyType; slots: boolean }, RankParams>(
  ({ type, slots }) => `${type}${slots}`,
  ({ type, slots }) =>
    (q, t) => {
      const r = rankTable(type, t);
      return q.delete(r).where(and(isBucket(r), slots ? lt(r.slot, BASE_SLOT) : undefined));
    },
);

/** Deletes the ranks of all lists of an ancestor. Parameter: `scope`. */
export const deleteRanksOf = statementFamily<KeyType, RankParams>(String, (type) => (q, t) => {
  const r = rankTable(type, t);
  return q.delete(r).where(eq(r.scope, value("scope")));
});

/** Marks an ancestor that has a list with ranks. */
export const markScope = statement<{ scope: number }>((q, t) =>
  q
    .update(t.scopes)
    .set({ ranked: true })
    .where(eq(t.scopes.id, value("scope"))),
);

/** Reads the last boundary of a list. Parameters: `list`, `scope`. */
export const lastBoundary = statementFamily<KeyType, RankParams, RankPosition & { n: number | null }>(
  String,
  (type) => (q, t) => {
    const r = rankTable(type, t);
    return q
      .select({ key: r.key, below: r.below, n: r.n })
      .from(r)
      .where(and(eq(r.list, value("list")), eq(r.scope, value("scope"))))
      .orderBy(sql`${r.key} desc`, sql`${r.below} desc`, sql`${r.slot} desc`)
      .limit(1);
  },
);

/** A bucket, and how many entries lie between it and where the search began. */
export interface FoundBucket extends RankPosition {
  readonly n: number;
  readonly before: number;
}

/** The shape of {@link bucketOf}. */
interface BucketShape {
  readonly type: KeyType;
  readonly descending: boolean;
  /** Whether the search begins at the boundary in `key` and `below`, which descending searches exclude. */
  readonly from: boolean;
  /** Whether buckets have several rows. */
  readonly slotted: boolean;
}

/**
 * Finds the bucket with the entry number `skip`, counted from 1 in the direction of the search. Parameters: `list`,
 * `scope`, `skip`, and `key` and `below` where the search begins at a boundary.
 */
export const bucketOf = statementFamily<BucketShape, RankParams, FoundBucket>(
  ({ type, descending, from, slotted }) => [type, descending, from, slotted].join(" "),
  ({ type, descending, from, slotted }) =>
    (q, t) => {
      const r = rankTable(type, t);
      const direction = sql.raw(descending ? "desc" : "asc");
      const n = sql`coalesce(${r.n}, ${sql.raw(String(UNCOUNTED))})`;
      const rows = q
        .select({ key: r.key, below: r.below, n: (slotted ? sql`sum(${n})` : n).as("n") })
        .from(r)
        .where(
          and(
            eq(r.list, value("list")),
            eq(r.scope, value("scope")),
            from
              ? sql`(${r.key}, ${r.below}) ${sql.raw(descending ? "<" : ">=")} (${value("key")}, ${value("below")})`
              : undefined,
          ),
        );
      const buckets = (slotted ? rows.groupBy(r.key, r.below) : rows).as("buckets");
      const order = sql`order by ${buckets.key} ${direction}, ${buckets.below} ${direction}`;
      const sums = q
        .select({
          key: buckets.key,
          below: buckets.below,
          n: sql`${buckets.n}`.as("n"),
          upTo: sql`sum(${buckets.n}) over (${order} rows unbounded preceding)`.as("up_to"),
        })
        .from(buckets)
        .as("sums");
      // One bucket meets the condition, so the order of the rows does not matter.
      return q
        .select({
          key: sums.key,
          below: sums.below,
          n: toNumber(sql`${sums.n}`).as("n"),
          before: toNumber(sql`${sums.upTo} - ${sums.n}`).as("before"),
        })
        .from(sums)
        .where(and(sql`${sums.upTo} >= ${value("skip")}`, sql`${sums.upTo} - ${sums.n} < ${value("skip")}`))
        .limit(1);
    },
);

/** Reads the entry after `offset` others from a position on. Parameters: `list`, `scope`, `key`, `below`, `offset`. */
export const entryAt = statementFamily<KeyType, RankParams, RankPosition>(String, (type) => (q, t) => {
  const e = entryTableOf(type, t);
  return q
    .select({ key: e.key, below: e.below })
    .from(e)
    .where(buildEntryRange(e))
    .orderBy(asc(e.key), asc(e.below))
    .limit(1)
    .offset(value("offset"));
});

/** As {@link entryAt} for a list in order of uid. Parameters: `from` and `end`, the uids of the range, and `offset`. */
export const uidAt = statementFamily<ResourceIndex, RankParams, { uid: string }>(
  ({ counter }) => String(counter),
  (kind) => (q, t) => {
    const { uid } = kind.table(t);
    return q
      .select({ uid })
      .from(kind.table(t))
      .where(and(gte(uid, value("from")), lt(uid, value("end")), kind.where?.condition(t)))
      .orderBy(asc(uid))
      .limit(1)
      .offset(value("offset"));
  },
);

/** Which entries {@link countEntries} counts: those before a position, those up to it, or all that follow. */
export type CountEnd = "before" | "upTo" | "last";

/** Counts entries from a position on. Parameters: `list`, `scope`, `key`, `below`, and `endKey` and `endBelow`. */
export const countEntries = statementFamily<{ type: KeyType; end: CountEnd }, RankParams, { n: number }>(
  ({ type, end }) => `${type}${end}`,
  ({ type, end }) =>
    (q: Sql, t: Tables) => {
      const e = entryTableOf(type, t);
      const sign = sql.raw(end === "before" ? "<" : "<=");
      return q
        .select({ n: toNumber(sql`count(*)`).as("n") })
        .from(e)
        .where(
          and(
            buildEntryRange(e),
            end === "last" ? undefined : sql`(${e.key}, ${e.below}) ${sign} (${value("endKey")}, ${value("endBelow")})`,
          ),
        );
    },
);

/** As {@link countEntries} for a list in order of uid. Parameters: `from` and `end`, the uids of the range. */
export const countUids = statementFamily<{ kind: ResourceIndex; withEnd: boolean }, RankParams, { n: number }>(
  ({ kind, withEnd }) => `${kind.counter} ${withEnd}`,
  ({ kind, withEnd }) =>
    (q, t) => {
      const { uid } = kind.table(t);
      return q
        .select({ n: toNumber(sql`count(*)`).as("n") })
        .from(kind.table(t))
        .where(and(gte(uid, value("from")), (withEnd ? lte : lt)(uid, value("end")), kind.where?.condition(t)));
    },
);

function buildEntryRange(e: Tables["textEntries"]): SQL | undefined {
  return and(
    eq(e.list, value("list")),
    eq(e.scope, value("scope")),
    sql`(${e.key}, ${e.below}) >= (${value("key")}, ${value("below")})`,
  );
}
