// Ranks: how many entries of a long list lie between two positions, so that a page far into the list is found without
// reading what comes before it (docs/adr/0016-ranks.md). The entries from one boundary up to the next are a bucket.
import { bytesBelow, uidBelow } from "../kernel/uidp.js";
import {
  boundariesAt,
  bucketOf,
  type CountEnd,
  countEntries,
  countUids,
  entryAt,
  type FoundBoundary,
  type KeyType,
  lastBoundary,
  type RankParams,
  type RankPosition,
  UNCOUNTED,
  uidAt,
} from "./rank-statements.js";
import type { ResourceIndex } from "./resource-index.js";
import type { Executor } from "./statement.js";

/** A list that may have ranks. */
export interface RankedList {
  readonly type: KeyType;
  /** The number of the list. */
  readonly list: number;
  /** The number of the ancestor whose rows the list contains. */
  readonly scope: number;
  /** Of a list of all descendants in order of uid, which has no entries: the kind, and the uid of the ancestor. */
  readonly rows?: { readonly kind: ResourceIndex; readonly scopeUid: string };
}

/** Whether all entries of a list are counted. */
export async function isRanked(tx: Executor, { type, list, scope }: RankedList): Promise<boolean> {
  const [last] = await tx.rows(lastBoundary(type), { list, scope });
  return last !== undefined && last.n !== null;
}

/** Entries to pass over. */
export interface RankSeek {
  /** The position after which to begin; by default the beginning of the list, or its end where `descending` is set. */
  readonly after?: RankPosition | undefined;
  /** How many entries to pass over; at least 1. */
  readonly skip: number;
  readonly descending: boolean;
}

/**
 * Finds the last of the entries to pass over, at a cost that hardly depends on how many they are.
 *
 * @returns its position; "end" when the list has no more entries than those; undefined when the list has no ranks or
 * is not completely counted
 */
export async function seekRank(
  tx: Executor,
  of: RankedList,
  { after, skip, descending }: RankSeek,
): Promise<RankPosition | "end" | undefined> {
  const { type, list, scope } = of;
  let start: FoundBoundary | undefined;
  let left = skip;
  if (after) {
    [start] = await tx.rows(boundariesAt({ type, size: 1 }), buildNumbered(of, after));
    if (start === undefined || start.n === null) return undefined;
    const passed = await countFrom(tx, of, start, descending ? "before" : "upTo", after);
    if (descending && passed >= skip) return readEntry(tx, of, start, passed - skip);
    left = descending ? skip - passed : skip + passed;
  }
  const shape = { type, descending, from: start !== undefined, slotted: tx.counterSlots > 1 };
  const from = start && { key: start.key, below: start.below };
  const [bucket] = await tx.rows(bucketOf(shape), { list, scope, skip: left, ...from });
  if (bucket === undefined) return start || (await isRanked(tx, of)) ? "end" : undefined;
  if (bucket.n >= UNCOUNTED) return undefined;
  left -= bucket.before;
  return readEntry(tx, of, bucket, descending ? bucket.n - left : left - 1);
}

/** The position of the entry after `offset` others, from `position` on. */
export async function readEntry(
  tx: Executor,
  of: RankedList,
  position: RankPosition,
  offset: number,
): Promise<RankPosition | undefined> {
  if (of.rows) {
    const { kind, scopeUid } = of.rows;
    const [row] = await tx.rows(uidAt(kind), { from: uidBelow(position.below, scopeUid), end: `${scopeUid}0`, offset });
    return row && { key: "", below: bytesBelow(row.uid, scopeUid) };
  }
  const [entry] = await tx.rows(entryAt(of.type), { ...buildRankParams(of, position), offset });
  return entry;
}

/** How many entries there are from `position` on. */
export async function countFrom(
  tx: Executor,
  of: RankedList,
  position: RankPosition,
  end: CountEnd,
  endPosition?: RankPosition,
): Promise<number> {
  if (of.rows) {
    const { kind, scopeUid } = of.rows;
    const endUid = endPosition ? uidBelow(endPosition.below, scopeUid) : `${scopeUid}0`;
    const uids = { from: uidBelow(position.below, scopeUid), end: endUid };
    return (await tx.rows(countUids({ kind, withEnd: end === "upTo" }), uids))[0]?.n ?? 0;
  }
  const bound: RankParams = endPosition ? { endKey: endPosition.key, endBelow: endPosition.below } : {};
  return (
    (await tx.rows(countEntries({ type: of.type, end }), { ...buildRankParams(of, position), ...bound }))[0]?.n ?? 0
  );
}

/** Builds the parameters of statements on one position. */
export function buildRankParams({ list, scope }: RankedList, { key, below }: RankPosition): RankParams {
  return { list, scope, key, below };
}

function buildNumbered(of: RankedList, position: RankPosition): RankParams {
  const params: RankParams = {};
  addNumbered(params, 0, buildRankParams(of, position));
  return params;
}

/** Adds `values` to `params`, with `i` at the end of each name. */
export function addNumbered(params: RankParams, i: number, values: RankParams): void {
  for (const name of Object.keys(values)) params[`${name}${i}`] = values[name] ?? null;
}
