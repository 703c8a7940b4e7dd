// Work per tick of the event loop. Node emits requests from native code that is still reading the connection: to write
// to an HTTP/2 session or to end it there corrupts memory in some versions of Node. So requests are handled, answered
// and ended in callbacks of their own.

/**
 * The phases of a tick, in their order. Rejections come first: a rejected request that is kept while others are handled
 * is copied by each garbage collection, and its connection stays busy.
 */
export type TickPhase = "rejections" | "requests" | "answers";

/**
 * Does the work of one tick.
 *
 * @param lastTickMs how long the last tick took, in milliseconds
 * @returns whether there is work left for the next tick
 */
export type Flush = (lastTickMs: number) => boolean;

const PHASE_INDEX: Readonly<Record<TickPhase, number>> = { rejections: 0, requests: 1, answers: 2 };

const flushes: Record<TickPhase, Flush[]> = { rejections: [], requests: [], answers: [] };
let scheduled = false;
let count = 0;
let startMs = 0;
let lastTickMs = 0;
let isWorkLeft = false;
/** The index of the phase of the scheduled tick that was started last; -1 before the first. */
let currentIndex = -1;

// Both callbacks are scheduled at once. Promises of requests resolve between the two, so that their responses are sent in
// the same tick.
function schedule(phase: TickPhase): void {
  if (scheduled) {
    // A phase that was started does not see this work.
    if (PHASE_INDEX[phase] <= currentIndex) isWorkLeft = true;
    return;
  }
  scheduled = true;
  currentIndex = -1;
  setImmediate(flushRequests);
  setImmediate(flushResponses);
}

function flushRequests(): void {
  const nowMs = performance.now();
  // The event loop does not wait between two consecutive ticks, so all of that time was work.
  if (isWorkLeft) lastTickMs = nowMs - startMs;
  startMs = nowMs;
  count++;
  isWorkLeft = false;
  flush("rejections");
  flush("requests");
}

function flushResponses(): void {
  scheduled = false;
  flush("answers");
  lastTickMs = performance.now() - startMs;
  if (isWorkLeft) schedule("requests");
}

function flush(phase: TickPhase): void {
  currentIndex = PHASE_INDEX[phase];
  for (const work of flushes[phase]) if (work(lastTickMs)) isWorkLeft = true;
}

/** How many ticks have begun. Events with the same count belong to the same tick. */
export function tickCount(): number {
  return count;
}

/**
 * Adds work that is done in a phase of ticks.
 *
 * @returns a function that schedules a tick
 */
export function onTick(phase: TickPhase, work: Flush): () => void {
  flushes[phase].push(work);
  return () => schedule(phase);
}

/**
 * Defers items to the next tick, where they are handled in their order. Responses that are written together also cost
 * less, because each write wakes an idle reader up.
 *
 * @param phase when in the tick they are handled
 * @param take handles one item; after an error the other items are still handled
 * @param onError called with what `take` throws
 * @param atMost how many items are handled in one tick; all unless given
 */
export function flushPerTick<T>(
  phase: TickPhase,
  take: (item: T) => void,
  onError: (error: unknown, item: T) => void,
  atMost = Number.POSITIVE_INFINITY,
): (item: T) => void {
  let waiting: T[] = [];

  const ask = onTick(phase, () => {
    if (waiting.length === 0) return false;
    const items = waiting;
    waiting = items.splice(atMost);
    const isLeft = waiting.length > 0;
    for (const item of items) {
      try {
        take(item);
      } catch (error) {
        onError(error, item);
      }
    }
    return isLeft;
  });

  return (item) => {
    waiting.push(item);
    ask();
  };
}
