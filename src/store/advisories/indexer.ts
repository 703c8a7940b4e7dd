// Brings the index of the filters of advisories up to date with those that changed.
import { and, asc, eq, inArray, sql } from "drizzle-orm";
import { rootOf } from "../../kernel/uidp.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpdateValues,
  type Executor,
  rowLimit,
  statement,
  statementFamily,
  takeFirst,
} from "../statement.js";
import type { AdvisoryEntryRow, AdvisoryEventRow, AdvisoryRow, Facets } from "../tables/advisories.js";
import type { Tables } from "../tables/schema.js";
import { bitOf, wordOf } from "./row-set.js";
import { buildFacets } from "./search-statements.js";

type EntryValues = Omit<AdvisoryEntryRow, "number">;

const changes = statement<{ limit: number }, { id: number; uid: string }>((q, t) =>
  q.select().from(t.advisoryChanges).orderBy(asc(t.advisoryChanges.id)).limit(rowLimit("limit")),
);
const removeChanges = statement<{ ids: string }>((q, t) =>
  q.delete(t.advisoryChanges).where(inArray(t.advisoryChanges.id, t.numbersIn("ids"))),
);
type IndexedEntry = Pick<AdvisoryEntryRow, "number" | "root" | "uid"> & { readonly facets: Facets };
const entriesOf = statement<{ uids: string }, IndexedEntry>((q, t) => {
  const { number, root, uid } = t.advisoryEntries;
  return q
    .select({ number, root, uid, facets: t.advisoryFacets.facets })
    .from(t.advisoryEntries)
    .innerJoin(t.advisoryFacets, eq(t.advisoryFacets.number, number))
    .where(t.anyOf(uid, "uids"));
});
type FacetValues = Pick<IndexedEntry, "number" | "facets">;
const insertFacets = statement<FacetValues>((q, t) =>
  q.insert(t.advisoryFacets).values(buildInsertValues(t.advisoryFacets)),
);
const updateFacets = statement<FacetValues>((q, t) =>
  q
    .update(t.advisoryFacets)
    .set(buildUpdateValues(t.advisoryFacets, "facets"))
    .where(buildEquals(t.advisoryFacets, "number")),
);
const removeFacets = statement<{ number: number }>((q, t) =>
  q.delete(t.advisoryFacets).where(buildEquals(t.advisoryFacets, "number")),
);
const insertEntry = statement<EntryValues, { number: number }>((q, t) => {
  const { number: _, ...values } = buildInsertValues(t.advisoryEntries);
  return q.insert(t.advisoryEntries).values(values).returning({ number: t.advisoryEntries.number });
});
const updateEntry = statement<EntryValues>((q, t) =>
  q
    .update(t.advisoryEntries)
    .set(buildUpdateValues(t.advisoryEntries, "createTimeMs", "updateTimeMs", "searched"))
    .where(buildEquals(t.advisoryEntries, "uid")),
);
const removeEntry = statement<{ uid: string }>((q, t) =>
  q.delete(t.advisoryEntries).where(buildEquals(t.advisoryEntries, "uid")),
);
const findRoot = statement<{ uid: string }, { id: number }>((q, t) =>
  q.select({ id: t.advisoryRoots.id }).from(t.advisoryRoots).where(buildEquals(t.advisoryRoots, "uid")),
);
const insertRoot = statement<{ uid: string }, { id: number }>((q, t) =>
  q
    .insert(t.advisoryRoots)
    .values({ uid: sql.placeholder("uid") })
    .returning({ id: t.advisoryRoots.id }),
);

interface Posting {
  readonly root: number;
  readonly filter: number;
  readonly value: string;
  readonly word: number;
}
type Params = Record<string, string | number>;
const columns = ["root", "filter", "value", "word", "bits"] as const;

const addBits = statementFamily<number, Params>(String, (size) => (q, t) => {
  const { advisoryPostings: p } = t;
  const values = Array.from(
    { length: size },
    (_, i) => Object.fromEntries(columns.map((name) => [name, sql.placeholder(`${name}${i}`)])) as never,
  );
  return q
    .insert(p)
    .values(values)
    .onConflictDoUpdate({
      target: [p.root, p.filter, p.value, p.word],
      set: { bits: sql`${p.bits} | excluded.bits` },
    });
});
const keepBits = statement<Posting & { bits: number }>((q, t) => {
  const { advisoryPostings: p } = t;
  return q
    .update(p)
    .set({ bits: sql`${p.bits} & ${sql.placeholder("bits")}` })
    .where(isPosting(t));
});
const removeEmpty = statement<Posting>((q, t) =>
  q.delete(t.advisoryPostings).where(and(isPosting(t), eq(t.advisoryPostings.bits, 0))),
);

function isPosting({ advisoryPostings: p }: Tables) {
  const { root, filter, value, word } = p;
  return and(...[root, filter, value, word].map((column) => eq(column, sql.placeholder(column.name))));
}

/** What the indexer reads of advisories. */
export interface AdvisorySource {
  /** The advisories with these uids that exist, in no order. */
  rows(uids: readonly string[]): Promise<AdvisoryRow[]>;
  events(uids: readonly string[]): Promise<AdvisoryEventRow[]>;
}

/**
 * Indexes advisories that changed.
 *
 * @param limit how many changes to take up at most
 * @returns how many it took up: fewer than `limit` when none is left
 */
export async function indexChanges(tx: Executor, source: AdvisorySource, limit: number): Promise<number> {
  const taken = await tx.rows(changes, { limit });
  if (taken.length === 0) return 0;
  const uids = [...new Set(taken.map(({ uid }) => uid))];
  const entries = await tx.rows(entriesOf, { uids: JSON.stringify(uids) });
  const entryByUid = new Map(entries.map((entry) => [entry.uid, entry]));
  const rowByUid = new Map((await source.rows(uids)).map((row) => [row.uid, row]));
  const eventsByUid = new Map<string, AdvisoryEventRow[]>(uids.map((uid) => [uid, []]));
  for (const event of await source.events(uids)) eventsByUid.get(event.advisoryUid)?.push(event);

  const postings = createPostingChanges();
  const roots = new Map<string, number>();
  for (const uid of uids) {
    const row = rowByUid.get(uid);
    const before = entryByUid.get(uid);
    const facets = row ? buildFacets(row, eventsByUid.get(uid) ?? []) : [];
    if (row === undefined) {
      if (before === undefined) continue;
      await tx.rows(removeEntry, { uid });
      await tx.rows(removeFacets, before);
      postings.change(before, before.facets, facets);
      continue;
    }
    const { createTimeMs, updateTimeMs, searched } = row;
    const root = before?.root ?? (await readRoot(tx, roots, rootOf(uid)));
    const entry: EntryValues = { uid, root, createTimeMs, updateTimeMs, searched };
    if (before) {
      await tx.rows(updateEntry, entry);
      await tx.rows(updateFacets, { number: before.number, facets });
      postings.change(before, before.facets, facets);
    } else {
      const number = expectNew(await takeFirst(tx.rows(insertEntry, entry))).number;
      await tx.rows(insertFacets, { number, facets });
      postings.change({ root, number }, [], facets);
    }
  }
  await postings.write(tx);
  await tx.rows(removeChanges, { ids: JSON.stringify(taken.map(({ id }) => id)) });
  return taken.length;
}

async function readRoot(tx: Executor, known: Map<string, number>, uid: string): Promise<number> {
  const found = known.get(uid) ?? (await takeFirst(tx.rows(findRoot, { uid })))?.id;
  const id = found ?? expectNew(await takeFirst(tx.rows(insertRoot, { uid }))).id;
  known.set(uid, id);
  return id;
}

function expectNew<T>(row: T | undefined): T {
  if (row === undefined) throw new TypeError("the database did not return the number of a new row");
  return row;
}

// Collects changes of postings, so that one that several advisories have in common is written once.
function createPostingChanges() {
  const changed = new Map<string, { readonly posting: Posting; added: number; removed: number }>();
  const changeBit = (
    { root, number }: Pick<AdvisoryEntryRow, "root" | "number">,
    filter: number,
    value: string,
    kind: "added" | "removed",
  ) => {
    const word = wordOf(number);
    const key = `${root} ${filter} ${word} ${value}`;
    let change = changed.get(key);
    if (change === undefined) {
      change = { posting: { root, filter, value, word }, added: 0, removed: 0 };
      changed.set(key, change);
    }
    const bit = bitOf(number);
    // SQLite gives the number of a deleted entry to the next new one: the later change counts.
    const other = kind === "added" ? "removed" : "added";
    change[other] = (change[other] & ~bit) >>> 0;
    change[kind] = (change[kind] | bit) >>> 0;
  };
  return {
    change(entry: Pick<AdvisoryEntryRow, "root" | "number">, before: Facets, after: Facets): void {
      for (let filter = 0; filter < Math.max(before.length, after.length); filter++) {
        const [old = [], now = []] = [before[filter], after[filter]];
        for (const value of old) if (!now.includes(value)) changeBit(entry, filter, value, "removed");
        for (const value of now) if (!old.includes(value)) changeBit(entry, filter, value, "added");
      }
    },

    async write(tx: Executor): Promise<void> {
      const all = [...changed.values()].sort((a, b) => comparePostings(a.posting, b.posting));
      const rows = all.flatMap(({ posting, added }) => (added === 0 ? [] : [{ ...posting, bits: added }]));
      // On SQLite a statement that writes several rows costs more than one for each.
      const most = tx.counterSlots === 1 ? 1 : 64;
      for (let start = 0; start < rows.length; ) {
        let size = most;
        while (size > rows.length - start) size /= 2;
        const params: Params = {};
        for (const [i, row] of rows.slice(start, start + size).entries()) {
          for (const name of columns) params[`${name}${i}`] = row[name];
        }
        await tx.rows(addBits(size), params);
        start += size;
      }
      for (const { posting, removed } of all) {
        if (removed === 0) continue;
        await tx.rows(keepBits, { ...posting, bits: ~removed >>> 0 });
        await tx.rows(removeEmpty, posting);
      }
    },
  };
}

// In the order of the primary key, in which neighbours share a page.
function comparePostings(a: Posting, b: Posting): number {
  return a.root - b.root || a.filter - b.filter || (a.value === b.value ? a.word - b.word : a.value < b.value ? -1 : 1);
}
