// Keeps the index of lists equal to the rows, in the transaction that changes the rows
// (docs/adr/0014-compact-order-index.md).
import { and, eq, inArray, or, sql } from "drizzle-orm";
import { bytesBelow, lineageOf } from "../kernel/uidp.js";
import { adjustRanks, deleteRanks, type RankChange } from "./rank-maintenance.js";
import {
  childListOf,
  columnValue,
  type IndexedRow,
  type IndexList,
  MAX_ID,
  type ResourceIndex,
} from "./resource-index.js";
import { buildEquals, type Executor, statementFamily } from "./statement.js";

type Params = Record<string, string | number | Buffer>;
type Shape = { readonly type: IndexList["type"]; readonly entries: number };

/** An ancestor of a row: the number of its lists, its uid, and the part of the row's uid below it. */
interface Scope {
  readonly id: number;
  readonly uid: string;
  readonly ranked: boolean;
  readonly below: Buffer;
}

/** The position of a row in a list. */
interface Entry {
  readonly list: number;
  readonly scope: number;
  readonly key: string | number;
  readonly below: Buffer;
}

const entryTable = { text: "textEntries", time: "timeEntries" } as const;
const shapeKey = ({ type, entries }: Shape) => `${type}${entries}`;
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

const insertEntries = statementFamily<Shape, Params>(shapeKey, ({ type, entries }) => (q, t) => {
  const values = numbers(entries).map((i) => ({
    list: sql.placeholder(`list${i}`),
    scope: sql.placeholder(`scope${i}`),
    key: sql.placeholder(`key${i}`),
    below: sql.placeholder(`below${i}`),
  }));
  // Both tables have the same columns; only the type of the key differs.
  return q.insert(t[entryTable[type]] as typeof t.textEntries).values(values as never);
});

const deleteEntries = statementFamily<Shape, Params>(shapeKey, ({ type, entries }) => (q, t) => {
  const e = t[entryTable[type]] as typeof t.textEntries;
  const isEntry = (i: number) =>
    and(
      eq(e.list, sql.placeholder(`list${i}`)),
      eq(e.scope, sql.placeholder(`scope${i}`)),
      eq(e.key, sql.placeholder(`key${i}`)),
      eq(e.below, sql.placeholder(`below${i}`)),
    );
  return q.delete(e).where(or(...numbers(entries).map(isEntry)));
});

const addToTotals = statementFamily<number, Params>(
  String,
  (totals) => (q, t) =>
    q
      .insert(t.totals)
      .values(
        numbers(totals).map((i) => ({
          counter: sql.placeholder(`counter${i}`),
          scope: sql.placeholder(`scope${i}`),
          slot: sql.placeholder("slot"),
          n: sql.placeholder("n"),
        })),
      )
      .onConflictDoUpdate({
        target: [t.totals.scope, t.totals.counter, t.totals.slot],
        set: { n: sql`${t.totals.n} + excluded.n` },
      }),
);

const findScopes = statementFamily<number, Params, { id: number; uid: string; ranked: boolean }>(
  String,
  (count) => (q, t) =>
    q
      .select({ id: t.scopes.id, uid: t.scopes.uid, ranked: t.scopes.ranked })
      .from(t.scopes)
      .where(
        inArray(
          t.scopes.uid,
          numbers(count).map((i) => sql.placeholder(`uid${i}`)),
        ),
      ),
);

const insertScope = statementFamily<"scope", Params, { id: number; ranked: boolean }>(
  String,
  () => (q, t) =>
    q
      .insert(t.scopes)
      .values({ uid: sql.placeholder("uid") })
      .returning({ id: t.scopes.id, ranked: t.scopes.ranked }),
)("scope");

const deleteScope = statementFamily<"scope", Params, { id: number; ranked: boolean }>(
  String,
  () => (q, t) =>
    q.delete(t.scopes).where(buildEquals(t.scopes, "uid")).returning({ id: t.scopes.id, ranked: t.scopes.ranked }),
)("scope");

const deleteTotals = statementFamily<"totals", Params>(
  String,
  () => (q, t) =>
    q.delete(t.totals).where(and(inArray(t.totals.counter, COUNTERS), eq(t.totals.scope, sql.placeholder("scope")))),
)("totals");
/** All totals that a scope may have: two of each kind. */
const COUNTERS = numbers(2 * (MAX_ID + 1));

/** Adds a new row to the index of its kind. */
export async function addToIndex(tx: Executor, kind: ResourceIndex, row: IndexedRow): Promise<void> {
  if (kind.where?.includes(row) === false) return;
  const scopes = await readScopes(tx, row.uid);
  // Rows without ancestors, such as people, are in no subtree.
  if (scopes.length === 0) return;
  const entries = buildEntries(kind, scopes, row, undefined);
  await writeEntries(tx, insertEntries, entries);
  const slot = findSlot(tx);
  await updateTotals(tx, kind, scopes, slot, 1);
  await adjustRanks(tx, [...buildRankChanges(scopes, entries, 1), ...buildUidChanges(kind, scopes, 1)], slot);
}

/** Removes a row that is about to be deleted from the index of its kind, and its own lists, which are empty. */
export async function removeFromIndex(tx: Executor, kind: ResourceIndex, row: IndexedRow): Promise<void> {
  if (kind.where?.includes(row) === false) return;
  if (kind.hasRowsBelow) {
    for (const { id, ranked } of await tx.rows(deleteScope, { uid: row.uid })) {
      await tx.rows(deleteTotals, { scope: id });
      if (ranked) await deleteRanks(tx, id);
    }
  }
  const scopes = await readScopes(tx, row.uid);
  if (scopes.length === 0) return;
  const entries = buildEntries(kind, scopes, row, undefined);
  await writeEntries(tx, deleteEntries, entries);
  const slot = findSlot(tx);
  await updateTotals(tx, kind, scopes, slot, -1);
  await adjustRanks(tx, [...buildRankChanges(scopes, entries, -1), ...buildUidChanges(kind, scopes, -1)], slot);
}

/** Updates the entries of the sort fields that changed. */
export async function reindex(tx: Executor, kind: ResourceIndex, before: IndexedRow, after: IndexedRow): Promise<void> {
  if (kind.where?.includes(before) === false) return;
  const isChanged = ({ column }: { column: string }) => columnValue(before, column) !== columnValue(after, column);
  if (!Object.values(kind.sorts).some(isChanged)) return;
  const scopes = await readScopes(tx, before.uid);
  if (scopes.length === 0) return;
  const removed = buildEntries(kind, scopes, before, isChanged);
  const added = buildEntries(kind, scopes, after, isChanged);
  await writeEntries(tx, deleteEntries, removed);
  await writeEntries(tx, insertEntries, added);
  const changes = [...buildRankChanges(scopes, removed, -1), ...buildRankChanges(scopes, added, 1)];
  await adjustRanks(tx, changes, findSlot(tx));
}

// Reads the ancestors of a row, root first. An ancestor gets its number with its first descendant.
async function readScopes(tx: Executor, uid: string): Promise<Scope[]> {
  const ancestors = lineageOf(uid).slice(0, -1);
  if (ancestors.length === 0) return [];
  const params = Object.fromEntries(ancestors.map((ancestor, i) => [`uid${i}`, ancestor]));
  const known = new Map((await tx.rows(findScopes(ancestors.length), params)).map((scope) => [scope.uid, scope]));
  const scopes: Scope[] = [];
  for (const ancestor of ancestors) {
    const scope = known.get(ancestor) ?? (await tx.rows(insertScope, { uid: ancestor }))[0];
    if (scope === undefined) throw new TypeError(`${ancestor} has no number`);
    scopes.push({ ...scope, uid: ancestor, below: bytesBelow(uid, ancestor) });
  }
  return scopes;
}

type Entries = Record<IndexList["type"], Entry[]>;

/** Builds the entries of a row: of all orders, or of those that `isChanged` selects. */
function buildEntries(
  kind: ResourceIndex,
  scopes: readonly Scope[],
  row: IndexedRow,
  isChanged: ((sort: { column: string }) => boolean) | undefined,
): Entries {
  const entries: Entries = { text: [], time: [] };
  const parent = scopes.at(-1);
  const inParent = (list: number, key: string | number): Entry[] =>
    kind.childLists && parent ? [{ list, scope: parent.id, key, below: parent.below }] : [];
  for (const sort of Object.values(kind.sorts)) {
    if (isChanged?.(sort) === false) continue;
    const key = columnValue(row, sort.column);
    for (const { id, below } of scopes) entries[sort.type].push({ list: sort.list, scope: id, key, below });
    entries[sort.type].push(...inParent(childListOf(sort), key));
  }
  if (!isChanged) entries.text.push(...inParent(kind.childrenByUid, ""));
  return entries;
}

async function writeEntries(tx: Executor, family: typeof insertEntries, entries: Entries): Promise<void> {
  for (const type of ["text", "time"] as const) {
    const some = entries[type];
    if (some.length === 0) continue;
    const params: Params = {};
    some.forEach(({ list, scope, key, below }, i) => {
      params[`list${i}`] = list;
      params[`scope${i}`] = scope;
      params[`key${i}`] = key;
      params[`below${i}`] = below;
    });
    await tx.rows(family({ type, entries: some.length }), params);
  }
}

// Most scopes have no ranks, and their entries are not looked up.
function buildRankChanges(scopes: readonly Scope[], entries: Entries, delta: RankChange["delta"]): RankChange[] {
  const changes: RankChange[] = [];
  for (const { id } of scopes.filter(({ ranked }) => ranked)) {
    for (const type of ["text", "time"] as const) {
      for (const entry of entries[type])
        if (entry.scope === id) changes.push({ of: { type, ...entry }, ...entry, delta });
    }
  }
  return changes;
}

// The order of uids is that of the table: it has ranks without having entries.
function buildUidChanges(kind: ResourceIndex, scopes: readonly Scope[], delta: RankChange["delta"]): RankChange[] {
  const list = kind.descendantsByUid;
  return scopes
    .filter(({ ranked }) => ranked)
    .map(({ id, uid, below }) => ({
      of: { type: "text", list, scope: id, rows: { kind, scopeUid: uid } },
      key: "",
      below,
      delta,
    }));
}

const slots = new WeakMap<Executor, number>();

// Any slot is correct: a total is the sum of its slots, of which some may be negative. A transaction has one slot for all
// its rows: if two took several, each in another order, they would wait for each other, and PostgreSQL notices that only
// after a second.
function findSlot(tx: Executor): number {
  let slot = slots.get(tx);
  if (slot === undefined) {
    slot = Math.floor(Math.random() * tx.counterSlots);
    slots.set(tx, slot);
  }
  return slot;
}

async function updateTotals(tx: Executor, kind: ResourceIndex, scopes: readonly Scope[], slot: number, n: number) {
  const params: Params = { slot, n };
  const parent = scopes.at(-1) as Scope;
  const totals = scopes.map(({ id }) => ({ counter: kind.counter, scope: id }));
  totals.push({ counter: kind.counter + 1, scope: parent.id });
  totals.forEach(({ counter, scope }, i) => {
    params[`counter${i}`] = counter;
    params[`scope${i}`] = scope;
  });
  await tx.rows(addToTotals(totals.length), params);
}
