// Lists with filters that no order table knows: every row of the visible
// subtrees is looked at, a few thousand in one statement.
import { behind, isBeyond, isPassed, type Segment, segmentRows, segmentTotal } from "./list-segment.js";
import type { ListQuery } from "./port.js";
import type { ResourceIndex } from "./resource-index.js";
import type { Executor } from "./statement.js";
import { chunksOf, countsOf, createTop, type Found, manyRows } from "./subtrees-page.js";

/** How many rows one statement looks at. */
export const LARGE = 4_000;

/** How many rows the largest of `segments` holds, before any filter. */
export async function largestOf(tx: Executor, kind: ResourceIndex, segments: readonly Segment[]): Promise<number> {
  const counts = await countsOf(
    tx,
    kind,
    segments.map(({ scope }) => scope),
  );
  return Math.max(0, ...counts.values());
}

/** The page of the rows that pass the filter, and their number. */
export async function filteredPage(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  single: Found,
  wanted: number,
): Promise<Found> {
  const { order, after, skip, uncounted } = query;
  const top = createTop(kind, query, skip + wanted);
  top.add(behind(single.rows, kind, query));
  let { total } = single;
  let found = 0;
  // In the order of uids, which is that of the ranges, a list that is not counted is complete with its page.
  const isComplete = () => uncounted && order.field === "uid" && !order.descending && found >= skip + wanted;
  const look = async (part: readonly Segment[]) => {
    const [only] = part;
    if (only && part.length === 1) {
      if (!uncounted) total += await segmentTotal(tx, kind, query, only);
      const rows = await segmentRows(tx, kind, query, only, { skip: 0, limit: skip + wanted });
      top.add(rows);
      found += rows.length;
    } else {
      const { rows, total: count } = await manyRows(tx, kind, query, part, wanted);
      top.add(rows);
      found += rows.length;
      total += count;
    }
    await tx.pause?.();
  };
  const sign = order.descending ? -1 : 1;
  const ordered = [...segments].sort((a, b) => (a.scope < b.scope ? -sign : sign));
  const needed = uncounted && after ? ordered.filter((one) => !isPassed(after, order, one)) : ordered;
  for (const chunk of chunksOf(needed)) {
    const counts = await countsOf(
      tx,
      kind,
      chunk.map(({ scope }) => scope),
    );
    for (const part of partsOf(chunk, counts)) {
      const [only] = part;
      if (isComplete()) break;
      if (only && (counts.get(only.scope) ?? 0) > LARGE) {
        for await (const range of rangesOf(tx, kind, query, only)) {
          await look([range]);
          if (isComplete()) break;
        }
      } else {
        await look(part);
      }
    }
  }
  return { rows: top.rows().slice(skip), total };
}

// Segments that together hold at most as many rows as one statement looks at; a larger one by itself.
function* partsOf(segments: readonly Segment[], counts: ReadonlyMap<string, number>): Generator<Segment[]> {
  let part: Segment[] = [];
  let size = 0;
  for (const segment of segments) {
    const count = counts.get(segment.scope) ?? 0;
    if (count === 0) continue;
    if (part.length > 0 && size + count > LARGE) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(segment);
    size += count;
  }
  if (part.length > 0) yield part;
}

// The ranges of uids that make up a subtree, in the order of uids; those that a list has passed are left
// out where nothing is counted.
async function* rangesOf(
  tx: Executor,
  kind: ResourceIndex,
  { order, after, uncounted }: ListQuery,
  { scope, withSelf }: Segment,
): AsyncGenerator<Segment> {
  const end = `${scope}0`;
  const skipsPassed = uncounted && after && order.field === "uid" && !order.descending;
  const whole: Segment = { from: "subtree", scope, withSelf };
  let first = skipsPassed && !isBeyond(after, order, whole) ? after.uid : scope;
  const plain: ListQuery = { visible: [], filter: {}, order: { field: "uid", descending: false }, skip: 0, limit: 1 };
  for (;;) {
    const rest: Segment = { from: "subtree", scope: first, end, withSelf: withSelf || first !== scope };
    const [next] = await segmentRows(tx, kind, plain, rest, { skip: LARGE, limit: 1 });
    yield next === undefined ? rest : { ...rest, end: next.uid };
    if (next === undefined) return;
    first = next.uid;
  }
}
