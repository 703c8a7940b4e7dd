// Replaces a long skip in one segment of a list by the position that it leads to.
import { positionBelow, uidBelow } from "./below.js";
import { positionOf, readSegment, type Segment } from "./list-segment.js";
import { scopeNumber } from "./list-statements.js";
import type { ListPosition, ListQuery } from "./port.js";
import type { RankPosition } from "./rank-statements.js";
import { type RankedList, seekRank } from "./ranks.js";
import { findList, type ResourceIndex } from "./resource-index.js";
import type { Executor } from "./statement.js";

/** How many rows one statement skips at most. */
export const SKIP_STEP = 5_000;
/** To skip so many rows costs less than to find their rank. */
const MIN_SEEK = 1_000;

/**
 * Shortens the skip of a query: by ranks, or in steps where a list has none. A page may have to be read in steps at any
 * time, because ranks are built in the background.
 *
 * @returns the query to read, or undefined when the segment has no rows after those to skip
 */
export async function skipRows(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segment: Segment,
): Promise<ListQuery | undefined> {
  const { name, equals = {} } = query.filter;
  if (query.skip <= MIN_SEEK || Object.keys(equals).length > 0) return query;
  if (name === undefined) {
    const last = await findRank(tx, kind, query, segment);
    if (last === "end") return undefined;
    if (last) return { ...query, skip: 0, after: last };
  }
  return skipInSteps(tx, kind, query, segment);
}

async function findRank(
  tx: Executor,
  kind: ResourceIndex,
  { order: { field, descending }, after, skip }: ListQuery,
  { from, scope: scopeUid }: Segment,
): Promise<ListPosition | "end" | undefined> {
  const [row] = await tx.rows(scopeNumber, { scope: scopeUid });
  if (row === undefined) return undefined;
  const byUid = field === "uid";
  const list: RankedList | undefined =
    byUid && from === "subtree"
      ? { type: "text", list: kind.descendantsByUid, scope: row.id, rows: { kind, scopeUid } }
      : withScope(findList(kind, from, field), row.id);
  if (list === undefined) return undefined;
  const position = after && { key: byUid ? "" : after.key, below: positionBelow(after.uid, scopeUid) };
  const last = await seekRank(tx, list, { after: position, skip, descending });
  return typeof last === "object" ? toListPosition(last, scopeUid, byUid) : last;
}

function withScope(list: Omit<RankedList, "scope"> | undefined, scope: number): RankedList | undefined {
  return list && { ...list, scope };
}

function toListPosition({ key, below }: RankPosition, scopeUid: string, byUid: boolean): ListPosition {
  const uid = uidBelow(below, scopeUid);
  return { key: byUid ? uid : key, uid };
}

async function skipInSteps(tx: Executor, kind: ResourceIndex, query: ListQuery, segment: Segment): Promise<ListQuery> {
  let start = query;
  while (start.skip > SKIP_STEP) {
    const [last] = await readSegment(tx, kind, start, segment, { skip: SKIP_STEP - 1, limit: 1 });
    if (last === undefined) break;
    start = { ...start, skip: start.skip - SKIP_STEP, after: positionOf(last, kind, query.order) };
    await tx.pause?.();
  }
  return start;
}
