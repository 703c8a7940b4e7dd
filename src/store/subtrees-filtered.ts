// Lists with filters that no list of the index supports: every row of the visible subtrees is scanned, a few
// thousand in one statement.
import { countSegment, endsBefore, filterAfter, readSegment, type Segment, startsAfter } from "./list-segment.js";
import type { ListQuery } from "./port.js";
import type { ResourceIndex } from "./resource-index.js";
import type { Executor } from "./statement.js";
import { createTop, type ListRows, readCounts, readMany, splitChunks } from "./subtrees-page.js";

/** How many rows one statement scans at most. */
export const MAX_SCAN = 4_000;

/** How many rows the largest of `segments` holds, without any filter. */
export async function countLargest(tx: Executor, kind: ResourceIndex, segments: readonly Segment[]): Promise<number> {
  const counts = await readCounts(tx, kind, segments);
  return Math.max(0, ...counts.values());
}

/** Reads the page of the rows that match the filter, and counts them. */
export async function readFilteredPage(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  byUid: ListRows,
  rowLimit: number,
): Promise<ListRows> {
  const { order, after, skip, uncounted } = query;
  const top = createTop(kind, query, skip + rowLimit);
  top.add(filterAfter(byUid.rows, kind, query));
  let { total } = byUid;
  let found = 0;
  // Ranges are read in the order of uids: in that order, and without a total, the first rows found are the page.
  const isComplete = () => uncounted && order.field === "uid" && !order.descending && found >= skip + rowLimit;
  const scan = async (chunk: readonly Segment[]) => {
    const [only] = chunk;
    if (only && chunk.length === 1) {
      if (!uncounted) total += await countSegment(tx, kind, query, only);
      const rows = await readSegment(tx, kind, query, only, { skip: 0, limit: skip + rowLimit });
      top.add(rows);
      found += rows.length;
    } else {
      const { rows, total: count } = await readMany(tx, kind, query, chunk, rowLimit);
      top.add(rows);
      found += rows.length;
      total += count;
    }
    await tx.pause?.();
  };
  const sign = order.descending ? -1 : 1;
  const ordered = [...segments].sort((a, b) => (a.scope < b.scope ? -sign : sign));
  const remaining = uncounted && after ? ordered.filter((one) => !endsBefore(after, order, one)) : ordered;
  for (const many of splitChunks(remaining)) {
    const counts = await readCounts(tx, kind, many);
    for (const chunk of groupBySize(many, counts)) {
      const [only] = chunk;
      if (isComplete()) break;
      if (only && (counts.get(only.scope) ?? 0) > MAX_SCAN) {
        for await (const range of splitSubtree(tx, kind, query, only)) {
          await scan([range]);
          if (isComplete()) break;
        }
      } else {
        await scan(chunk);
      }
    }
  }
  return { rows: top.rows().slice(skip), total };
}

// Groups segments so that each group holds at most as many rows as one statement scans. A larger segment is
// a group of its own.
function* groupBySize(segments: readonly Segment[], counts: ReadonlyMap<string, number>): Generator<Segment[]> {
  let group: Segment[] = [];
  let size = 0;
  for (const segment of segments) {
    const count = counts.get(segment.scope) ?? 0;
    if (count === 0) continue;
    if (group.length > 0 && size + count > MAX_SCAN) {
      yield group;
      group = [];
      size = 0;
    }
    group.push(segment);
    size += count;
  }
  if (group.length > 0) yield group;
}

// Splits what is below a group into ranges of uids, in the order of uids. Ranges before the position of the query are
// left out when nothing is counted.
async function* splitSubtree(
  tx: Executor,
  kind: ResourceIndex,
  { order, after, uncounted }: ListQuery,
  { scope }: Segment,
): AsyncGenerator<Segment> {
  const end = `${scope}0`;
  const startsAtPosition = uncounted && after && order.field === "uid" && !order.descending;
  const subtree: Segment = { from: "subtree", scope };
  let first = startsAtPosition && !startsAfter(after, order, subtree) ? after.uid : scope;
  const byUid: ListQuery = { visible: [], filter: {}, order: { field: "uid", descending: false }, skip: 0, limit: 1 };
  for (;;) {
    const rest: Segment = { from: "subtree", scope: first, end };
    const [last] = await readSegment(tx, kind, byUid, rest, { skip: MAX_SCAN - 1, limit: 1 });
    // The first text after the uid: what can follow in a longer uid comes later.
    yield last === undefined ? rest : { ...rest, end: `${last.uid}!` };
    if (last === undefined) return;
    first = last.uid;
  }
}
