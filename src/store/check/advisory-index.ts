// Whether the index of the filters of advisories is what the advisories say. Advisories that changed and wait to be
// indexed are passed over: lists examine them one by one.
import { createHash } from "node:crypto";
import { type SQL, sql } from "drizzle-orm";
import { RowSet } from "../advisories/row-set.js";
import { buildFacets, filterNumbers } from "../advisories/search-statements.js";
import type { AdvisoryEventRow, AdvisoryRow, Facets } from "../tables/advisories.js";
import * as schema from "../tables/schema-sqlite.js";
import { buildRepairable, type Check, type CheckContext } from "./findings.js";

const PER_PAGE = 500;
const POSTINGS_PER_PAGE = 5_000;
const {
  advisories,
  advisoryAliases,
  advisoryChanges: changes,
  advisoryEntries: entries,
  advisoryEvents: events,
  advisoryFacets: stored,
  advisoryPostings: postings,
} = schema;
const filterNames = new Map([...filterNumbers].map(([name, number]) => [number, name]));

/** Compares the index by which filters find advisories with the advisories. */
export const advisoryIndexCheck: Check = {
  name: "advisory index",
  async run(context) {
    await compareEntries(context);
    await reportExtra(context);
    await comparePostings(context);
  },
};

/**
 * The statements that empty the index. The service fills it again; until then lists examine the advisories themselves.
 */
export function emptyAdvisoryIndex(): readonly SQL[] {
  const emptied = [postings, stored, entries, schema.advisoryRoots, changes].map((table) => sql`delete from ${table}`);
  return [...emptied, sql`insert into ${changes} (uid) select uid from ${advisories} order by uid`];
}

function reportWrong({ report }: CheckContext, table: string, key: string, problem: string): void {
  report(`${table} ${problem}`, buildRepairable(table, key, problem));
}

interface Compared {
  readonly uid: string;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  readonly searched: string;
  readonly facets: string;
}

async function compareEntries(context: CheckContext): Promise<void> {
  const { db, progress } = context;
  for (let after = ""; ; ) {
    const page = await db.all<Record<string, unknown> & { uid: string }>(
      sql`select * from ${advisories} where uid > ${after} order by uid limit ${PER_PAGE}`,
    );
    const last = page.at(-1)?.uid;
    if (last === undefined) return;
    const inPage = (column: string) => sql`${sql.raw(column)} > ${after} and ${sql.raw(column)} <= ${last}`;
    const waiting = await db.all<{ uid: string }>(sql`select uid from ${changes} where ${inPage("uid")}`);
    const passedOver = new Set(waiting.map(({ uid }) => uid));
    const found = await db.all<Record<string, unknown> & { uid: string }>(
      sql`select e.*, f.facets from ${entries} e left join ${stored} f on f.number = e.number where ${inPage("e.uid")}`,
    );
    const entryByUid = new Map(found.map((entry) => [entry.uid, toCompared(entry, entry.facets)]));
    const eventsByUid = await readEvents(context, inPage("advisory_uid"));
    for (const raw of page) {
      if (passedOver.has(raw.uid)) continue;
      const entry = entryByUid.get(raw.uid);
      const expected = toCompared(raw, buildFacets(toAdvisory(raw), eventsByUid.get(raw.uid) ?? []));
      if (entry === undefined) reportWrong(context, "advisory_entries", raw.uid, "the advisory is not indexed");
      else if (JSON.stringify(entry) !== JSON.stringify(expected)) {
        reportWrong(context, "advisory_entries", raw.uid, "the advisory is indexed with other values");
      }
    }
    after = last;
    progress(after);
  }
}

function toCompared(row: Record<string, unknown>, facets: unknown): Compared {
  const { uid, create_time_ms, update_time_ms, searched } = row;
  return {
    uid: String(uid),
    createTimeMs: Number(create_time_ms),
    updateTimeMs: Number(update_time_ms),
    searched: String(searched),
    facets: JSON.stringify(sortEach(parse(facets) as Facets | null)),
  };
}

// The values of a filter are in no order.
function sortEach(facets: Facets | null): Facets | null {
  return facets?.map((values) => [...values].sort()) ?? null;
}

function parse(value: unknown): unknown {
  return typeof value === "string" ? JSON.parse(value) : value;
}

// The columns that filters read.
function toAdvisory(raw: Record<string, unknown>): AdvisoryRow {
  const text = (column: string) => String(raw[column]);
  return {
    uid: text("uid"),
    advisoryId: text("advisory_id"),
    legacyAdvisoryId: text("legacy_advisory_id"),
    artifactName: text("artifact_name"),
    artifactType: text("artifact_type"),
    artifactArchitecture: text("artifact_architecture"),
    componentName: text("component_name"),
    componentType: text("component_type"),
    componentLocation: text("component_location"),
    latestEventType: Number(raw.latest_event_type),
    aliases: parse(raw.aliases) as string[],
  } as Partial<AdvisoryRow> as AdvisoryRow;
}

async function readEvents({ db }: CheckContext, condition: SQL): Promise<Map<string, AdvisoryEventRow[]>> {
  const found = await db.all<{ uid: string; author: string; reviewer: string; state: number; type: number }>(
    sql`select advisory_uid as uid, author, reviewer, review_state as state, type from ${events} where ${condition}`,
  );
  const byUid = new Map<string, AdvisoryEventRow[]>();
  for (const { uid, author, reviewer, state, type } of found) {
    const event = { author, reviewer, reviewState: Number(state), type: Number(type) } as AdvisoryEventRow;
    byUid.set(uid, [...(byUid.get(uid) ?? []), event]);
  }
  return byUid;
}

async function reportExtra(context: CheckContext): Promise<void> {
  const extra = await context.db.all<{ uid: string }>(sql`select uid from ${entries} e
    where not exists (select 1 from ${advisories} a where a.uid = e.uid)
      and not exists (select 1 from ${changes} c where c.uid = e.uid) order by uid limit 1000`);
  for (const { uid } of extra) reportWrong(context, "advisory_entries", uid, "there is no such advisory");
}

// The postings of a filter and the values that are stored with the entries are the same set. Both are read once, and
// only a sum of hashes of each filter is kept, so that memory does not grow with their number.
async function comparePostings(context: CheckContext): Promise<void> {
  const [expected, found] = [createSums(), createSums()];
  const { db, progress } = context;
  for (let after = -1; ; ) {
    const page = await db.all<{ number: number; root: number; facets: unknown }>(
      sql`select e.number, e.root, f.facets from ${entries} e join ${stored} f on f.number = e.number
        where e.number > ${after} order by e.number limit ${PER_PAGE}`,
    );
    for (const { number, root, facets } of page) {
      for (const [filter, values] of (parse(facets) as Facets).entries()) {
        for (const value of values) expected.add(root, filter, value, Number(number));
      }
    }
    const last = page.at(-1);
    if (last === undefined) break;
    after = Number(last.number);
    progress(`${after} entries`);
  }
  let from = { root: -1, filter: 0, value: "", word: 0 };
  for (;;) {
    const page = await db.all<typeof from & { bits: number }>(
      sql`select root, filter, value, word, bits from ${postings}
        where (root, filter, value, word) > (${from.root}, ${from.filter}, ${from.value}, ${from.word})
        order by root, filter, value, word limit ${POSTINGS_PER_PAGE}`,
    );
    for (const { root, filter, value, word, bits } of page) {
      const set = new RowSet();
      set.addWord(Number(word), Number(bits) | 0);
      for (const number of set.numbers()) found.add(root, filter, value, number);
    }
    const last = page.at(-1);
    if (last === undefined) break;
    from = { root: Number(last.root), filter: last.filter, value: last.value, word: Number(last.word) };
    progress(`filter ${from.filter}`);
  }
  for (const key of new Set([...expected.sums.keys(), ...found.sums.keys()])) {
    if (expected.sums.get(key) === found.sums.get(key)) continue;
    const [root, filter] = key.split(" ");
    const name = filterNames.get(Number(filter)) ?? filter;
    reportWrong(
      context,
      "advisory_postings",
      `root=${root}, filter=${name}`,
      "the filter does not find what is indexed",
    );
  }
}

function createSums() {
  const sums = new Map<string, bigint>();
  return {
    sums,
    add(root: number, filter: number, value: string, number: number): void {
      const key = `${root} ${filter}`;
      const hash = createHash("sha256").update(`${number} ${value}`).digest().readBigUInt64BE();
      sums.set(key, BigInt.asUintN(64, (sums.get(key) ?? 0n) + hash));
    },
  };
}

// Whether the table of aliases has those of each advisory and no others.

const ALIASES_PER_PAGE = 500;

/** Compares the aliases that advisories are found by with the advisories. */
export const advisoryAliasCheck: Check = {
  name: "advisory aliases",
  async run(context) {
    let after = "";
    for (;;) {
      const page = await readAdvisories(context, after);
      const last = page.at(-1);
      if (last === undefined) return;
      const stored = await readAliases(context, after, last.uid);
      for (const { uid, aliases } of page) compareAliases(context, uid, new Set(aliases), stored.get(uid) ?? new Set());
      after = last.uid;
      context.progress(after);
    }
  },
};

async function readAdvisories({ db }: CheckContext, after: string): Promise<{ uid: string; aliases: string[] }[]> {
  const rows = await db.all<{ uid: string; aliases: string | string[] }>(
    sql`select uid, aliases from ${advisories} where uid > ${after} order by uid limit ${ALIASES_PER_PAGE}`,
  );
  return rows.map(({ uid, aliases }) => ({
    uid,
    aliases: typeof aliases === "string" ? (JSON.parse(aliases) as string[]) : aliases,
  }));
}

async function readAliases({ db }: CheckContext, after: string, to: string): Promise<Map<string, Set<string>>> {
  const byAdvisory = new Map<string, Set<string>>();
  const rows = await db.all<{
    alias: string;
    uid: string;
  }>(sql`select alias, advisory_uid as uid from ${advisoryAliases}
    where advisory_uid > ${after} and advisory_uid <= ${to}`);
  for (const { alias, uid } of rows) byAdvisory.set(uid, (byAdvisory.get(uid) ?? new Set()).add(alias));
  return byAdvisory;
}

function compareAliases(
  { report }: CheckContext,
  uid: string,
  expected: ReadonlySet<string>,
  stored: ReadonlySet<string>,
): void {
  const add = (alias: string, problem: string) =>
    report("alias", buildRepairable("advisory_aliases", `alias=${alias}, advisory_uid=${uid}`, problem));
  for (const alias of expected) if (!stored.has(alias)) add(alias, "the alias of the advisory is missing");
  for (const alias of stored) if (!expected.has(alias)) add(alias, "the advisory does not have this alias");
}
