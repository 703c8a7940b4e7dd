// Whether the counters of lists and the families of tags are right, and whether each listed row has the uid of its root.
import { getTableName, type SQL, sql } from "drizzle-orm";
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import { isBelow, lineageOf } from "../../kernel/uidp.js";
import { kinds } from "../kinds.js";
import { type Counted, counterOf, familiesOf, type ListedKind, type ListedTables } from "../lists/resource.js";
import { buildFamilySql } from "../registry/tag-families.js";
import { columnOf } from "../statement.js";
import { schema } from "../tables/schema-sqlite.js";
import { at, type CheckDatabase, isBelowSql } from "./database.js";
import { buildRepairable, type Check, type CheckContext } from "./findings.js";
import { reportRows } from "./references.js";

const { counters, tags } = schema;

/** How many rows are read at once. */
const ROWS_PER_PAGE = 5_000;
/** How many scopes are compared at once. */
const SCOPES_PER_PAGE = 500;
/** How many counters of no kind are named at most; more of them mean that the whole table is lost. */
const MAX_UNKNOWN = 1_000;

interface CheckedKind {
  readonly kind: ListedKind;
  readonly table: ListedTables;
  readonly title: string;
  readonly family: AnySQLiteColumn | undefined;
}

const checkedKinds: readonly CheckedKind[] = kinds.map((kind) => {
  const table = kind.table(schema);
  const family = kind.families && columnOf(table, kind.families.column);
  return { kind, table, title: getTableName(table), family };
});

/** The columns that {@link rootCheck} compares. */
export const rootColumns: readonly AnySQLiteColumn[] = checkedKinds.map(({ table }) => table.rootUid);

const allCounters = kinds.flatMap((kind) =>
  familiesOf(kind).flatMap((family) => [counterOf(kind, "below", family), counterOf(kind, "children", family)]),
);

/** Compares every counter with the rows, and the families of tags, which have counters of their own, with the names. */
export const counterCheck: Check = {
  name: "counters",
  async run(context) {
    context.progress("families of tags");
    await reportRows(context, {
      rule: "tags.family",
      table: tags,
      columns: [tags.family],
      faulty: sql`${tags} c where ${isOtherFamily(context.db.dialect, "c.")}`,
      describe: ({ family }) => ({
        problem: `family is ${family}, which is not that of the name`,
        remedy: "arbor check --repair",
        repairable: true,
      }),
    });
    for (const checked of checkedKinds) {
      await compareCounters(context, checked);
      await findCountersWithoutRows(context, checked);
    }
    await findUnknownCounters(context);
  },
};

/** An ancestor of rows, with how many of each family lie below it and how many are its children. */
interface Scope {
  readonly uid: string;
  readonly below: Record<number, number>;
  readonly children: Record<number, number>;
}

// Rows come in the order of uids, so all that lies below an ancestor comes in one piece. The ancestors of the current row
// are open; one that is left is complete.
async function compareCounters(context: CheckContext, checked: CheckedKind): Promise<void> {
  const open: Scope[] = [];
  let complete: Scope[] = [];
  const close = (next: string | undefined) => {
    for (let last = open.at(-1); last && (next === undefined || !isBelow(next, last.uid)); last = open.at(-1)) {
      complete.push(last);
      open.pop();
    }
  };
  for await (const { uid, family } of readRows(context, checked)) {
    close(uid);
    const ancestors = lineageOf(uid).slice(0, -1);
    for (const ancestor of ancestors.slice(open.length)) {
      open.push({ uid: ancestor, below: {}, children: {} });
    }
    for (const [i, { below, children }] of open.entries()) {
      below[family] = (below[family] ?? 0) + 1;
      if (i === ancestors.length - 1) children[family] = (children[family] ?? 0) + 1;
    }
    if (complete.length >= SCOPES_PER_PAGE) {
      await compareScopes(context, checked, complete);
      complete = [];
    }
  }
  close(undefined);
  await compareScopes(context, checked, complete);
}

async function* readRows({ db, progress }: CheckContext, { table, title, family }: CheckedKind) {
  for (let after = "", done = 0; ; ) {
    const rows = await db.all<{
      uid: string;
      family: number;
    }>(sql`select uid, ${family ?? sql`0`} as family from ${table}
      where uid > ${after} order by uid limit ${ROWS_PER_PAGE}`);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < ROWS_PER_PAGE) return;
    after = last.uid;
    done += rows.length;
    progress(`${title}: ${done} rows`);
  }
}

async function compareScopes({ db, report }: CheckContext, { kind, title }: CheckedKind, scopes: readonly Scope[]) {
  if (scopes.length === 0) return;
  const families = familiesOf(kind);
  const numbers = families.flatMap((family) => [counterOf(kind, "below", family), counterOf(kind, "children", family)]);
  const rows = await db.all<{ scope: string; counter: number; n: number | string }>(sql`
    select scope, counter, sum(n) as n from ${counters} where scope in ${scopes.map(({ uid }) => uid)}
    and counter in ${numbers} group by scope, counter`);
  const found = new Map(rows.map(({ scope, counter, n }) => [`${counter} ${scope}`, Number(n)]));
  for (const scope of scopes) {
    for (const family of families) {
      for (const counted of ["below", "children"] as const) {
        const counter = counterOf(kind, counted, family);
        const n = found.get(`${counter} ${scope.uid}`) ?? 0;
        const expected = scope[counted][family] ?? 0;
        if (n !== expected) report("counter", describe({ counter, counted, title, scope: scope.uid, n, expected }));
      }
    }
  }
}

async function findCountersWithoutRows({ db, report, progress }: CheckContext, { kind, table, title }: CheckedKind) {
  progress(`counters of ${title}`);
  for (const family of familiesOf(kind)) {
    for (const counted of ["below", "children"] as const) {
      const counter = counterOf(kind, counted, family);
      const rows = await db.all<{ scope: string; n: number | string }>(sql`
        select scope, sum(n) as n from ${counters} where counter = ${counter}
        and not exists (select 1 from ${table} r where ${isBelowSql(sql`r.uid`, sql`${counters.scope}`)})
        group by scope having sum(n) <> 0 order by scope limit ${MAX_UNKNOWN}`);
      for (const { scope, n } of rows) {
        report("counter", describe({ counter, counted, title, scope, n: Number(n), expected: 0 }));
      }
    }
  }
}

interface WrongCounter {
  readonly counter: number;
  readonly counted: Counted;
  readonly title: string;
  readonly scope: string;
  readonly n: number;
  readonly expected: number;
}

function describe({ counter, counted, title, scope, n, expected }: WrongCounter) {
  const what = `${title} ${counted === "below" ? "below the scope" : "directly below the scope"}`;
  const key = `counter=${counter} (${what}), scope=${scope}`;
  return buildRepairable("counters", key, `the counter is ${n}, and there are ${expected}`);
}

async function findUnknownCounters({ db, report }: CheckContext): Promise<void> {
  const rows = await db.all<{ scope: string; counter: number; n: number | string }>(sql`
    select scope, counter, sum(n) as n from ${counters} where counter not in ${allCounters}
    group by scope, counter order by scope, counter limit ${MAX_UNKNOWN}`);
  for (const { scope, counter, n } of rows) {
    const problem = `no kind has a counter of this number; its value is ${Number(n)}`;
    report("unknown counter", buildRepairable("counters", `counter=${counter}, scope=${scope}`, problem));
  }
}

/** The statements that derive the families of tags again, and count all rows. */
export function rebuildCounters(dialect: CheckDatabase["dialect"]): readonly SQL[] {
  const family = sql.raw(buildFamilySql(dialect, "name"));
  return [
    sql`update ${tags} set family = ${family} where ${isOtherFamily(dialect, "")}`,
    sql`delete from ${counters}`,
    ...checkedKinds.flatMap(buildCounts),
  ];
}

function isOtherFamily(dialect: CheckDatabase["dialect"], table: "c." | ""): SQL {
  return sql.raw(`${table}family <> ${buildFamilySql(dialect, `${table}name`)}`);
}

// A uid of n characters has (n - 40) / 17 ancestors; the first one has 40 characters.
function buildCounts({ kind, table, family }: CheckedKind): SQL[] {
  return familiesOf(kind).flatMap((one) => {
    const isFamily = family ? sql`${family} = ${one}` : sql`true`;
    const number = (counted: Counted) => sql.raw(String(counterOf(kind, counted, one)));
    return [
      sql`insert into ${counters} (scope, counter, slot, n)
        with recursive lengths(n) as (select 40 union all select n + 17 from lengths
          where n + 17 < (select coalesce(max(length(uid)), 0) from ${table}))
        select substr(uid, 1, lengths.n), ${number("below")}, 0, count(*) from ${table}
        join lengths on length(uid) > lengths.n where ${isFamily} group by 1 order by 1`,
      sql`insert into ${counters} (scope, counter, slot, n)
        select substr(uid, 1, length(uid) - 17), ${number("children")}, 0, count(*) from ${table}
        where length(uid) > 40 and ${isFamily} group by 1 order by 1`,
    ];
  });
}

/** Finds listed rows whose root is not the first segment of their uid. Lists over the organisation lack them. */
export const rootCheck: Check = {
  name: "roots",
  async run(context) {
    for (const { table, title } of checkedKinds) {
      context.progress(title);
      await reportRows(context, {
        rule: title,
        table,
        columns: [table.rootUid],
        faulty: sql`${table} c where ${at("c", table.rootUid)} <> substr(${at("c", table.uid)}, 1, 40)`,
        describe: ({ root_uid: root }) => ({
          problem: `root_uid is ${root}, which is not the first segment of the uid`,
          remedy: "arbor check --repair",
          repairable: true,
        }),
      });
    }
  },
};

/** The statements that derive the uids of roots again. */
export function rebuildRoots(): readonly SQL[] {
  return checkedKinds.map(
    ({ table }) => sql`update ${table} set root_uid = substr(uid, 1, 40) where root_uid <> substr(uid, 1, 40)`,
  );
}
