// Keeps ranks (ranks.ts) equal to the entries of their lists, and counts lists that have none.
import {
  addToBuckets,
  BASE_SLOT,
  boundariesAt,
  bucketSize,
  deleteBucket,
  deleteRanksOf,
  type FoundBoundary,
  type KeyType,
  lastBoundary,
  markScope,
  putBucket,
  type RankParams,
  type RankPosition,
  type RankRow,
} from "./rank-statements.js";
import { addNumbered, buildRankParams, countFrom, type RankedList, readEntry } from "./ranks.js";
import type { Executor } from "./statement.js";

/** An entry that was added to a list or removed from it. */
export interface RankChange extends RankPosition {
  readonly of: RankedList;
  readonly delta: 1 | -1;
}

/** How many entries a new bucket has. One with more than twice as many is divided. */
const BUCKET = 1_000;

/** How many slots' worth of changes of a bucket are added up at the least, in relation to its size. */
const FOLD_SHARE = 0.8;

/** Where every list begins; no entry has this position. */
const START: Record<KeyType, RankPosition> = {
  text: { key: "", below: Buffer.alloc(0) },
  time: { key: Number.MIN_SAFE_INTEGER, below: Buffer.alloc(0) },
};

/**
 * Records changes of entries in the ranks of their lists; lists without ranks stay without. Call it after the entries
 * were changed, in the same transaction.
 *
 * @param slot the slot to add to where concurrent writers have different ones, as for totals
 * @param size how many entries a bucket has
 */
export async function adjustRanks(
  tx: Executor,
  changes: readonly RankChange[],
  slot: number,
  size = BUCKET,
): Promise<void> {
  for (const type of ["text", "time"] as const) {
    const ofType = changes.filter((change) => change.of.type === type);
    if (ofType.length > 0) await adjustTable(tx, type, ofType, slot, size);
  }
}

async function adjustTable(tx: Executor, type: KeyType, changes: readonly RankChange[], slot: number, size: number) {
  const params: RankParams = {};
  for (const [i, { of, ...position }] of changes.entries()) addNumbered(params, i, buildRankParams(of, position));
  const found = await tx.rows(boundariesAt({ type, size: changes.length }), params);
  const deltas = sumDeltas(changes, found);
  if (deltas.length === 0) return;
  const slotted = tx.counterSlots > 1;
  const added: RankParams = { slot: slotted ? slot : BASE_SLOT };
  for (const [i, { of, boundary, n }] of deltas.entries())
    addNumbered(added, i, { ...buildRankParams(of, boundary), n });
  const rows = await tx.rows(addToBuckets({ type, size: deltas.length, returning: slotted }), added);
  const due = slotted ? findDue(deltas, rows, (FOLD_SHARE * size) / tx.counterSlots) : deltas.filter(isDue(size));
  for (const { of, boundary } of due) await maintainBucket(tx, of, boundary, size);
}

/** A change of a bucket, and the value of its base row before. */
interface Delta {
  readonly of: RankedList;
  readonly boundary: RankPosition;
  readonly base: number;
  n: number;
}

// The changes of each bucket that is counted, without those that cancel out.
function sumDeltas(changes: readonly RankChange[], found: readonly FoundBoundary[]): Delta[] {
  const deltas = new Map<string, Delta>();
  for (const { i, n: base, key, below } of found) {
    const change = changes[i];
    if (base === null || change === undefined) continue;
    const { of, delta } = change;
    const name = `${of.list} ${of.scope} ${below.toString("latin1")} ${key}`;
    const known = deltas.get(name);
    if (known) known.n += delta;
    else deltas.set(name, { of, boundary: { key, below }, base, n: delta });
  }
  return [...deltas.values()].filter(({ n }) => n !== 0);
}

// Without slots, the base row has the size of the bucket.
function isDue(size: number): (delta: Delta) => boolean {
  return ({ base, n }) => base + n > 2 * size || base + n === 0;
}

// With slots, only the one of this writer is read: the others have about the same value, and to read what concurrent
// writers change would be a conflict.
function findDue(deltas: readonly Delta[], slots: readonly RankRow[], limit: number): Delta[] {
  const due = slots.filter(({ n }) => Math.abs(n) >= limit);
  const isSame = ({ of, boundary }: Delta, row: RankRow) =>
    of.list === row.list && of.scope === row.scope && boundary.key === row.key && boundary.below.equals(row.below);
  return due.length === 0 ? [] : deltas.filter((delta) => due.some((row) => isSame(delta, row)));
}

// Makes one row of the bucket's rows, divides the bucket when it is too large, and deletes it when it is empty.
async function maintainBucket(tx: Executor, of: RankedList, boundary: RankPosition, size: number): Promise<void> {
  const params = buildRankParams(of, boundary);
  const [row] = await tx.rows(bucketSize(of.type), params);
  const n = row?.n ?? 0;
  if (n === 0 && boundary.below.length > 0) {
    await tx.rows(deleteBucket({ type: of.type, slots: false }), params);
    return;
  }
  if (tx.counterSlots > 1) await tx.rows(deleteBucket({ type: of.type, slots: true }), params);
  const next = n > 2 * size ? await readEntry(tx, of, boundary, size) : undefined;
  await tx.rows(putBucket(of.type), { ...params, n: next ? size : n });
  if (next) await tx.rows(putBucket(of.type), { ...buildRankParams(of, next), n: n - size });
}

/** Deletes the ranks of all lists of an ancestor. */
export async function deleteRanks(tx: Executor, scope: number): Promise<void> {
  for (const type of ["text", "time"] as const) await tx.rows(deleteRanksOf(type), { scope });
}

/**
 * Counts up to `buckets` buckets of a list more. A list that was never counted gets its first boundary, and its scope
 * is marked: changes of entries in other scopes are not given to {@link adjustRanks}.
 *
 * @param size how many entries a bucket has
 * @returns whether all entries of the list are counted
 */
export async function buildRanks(tx: Executor, of: RankedList, buckets: number, size = BUCKET): Promise<boolean> {
  const [last] = await tx.rows(lastBoundary(of.type), { list: of.list, scope: of.scope });
  if (last && last.n !== null) return true;
  // The bucket that is not counted is always the last one: it has the rest of the list.
  if (last === undefined) await tx.rows(markScope, { scope: of.scope });
  let boundary: RankPosition = last ?? START[of.type];
  for (let i = 0; i < buckets; i++) {
    const next = await readEntry(tx, of, boundary, size);
    const n = next ? size : await countFrom(tx, of, boundary, "last");
    await tx.rows(putBucket(of.type), { ...buildRankParams(of, boundary), n });
    if (next === undefined) return true;
    boundary = next;
  }
  await tx.rows(putBucket(of.type), { ...buildRankParams(of, boundary), n: null });
  return false;
}
