// Whether the ranks of long lists are the numbers of entries between two of their positions.
import { getTableName, type SQL, sql } from "drizzle-orm";
import { uidBelow } from "../../kernel/uidp.js";
import * as schema from "../schema-sqlite.js";
import { buildRepairable, type Check, type CheckContext } from "./findings.js";
import { type CheckedKind, checkedKinds, checkedLists, entryTables } from "./index-lists.js";

const PER_PAGE = 500;

const rankTables = { text: schema.textRanks, time: schema.timeRanks } as const;

/** A position in a list, with the number of entries from it to the next one; null where they are not counted yet. */
interface Boundary {
  readonly list: number;
  readonly scope: number;
  readonly key: string | number;
  readonly below: Buffer;
  readonly n: number | null;
}

/** Compares the ranks with the entries, or with the rows where they rank the order of uids. */
export const rankCheck: Check = {
  name: "ranks",
  async run(context) {
    for (const type of ["text", "time"] as const) {
      let after: Boundary | undefined;
      let before: Boundary | undefined;
      for (;;) {
        const page = await readBoundaries(context, type, after);
        for (const boundary of page) {
          if (before !== undefined) await compareBoundary(context, type, before, boundary);
          if (!isSameList(before, boundary)) await compareStart(context, type, boundary);
          before = boundary;
        }
        after = page.at(-1);
        if (after === undefined) break;
        context.progress(`scope ${after.scope}`);
      }
      if (before !== undefined) await compareBoundary(context, type, before, undefined);
      await findUnmarkedScopes(context, type);
    }
  },
};

async function readBoundaries(
  { db }: CheckContext,
  type: "text" | "time",
  after: Boundary | undefined,
): Promise<Boundary[]> {
  const from = after
    ? sql`where (scope, list, key, below) > (${after.scope}, ${after.list}, ${after.key}, ${after.below})`
    : sql``;
  const rows = await db.all<Boundary & { slots: number; counted: number }>(sql`select list, scope, key, below,
    count(*) as slots, count(n) as counted, sum(n) as n from ${rankTables[type]} ${from}
    group by scope, list, key, below order by scope, list, key, below limit ${PER_PAGE}`);
  return rows.map(({ list, scope, key, below, slots, counted, n }) => ({
    list,
    scope: Number(scope),
    key: type === "time" ? Number(key) : key,
    below,
    n: Number(slots) === Number(counted) ? Number(n) : null,
  }));
}

// Writers adjust the ranks of marked scopes alone.
async function findUnmarkedScopes({ db, report }: CheckContext, type: "text" | "time"): Promise<void> {
  const rows = await db.all<{ scope: number; uid: string }>(sql`select id as scope, uid from ${schema.scopes}
    where not ranked and exists (select 1 from ${rankTables[type]} r where r.scope = id) order by id limit 1000`);
  for (const { scope, uid } of rows) {
    const problem = `lists of scope ${scope} have ranks, and it is not marked as ranked`;
    report("scopes.ranked", buildRepairable("scopes", uid, problem));
  }
}

function isSameList(a: Boundary | undefined, b: Boundary | undefined): boolean {
  return a !== undefined && b !== undefined && a.list === b.list && a.scope === b.scope;
}

async function compareBoundary(
  context: CheckContext,
  type: "text" | "time",
  boundary: Boundary,
  next: Boundary | undefined,
): Promise<void> {
  if (boundary.n === null) return;
  const end = next && isSameList(boundary, next) ? next : undefined;
  const n = await countBetween(context, type, boundary, boundary, end);
  if (n === boundary.n) return;
  const problem =
    n === undefined ? "nothing declares its list" : `the rank is ${boundary.n}, and there are ${n} entries`;
  reportRank(context, type, boundary, problem);
}

// Entries before the first position would be counted nowhere.
async function compareStart(context: CheckContext, type: "text" | "time", first: Boundary): Promise<void> {
  const n = await countBetween(context, type, first, undefined, first);
  if (n) reportRank(context, type, first, `it is the first position of its list, and there are ${n} entries before it`);
}

async function countBetween(
  { db }: CheckContext,
  type: "text" | "time",
  { list, scope }: Boundary,
  from: Boundary | undefined,
  end: Boundary | undefined,
): Promise<number | undefined> {
  const kind = checkedKinds.find(({ descendantsByUid }) => list === descendantsByUid);
  if (kind !== undefined) return countRows(db.all, kind, scope, from?.below, end?.below);
  if (checkedLists.get(list)?.type !== type) return undefined;
  const position = (one: Boundary) => sql`(${one.key}, ${one.below})`;
  return takeCount(
    db.all,
    sql`select count(*) as n from ${entryTables[type]} where list = ${list} and scope = ${scope}
      ${from ? sql`and (key, below) >= ${position(from)}` : sql``}
      ${end ? sql`and (key, below) < ${position(end)}` : sql``}`,
  );
}

// In the order of uids the rows themselves are the entries.
async function countRows(
  all: CheckContext["db"]["all"],
  { table, where }: CheckedKind,
  scope: number,
  from: Buffer | undefined,
  end: Buffer | undefined,
): Promise<number> {
  const [row] = await all<{ uid: string }>(sql`select uid from ${schema.scopes} where id = ${scope}`);
  if (row === undefined) return 0;
  return takeCount(
    all,
    sql`select count(*) as n from ${table} where ${table.uid} > ${`${row.uid}/`} and ${table.uid} < ${`${row.uid}0`}
      and ${where} ${from ? sql`and ${table.uid} >= ${uidBelow(from, row.uid)}` : sql``}
      ${end ? sql`and ${table.uid} < ${uidBelow(end, row.uid)}` : sql``}`,
  );
}

async function takeCount(all: CheckContext["db"]["all"], query: SQL): Promise<number> {
  const [row] = await all<{ n: number | string }>(query);
  return Number(row?.n ?? 0);
}

function reportRank({ report }: CheckContext, type: "text" | "time", boundary: Boundary, problem: string): void {
  const { list, scope, key, below } = boundary;
  const table = getTableName(rankTables[type]);
  const position = `list=${list}, scope=${scope}, key=${key}, below=${below.toString("hex")}`;
  report(table, buildRepairable(table, position, problem));
}
