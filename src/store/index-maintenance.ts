// Keeps the order tables and counters equal to the rows they index, in the transaction that changes
// the rows.
import { and, eq, inArray, sql } from "drizzle-orm";
import { lineageOf, parentOf } from "../kernel/uidp.js";
import { columnValue, type IndexedRow, type ResourceIndex, type SortField } from "./resource-index.js";
import { type Executor, statementFamily } from "./statement.js";

type Params = Record<string, string | number>;
type Shape = { readonly type: SortField["type"]; readonly scopes: number };

const orderTable = { text: "textOrder", time: "timeOrder" } as const;
const shapeKey = ({ type, scopes }: Shape) => `${type}${scopes}`;
const numberNames = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}${i}`);

const insertEntries = statementFamily<Shape, Params>(shapeKey, ({ type, scopes }) => (q, t) => {
  const entry = (scope: string) => ({
    list: sql.placeholder("list"),
    scope: sql.placeholder(scope),
    key: sql.placeholder("key"),
    uid: sql.placeholder("uid"),
  });
  const entries = numberNames("scope", scopes).map(entry);
  return type === "text" ? q.insert(t.textOrder).values(entries) : q.insert(t.timeOrder).values(entries);
});

const deleteEntries = statementFamily<Shape, Params>(shapeKey, ({ type, scopes }) => (q, t) => {
  // Both order tables have the same columns; only the type of the key differs.
  const o = t[orderTable[type]] as typeof t.textOrder;
  return q.delete(o).where(
    and(
      eq(o.list, sql.placeholder("list")),
      inArray(
        o.scope,
        numberNames("scope", scopes).map((name) => sql.placeholder(name)),
      ),
      eq(o.key, sql.placeholder("key")),
      eq(o.uid, sql.placeholder("uid")),
    ),
  );
});

const addToCounter = statementFamily<number, Params>(
  String,
  (counters) => (q, t) =>
    q
      .insert(t.counters)
      .values(
        Array.from({ length: counters }, (_, i) => ({
          counter: sql.placeholder(`counter${i}`),
          scope: sql.placeholder(`scope${i}`),
          slot: sql.placeholder("slot"),
          n: sql.placeholder("n"),
        })),
      )
      .onConflictDoUpdate({
        target: [t.counters.counter, t.counters.scope, t.counters.slot],
        set: { n: sql`${t.counters.n} + excluded.n` },
      }),
);

/** Adds a new row to the index of its kind. */
export async function addToIndex(tx: Executor, kind: ResourceIndex, row: IndexedRow): Promise<void> {
  if (kind.where?.includes(row) === false) return;
  const scopes = scopesOf(kind, row.uid);
  // Rows without ancestors, such as people, are in no subtree.
  if (scopes.length === 0) return;
  for (const sort of Object.values(kind.sorts)) await tx.rows(...buildEntries(insertEntries, sort, scopes, row));
  await updateCounters(tx, kind, row.uid, scopes, 1);
}

/** Removes a row that is about to be deleted from the index of its kind. */
export async function removeFromIndex(tx: Executor, kind: ResourceIndex, row: IndexedRow): Promise<void> {
  if (kind.where?.includes(row) === false) return;
  const scopes = scopesOf(kind, row.uid);
  if (scopes.length === 0) return;
  for (const sort of Object.values(kind.sorts)) await tx.rows(...buildEntries(deleteEntries, sort, scopes, row));
  await updateCounters(tx, kind, row.uid, scopes, -1);
}

/** Updates the entries of the sort fields that changed. */
export async function reindex(tx: Executor, kind: ResourceIndex, before: IndexedRow, after: IndexedRow): Promise<void> {
  if (kind.where?.includes(before) === false) return;
  const scopes = scopesOf(kind, before.uid);
  if (scopes.length === 0) return;
  for (const sort of Object.values(kind.sorts)) {
    if (columnValue(before, sort.column) === columnValue(after, sort.column)) continue;
    await tx.rows(...buildEntries(deleteEntries, sort, scopes, before));
    await tx.rows(...buildEntries(insertEntries, sort, scopes, after));
  }
}

function scopesOf(kind: ResourceIndex, uid: string): string[] {
  const lineage = lineageOf(uid);
  if (!kind.includesSelf) lineage.pop();
  return lineage;
}

function buildEntries(family: typeof insertEntries, sort: SortField, scopes: readonly string[], row: IndexedRow) {
  const params: Params = { list: sort.list, key: columnValue(row, sort.column), uid: row.uid };
  scopes.forEach((scope, i) => {
    params[`scope${i}`] = scope;
  });
  return [family({ type: sort.type, scopes: scopes.length }), params] as const;
}

async function updateCounters(tx: Executor, kind: ResourceIndex, uid: string, scopes: string[], n: number) {
  const parent = parentOf(uid);
  // Any slot is correct: a counter is the sum of its slots, of which some may be negative.
  const params: Params = { slot: Math.floor(Math.random() * tx.counterSlots), n };
  const counters = scopes.map((scope) => ({ counter: kind.counter, scope }));
  if (parent !== undefined) counters.push({ counter: kind.counter + 1, scope: parent });
  counters.forEach(({ counter, scope }, i) => {
    params[`counter${i}`] = counter;
    params[`scope${i}`] = scope;
  });
  await tx.rows(addToCounter(counters.length), params);
}
