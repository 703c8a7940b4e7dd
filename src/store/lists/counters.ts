// Counters: how many rows of each kind lie below an ancestor, and how many are its children. They change in the
// transaction that changes the rows, and give lists their totals and quotas their usage.
import { and, eq, inArray, sql } from "drizzle-orm";
import { lineageOf } from "../../kernel/uidp.js";
import {
  buildManyValues,
  type Executor,
  padParams,
  statement,
  statementFamily,
  toNumber,
  value,
} from "../statement.js";
import { type Counted, counterOf, familyOf, type ListedKind, type ListedRow } from "./resource.js";

type Params = Record<string, string | number>;

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

const addToCounters = statementFamily<number, Params>(
  String,
  (size) => (q, t) =>
    q
      .insert(t.counters)
      .values(buildManyValues(t.counters, size, "slot", "n"))
      .onConflictDoUpdate({
        target: [t.counters.scope, t.counters.counter, t.counters.slot],
        set: { n: sql`${t.counters.n} + excluded.n` },
      }),
);

const deleteCounters = statement<{ scope: string }>((q, t) =>
  q.delete(t.counters).where(eq(t.counters.scope, value("scope"))),
);

/** Counts a row that was inserted into its table or deleted from it, or several that have the same parent and family. */
export async function countRow(tx: Executor, kind: ListedKind, row: ListedRow, change: number): Promise<void> {
  // What was below the row is gone, and a later row with its uid must not find its counters.
  if (change < 0 && kind.hasRowsBelow) await tx.rows(deleteCounters, { scope: row.uid });
  const ancestors = lineageOf(row.uid).slice(0, -1);
  const parent = ancestors.at(-1);
  // Rows without ancestors, such as people, are in no subtree.
  if (parent === undefined) return;
  const family = familyOf(row, kind);
  const params: Params = { slot: findSlot(tx), n: change };
  const add = (i: number, scope: string, counted: Counted) => {
    params[`scope${i}`] = scope;
    params[`counter${i}`] = counterOf(kind, counted, family);
  };
  // Root first in every transaction: two that change the same counters wait for each other in one direction only.
  for (const [i, scope] of ancestors.entries()) add(i, scope, "below");
  add(ancestors.length, parent, "children");
  await tx.rows(addToCounters(ancestors.length + 1), params);
}

const slots = new WeakMap<Executor, number>();

// Any slot is correct: a counter is the sum of its slots, of which some may be negative. A transaction has one slot for
// all its rows: if two took several, each in another order, they would wait for each other, and PostgreSQL notices that
// only after a second.
function findSlot(tx: Executor): number {
  let slot = slots.get(tx);
  if (slot === undefined) {
    slot = Math.floor(Math.random() * tx.counterSlots);
    slots.set(tx, slot);
  }
  return slot;
}

/** How many uids one statement takes at most. */
export const CHUNK = 128;

/** Splits `items` into chunks of at most {@link CHUNK}. */
export function* splitChunks<T>(items: readonly T[]): Generator<T[]> {
  for (let start = 0; start < items.length; start += CHUNK) yield items.slice(start, start + CHUNK);
}

const readStatement = statementFamily<
  { readonly scopes: number; readonly counters: number },
  Params,
  { scope: string; counter: number; n: number }
>(
  ({ scopes, counters }) => `${scopes} ${counters}`,
  ({ scopes, counters }) =>
    (q, t) => {
      const c = t.counters;
      const isCounter = numbers(counters).map((i) => value(`counter${i}`));
      const isScope = numbers(scopes).map((i) => value(`scope${i}`));
      return q
        .select({ scope: c.scope, counter: c.counter, n: toNumber(sql`sum(${c.n})`).as("n") })
        .from(c)
        .where(and(inArray(c.scope, isScope), inArray(c.counter, isCounter)))
        .groupBy(c.scope, c.counter);
    },
);

/** Values of counters by scope and number. */
export type CounterValues = (scope: string, counter: number) => number;

/** Reads counters of some scopes. */
export async function readCounters(
  tx: Executor,
  scopes: readonly string[],
  counters: readonly number[],
): Promise<CounterValues> {
  const found = new Map<string, Map<number, number>>();
  const numbered = Object.fromEntries(counters.map((counter, i) => [`counter${i}`, counter]));
  for (const chunk of splitChunks([...new Set(scopes)])) {
    const { size, params } = padParams("scope", chunk);
    const rows = await tx.rows(readStatement({ scopes: size, counters: counters.length }), { ...numbered, ...params });
    for (const { scope, counter, n } of rows) {
      const values = found.get(scope) ?? new Map<number, number>();
      found.set(scope, values.set(counter, n));
    }
    await tx.pause?.();
  }
  return (scope, counter) => found.get(scope)?.get(counter) ?? 0;
}

/** How many rows of a kind lie below a scope, of all families. */
export async function countBelow(tx: Executor, kind: ListedKind, scope: string): Promise<number> {
  const counters = (kind.families?.values ?? [0]).map((family) => counterOf(kind, "below", family));
  const read = await readCounters(tx, [scope], counters);
  return counters.reduce((sum, counter) => sum + read(scope, counter), 0);
}
