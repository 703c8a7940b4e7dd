// Whether the index of lists has an entry for every row below a scope and no other, and the right totals. All of it is read
// by the database, a page of scopes at a time, so that memory stays bounded.
import { getTableName, type SQL, sql } from "drizzle-orm";
import * as schema from "../schema-sqlite.js";
import { bytesBelowSql, isBelowSql } from "./database.js";
import { buildRepairable, type Check, type CheckContext } from "./findings.js";
import { type CheckedKind, type CheckedList, checkedKinds, checkedLists, entryTables } from "./index-lists.js";

/** Scopes whose lists are compared at once. */
const SCOPES_PER_PAGE = 200;
/** How many scopes, or lists of no scope, are named at most; more of them mean that the whole index is lost. */
const MAX_UNKNOWN = 1_000;

const { scopes, totals } = schema;
const SCOPE_UID = sql`s.uid`;
const SCOPE_ID = sql`s.id`;

/** A scope and its number. */
interface Scope {
  readonly id: number;
  readonly uid: string;
}

/** Compares scopes, entries and totals with the rows, in both directions. */
export const orderIndexCheck: Check = {
  name: "order index",
  async run(context) {
    await findUnnumberedScopes(context);
    await findScopesWithoutRow(context);
    await findUnknownLists(context);
    let after = 0;
    let done = 0;
    for (;;) {
      const page = await readScopes(context, after);
      const last = page.at(-1);
      if (last === undefined) return;
      await compareScopes(context, page, { after, to: last.id });
      after = last.id;
      done += page.length;
      context.progress(`${done} subtrees`);
    }
  },
};

async function readScopes({ db }: CheckContext, after: number): Promise<Scope[]> {
  const rows = await db.all<{ id: number | string; uid: string }>(
    sql`select id, uid from ${scopes} where id > ${after} order by id limit ${SCOPES_PER_PAGE}`,
  );
  return rows.map(({ id, uid }) => ({ id: Number(id), uid }));
}

// A parent has a number from its first row on. Its own ancestors are the parents of rows as well.
async function findUnnumberedScopes({ db, report, progress }: CheckContext): Promise<void> {
  for (const { table, parent, where, title } of checkedKinds) {
    progress(`parents of ${title}`);
    const rows = await db.all<{ uid: string; n: number }>(sql`select ${parent} as uid, count(*) as n from ${table}
      where ${parent} is not null and ${where}
      and not exists (select 1 from ${scopes} s where ${SCOPE_UID} = ${parent}) group by ${parent} limit ${MAX_UNKNOWN}`);
    for (const { uid, n } of rows) {
      const problem = `the scope is missing, although it has ${title}: ${n}`;
      report(`scope ${title}`, buildRepairable("scopes", uid, problem));
    }
  }
}

async function findScopesWithoutRow({ db, report, progress }: CheckContext): Promise<void> {
  progress("scopes");
  const ofTables = new Map(checkedKinds.map(({ table, title }) => [title, table]));
  const without = [...ofTables.values()].map(
    (table) => sql`not exists (select 1 from ${table} where ${table.uid} = ${SCOPE_UID})`,
  );
  const rows = await db.all<Scope>(
    sql`select id, uid from ${scopes} s where ${sql.join(without, sql` and `)} order by id limit ${MAX_UNKNOWN}`,
  );
  for (const { uid } of rows) report("scope without row", buildRepairable("scopes", uid, "no row has this uid"));
}

const COUNTERS = checkedKinds.flatMap(({ counter }) => [counter, counter + 1]);
const HAS_NO_SCOPE = sql`not exists (select 1 from ${scopes} s where ${SCOPE_ID} = scope)`;

// Entries and totals that belong to no list of an existing scope. The walk over the scopes does not reach them.
async function findUnknownLists({ db, report, progress }: CheckContext): Promise<void> {
  const reportUnknown = (table: string, name: string, scope: number | string, n: number | string) =>
    report(`${table} of unknown list`, {
      ...buildRepairable(
        table,
        `${name}, scope=${scope}`,
        `no kind declares the list, or there is no such scope; rows: ${n}`,
      ),
    });
  for (const [type, table] of Object.entries(entryTables)) {
    const name = getTableName(table);
    progress(`lists of ${name}`);
    const rows = await db.all<{ list: number; scope: number; n: number }>(
      sql`select list, scope, count(*) as n from ${table} where list not in (${formatNumbers(listsOf(type))})
        or ${HAS_NO_SCOPE} group by scope, list order by scope, list limit ${MAX_UNKNOWN}`,
    );
    for (const { list, scope, n } of rows) reportUnknown(name, `list=${list}`, scope, n);
  }
  const rows = await db.all<{ counter: number; scope: number; n: number }>(
    sql`select counter, scope, count(*) as n from ${totals} where counter not in (${formatNumbers(COUNTERS)})
      or ${HAS_NO_SCOPE} group by scope, counter having sum(n) <> 0 order by scope, counter limit ${MAX_UNKNOWN}`,
  );
  for (const { counter, scope, n } of rows) reportUnknown("totals", `counter=${counter}`, scope, n);
}

function listsOf(type: string): number[] {
  return [...checkedLists.values()].filter((one) => one.type === type).map(({ list }) => list);
}

function formatNumbers(numbers: readonly number[]): SQL {
  return sql.raw(numbers.join(", "));
}

/** The numbers of a page of scopes: more than `after`, up to `to`. */
interface IdRange {
  readonly after: number;
  readonly to: number;
}

/** What the rows of a kind below a scope say: their number, and how many have no entry, by list. */
interface ScopeRows {
  readonly rows: number;
  readonly children: number;
  readonly unlisted: ReadonlyMap<number, number>;
}

async function compareScopes(context: CheckContext, page: readonly Scope[], range: IdRange): Promise<void> {
  const entries = await readCounts(context, "entries", range);
  const sums = await readCounts(context, "totals", range);
  for (const kind of checkedKinds) {
    const byScope = await readRows(context, kind, range);
    for (const scope of page) {
      const found = byScope.get(scope.id) ?? { rows: 0, children: 0, unlisted: new Map() };
      for (const list of kind.lists)
        await compareList(context, kind, list, scope, found, findCount(entries, list.list, scope));
      compareTotal(context, kind, "below", scope, found.rows, findCount(sums, kind.counter, scope));
      compareTotal(context, kind, "children", scope, found.children, findCount(sums, kind.counter + 1, scope));
    }
  }
}

/** Numbers by the list or counter and the scope. */
type Counts = ReadonlyMap<string, number>;

function findCount(counts: Counts, list: number, { id }: Scope): number {
  return counts.get(`${list} ${id}`) ?? 0;
}

async function readCounts({ db }: CheckContext, of: "entries" | "totals", { after, to }: IdRange): Promise<Counts> {
  const inRange = sql`scope > ${after} and scope <= ${to}`;
  const queries =
    of === "totals"
      ? [
          sql`select counter as list, scope, sum(n) as n from ${totals} where counter in (${formatNumbers(COUNTERS)}) and ${inRange}
            group by counter, scope`,
        ]
      : Object.entries(entryTables).map(([type, table]) => {
          const known = sql`list in (${formatNumbers(listsOf(type))})`;
          return sql`select list, scope, count(*) as n from ${table} where ${inRange} and ${known} group by scope, list`;
        });
  const counts = new Map<string, number>();
  for (const query of queries) {
    for (const { list, scope, n } of await db.all<{ list: number; scope: number; n: number | string }>(query))
      counts.set(`${list} ${scope}`, Number(n));
  }
  return counts;
}

async function readRows({ db }: CheckContext, kind: CheckedKind, range: IdRange): Promise<Map<number, ScopeRows>> {
  const { table, parent, where, lists } = kind;
  const isChild = sql`${parent} = ${SCOPE_UID}`;
  const unlisted = lists.map((list, i) => {
    const hasNone = sql`not ${buildHasEntry(db.dialect, kind, list)}`;
    const condition = list.children ? sql`${isChild} and ${hasNone}` : hasNone;
    return sql`sum(case when ${condition} then 1 else 0 end) as ${sql.identifier(`unlisted${i}`)}`;
  });
  const rows = await db.all<Record<string, number | string>>(sql`select ${SCOPE_ID} as id, count(*) as n,
    sum(case when ${isChild} then 1 else 0 end) as children, ${sql.join(unlisted, sql`, `)}
    from ${scopes} s join ${table} on ${isBelowSql(sql`${table.uid}`, SCOPE_UID)} and ${where}
    where ${SCOPE_ID} > ${range.after} and ${SCOPE_ID} <= ${range.to} group by ${SCOPE_ID}`);
  return new Map(
    rows.map((row) => [
      Number(row.id),
      {
        rows: Number(row.n),
        children: Number(row.children),
        unlisted: new Map(lists.map(({ list }, i) => [list, Number(row[`unlisted${i}`])])),
      },
    ]),
  );
}

function buildHasEntry(dialect: "sqlite" | "pg", { table }: CheckedKind, { list, type, column }: CheckedList): SQL {
  const below = bytesBelowSql(dialect, sql`${table.uid}`, SCOPE_UID);
  return sql`exists (select 1 from ${entryTables[type]} e where e.list = ${list} and e.scope = ${SCOPE_ID}
    and e.key = ${column ?? sql`''`} and e.below = ${below})`;
}

async function compareList(
  context: CheckContext,
  kind: CheckedKind,
  list: CheckedList,
  scope: Scope,
  { rows, children, unlisted }: ScopeRows,
  entries: number,
): Promise<void> {
  const name = getTableName(entryTables[list.type]);
  const withoutEntry = unlisted.get(list.list) ?? 0;
  // Every row has one entry at most, so the others are of no row.
  const withoutRow = entries - ((list.children ? children : rows) - withoutEntry);
  const key = `list=${list.list} (${list.title}), scope=${scope.id} (${scope.uid})`;
  if (withoutEntry > 0) {
    const rule = `${name} without entry`;
    const example = context.isFull(rule) ? "" : `, such as ${await findRowWithoutEntry(context, kind, list, scope)}`;
    context.report(rule, buildRepairable(name, key, `rows without an entry: ${withoutEntry}${example}`));
  }
  if (withoutRow !== 0) {
    const rule = `${name} without row`;
    context.report(rule, buildRepairable(name, key, `entries that belong to no row: ${withoutRow}`));
  }
}

async function findRowWithoutEntry(
  { db }: CheckContext,
  kind: CheckedKind,
  list: CheckedList,
  scope: Scope,
): Promise<string> {
  const { table, parent, where } = kind;
  const [row] = await db.all<{ uid: string }>(sql`select ${table.uid} as uid
    from ${scopes} s join ${table} on ${isBelowSql(sql`${table.uid}`, SCOPE_UID)} and ${where}
    where ${SCOPE_ID} = ${scope.id} and ${list.children ? sql`${parent} = ${SCOPE_UID}` : sql`true`}
    and not ${buildHasEntry(db.dialect, kind, list)} limit 1`);
  return row?.uid ?? "";
}

function compareTotal(
  { report }: CheckContext,
  { counter, title }: CheckedKind,
  of: "below" | "children",
  { id, uid }: Scope,
  rows: number,
  total: number,
): void {
  if (rows === total) return;
  const number = of === "below" ? counter : counter + 1;
  const what = of === "below" ? `${title} below the scope` : `${title} directly below the scope`;
  const key = `counter=${number} (${what}), scope=${id} (${uid})`;
  report("totals", buildRepairable("totals", key, `the total is ${total}, and there are ${rows}`));
}
