// Reads a page of a list that has several parts.

import { splitChunks } from "./counters.js";
import { endsBefore, type Part, planPart, planScan, type Reading, type ReadPlan, sizeOf, startsAfter } from "./plan.js";
import type { ListPosition } from "./query.js";
import { readPart } from "./scan.js";
import { comparePositions, countPart, type Found, readFirst, type Wanted } from "./walk.js";

/** How many rows of one part the merge reads first, and at most, at a time. */
const FIRST_ROWS = 8;
const MAX_ROWS = 256;

/**
 * Reads a page in the order of uids: part after part, since they do not overlap.
 *
 * @param separate rows outside the parts, in the order of the list
 */
export async function concatenate(
  reading: Reading,
  parts: readonly Part[],
  separate: readonly Found[],
  { skip, limit }: Pick<Wanted, "skip" | "limit">,
): Promise<Found[]> {
  const { query } = reading;
  const { order, after } = query;
  const sign = order.descending ? -1 : 1;
  const pieces: { readonly uid: string; readonly part?: Part; readonly found?: Found }[] = [
    ...parts.map((part) => ({ uid: part.scope, part })),
    ...separate.map((found) => ({ uid: found.at.uid, found })),
  ];
  pieces.sort((a, b) => (a.uid < b.uid ? -sign : sign));
  const page: Found[] = [];
  let rest = skip;
  for (const { part, found } of pieces) {
    if (page.length >= limit) break;
    if (found) {
      if (rest > 0) rest--;
      else page.push(found);
    }
    if (part === undefined || (after && endsBefore(after, order, part))) continue;
    if (rest > 0) {
      const count = await countAfter(reading, part, after);
      await reading.tx.pause?.();
      if (count <= rest) {
        rest -= count;
        continue;
      }
    }
    page.push(...(await readPart(reading, part, { after, skip: rest, limit: limit - page.length, whole: false })));
    rest = 0;
    await reading.tx.pause?.();
  }
  return page;
}

// How many rows of a part follow a position.
function countAfter(reading: Reading, part: Part, after: ListPosition | undefined): number | Promise<number> {
  const { filter, order } = reading.query;
  const isAll = after === undefined || startsAfter(after, order, part);
  const isUnfiltered = filter.name === undefined && filter.equals === undefined;
  if (isAll && (isUnfiltered || part.matches !== undefined)) return sizeOf(part);
  return countPart(reading, part, planScan(reading, part), after);
}

/**
 * Reads a page in any order: the parts are merged, and of each one some more rows are read when they are needed.
 *
 * @param separate rows outside the parts, in the order of the list
 */
export async function merge(
  reading: Reading,
  parts: readonly Part[],
  separate: readonly Found[],
  { skip, limit }: Pick<Wanted, "skip" | "limit">,
): Promise<Found[]> {
  const { tx, query } = reading;
  const sign = query.order.descending ? -1 : 1;
  const heap = createHeap<Stream>((a, b) => sign * comparePositions(a.head.at, b.head.at));
  const push = (stream: Stream | undefined) => {
    if (stream) heap.push(stream);
  };
  const jump = await skipInLargest(reading, parts, separate, skip);
  if (jump === "end") return [];
  push(nextOf({ ahead: [...separate].reverse(), size: 0 }));
  if (jump) push(await refill(reading, { part: jump.part, size: FIRST_ROWS, ahead: [] }, jump.at));
  const others = jump ? parts.filter((part) => part !== jump.part) : parts;
  for (const chunk of splitChunks(others)) {
    for (const stream of await startStreams(reading, chunk)) push(stream);
    await tx.pause?.();
  }
  const page: Found[] = [];
  let rest = skip - (jump?.passed ?? 0);
  for (let stream = heap.pop(); stream !== undefined && page.length < limit; stream = heap.pop()) {
    if (rest > 0) rest--;
    else page.push(stream.head);
    push(nextOf(stream) ?? (await refill(reading, stream, stream.head.at)));
    await tx.pause?.();
  }
  return page;
}

// Of the rows to skip, those that the other parts cannot have are in the largest part, where an index passes over them.
async function skipInLargest(reading: Reading, parts: readonly Part[], separate: readonly Found[], skip: number) {
  const [first, ...others] = parts;
  if (first === undefined) return undefined;
  const part = others.reduce((a, b) => (sizeOf(b) > sizeOf(a) ? b : a), first);
  const elsewhere = parts.reduce((sum, one) => sum + sizeOf(one), separate.length) - sizeOf(part);
  const passed = skip - elsewhere;
  if (passed <= MAX_ROWS) return undefined;
  const wanted: Wanted = { after: reading.query.after, skip: passed - 1, limit: 1, whole: false };
  const [last] = await readPart(reading, part, wanted);
  // Without that row there are fewer rows than those to skip.
  return last ? { part, at: last.at, passed } : "end";
}

/** The rows that were read of a part and not yet taken, or those outside the parts. */
interface Source {
  readonly part?: Part | undefined;
  /** The next one last. */
  readonly ahead: Found[];
  /** How many to read when there are none; 0 when the part has no more. */
  readonly size: number;
}

interface Stream extends Source {
  readonly head: Found;
}

function nextOf(source: Source): Stream | undefined {
  const head = source.ahead.pop();
  return head && { ...source, head };
}

async function refill(
  reading: Reading,
  { part, size }: Source,
  after: ListPosition | undefined,
): Promise<Stream | undefined> {
  if (part === undefined || size === 0) return undefined;
  return toStream(part, await readPart(reading, part, { after, skip: 0, limit: size, whole: false }), size);
}

function toStream(part: Part, found: Found[], size: number): Stream | undefined {
  return nextOf({ part, ahead: found.reverse(), size: found.length < size ? 0 : Math.min(2 * size, MAX_ROWS) });
}

// Reads the first rows of some parts: by one statement of those for which an index has the order of the list.
async function startStreams(reading: Reading, parts: readonly Part[]): Promise<(Stream | undefined)[]> {
  const { after } = reading.query;
  const streams: (Stream | undefined)[] = [];
  const direct = new Map<string, { readonly plan: ReadPlan; readonly parts: Part[] }>();
  for (const part of parts) {
    const plan = planPart(reading, part, FIRST_ROWS);
    if (plan.by !== "sort" || plan.isSparse) {
      streams.push(await refill(reading, { part, size: FIRST_ROWS, ahead: [] }, after));
      continue;
    }
    const key = `${plan.inRange}`;
    const same = direct.get(key) ?? { plan, parts: [] };
    direct.set(key, same);
    same.parts.push(part);
  }
  for (const { plan, parts: some } of direct.values()) {
    const found = await readFirst(reading, some, plan, { after, limit: FIRST_ROWS });
    for (const [i, part] of some.entries()) streams.push(toStream(part, found[i] ?? [], FIRST_ROWS));
  }
  return streams;
}

// A priority queue.
interface Heap<T> {
  push(item: T): void;
  /** Removes and returns the least item; undefined when there is none. */
  pop(): T | undefined;
}

// Creates a binary heap; `compare` is negative where `a` comes before `b`.
function createHeap<T>(compare: (a: T, b: T) => number): Heap<T> {
  const items: T[] = [];
  const at = (i: number) => items[i] as T;
  const isBefore = (i: number, j: number) => compare(at(i), at(j)) < 0;
  const swap = (i: number, j: number) => {
    [items[i], items[j]] = [at(j), at(i)];
  };
  return {
    push(item) {
      let i = items.push(item) - 1;
      for (let parent = (i - 1) >> 1; i > 0 && isBefore(i, parent); parent = (i - 1) >> 1) {
        swap(i, parent);
        i = parent;
      }
    },
    pop() {
      const last = items.pop();
      if (items.length === 0 || last === undefined) return last;
      const least = at(0);
      items[0] = last;
      for (let i = 0; ; ) {
        const left = 2 * i + 1;
        if (left >= items.length) return least;
        const child = left + 1 < items.length && isBefore(left + 1, left) ? left + 1 : left;
        if (!isBefore(child, i)) return least;
        swap(i, child);
        i = child;
      }
    },
  };
}
