// Work per tick of the event loop. Node hands requests over from inside native
// code that is still reading the connection: to write to an HTTP/2 session or to
// end it from there corrupts memory on some versions of Node. So requests are
// taken, answered and ended in callbacks of their own.

/** What a tick does first and what it does after that. */
export type TickPhase = "requests" | "answers";

/**
 * Does its work of a tick.
 *
 * @param lastTickMs how long the tick before took, in milliseconds
 * @returns whether there is work left for the next tick
 */
export type Flush = (lastTickMs: number) => boolean;

const flushes: Record<TickPhase, Flush[]> = { requests: [], answers: [] };
let scheduled = false;
let count = 0;
let startMs = 0;
let lastTickMs = 0;
let isWorkLeft = false;
let isBetweenPhases = false;

// Both phases are scheduled at once: what requests lead to in promises is settled between the two, so that
// their answers leave in the same tick.
function schedule(phase: TickPhase): void {
  if (scheduled) {
    // Too late for this tick.
    if (phase === "requests" && isBetweenPhases) isWorkLeft = true;
    return;
  }
  scheduled = true;
  setImmediate(flushRequests);
  setImmediate(flushAnswers);
}

function flushRequests(): void {
  const nowMs = performance.now();
  // Between two ticks in a row the event loop never rests: all of that time is the work of the first.
  if (isWorkLeft) lastTickMs = nowMs - startMs;
  startMs = nowMs;
  count++;
  isWorkLeft = flush("requests");
  isBetweenPhases = true;
}

function flushAnswers(): void {
  scheduled = false;
  isBetweenPhases = false;
  if (flush("answers")) isWorkLeft = true;
  lastTickMs = performance.now() - startMs;
  if (isWorkLeft) schedule("requests");
}

function flush(phase: TickPhase): boolean {
  let isLeft = false;
  for (const work of flushes[phase]) if (work(lastTickMs)) isLeft = true;
  return isLeft;
}

/** How many ticks have begun: what comes between two of them is told apart by this number. */
export function tickCount(): number {
  return count;
}

/**
 * Adds work that is done in a phase of ticks.
 *
 * @returns a function that asks for a tick
 */
export function onTick(phase: TickPhase, work: Flush): () => void {
  flushes[phase].push(work);
  return () => schedule(phase);
}

/**
 * Puts items off to the next tick, where they are taken one after another in their order. Answers that leave
 * together also cost less: to write one wakes its reader up, while a reader that is awake reads on.
 *
 * @param phase "requests" are taken before "answers"
 * @param take handles one item; after an error the other items are still taken
 * @param onError called with what `take` throws
 * @param atMost how many are taken in one tick; all unless given
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
