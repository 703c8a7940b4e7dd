// Work per tick of the event loop. Node hands requests over from inside native
// code that is still reading the connection: to write to an HTTP/2 session or to
// end it from there corrupts memory on some versions of Node. So requests are
// taken, answered and ended in callbacks of their own.

/** What a tick does first and what it does after that. */
export type TickPhase = "requests" | "answers";

interface Queue {
  flush(): void;
}

const queues: Record<TickPhase, Queue[]> = { requests: [], answers: [] };
let scheduled = false;
let flushedMs = performance.now();

// Both phases are scheduled at once: what requests lead to in promises is settled between the two, so that
// their answers leave in the same tick.
function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  setImmediate(flushRequests);
  setImmediate(flushAnswers);
}

function flushRequests(): void {
  for (const queue of queues.requests) queue.flush();
}

function flushAnswers(): void {
  scheduled = false;
  for (const queue of queues.answers) queue.flush();
  flushedMs = performance.now();
}

/** When the last tick that had work was over, by `performance.now()`: nothing that arrives now is older. */
export function lastTickMs(): number {
  return flushedMs;
}

/**
 * Puts items off to the next tick, where they are taken one after another in their order. Answers that leave
 * together also cost less: to write one wakes its reader up, while a reader that is awake reads on.
 *
 * @param phase "requests" are taken before "answers"
 * @param take handles one item; an error of one item does not keep the others from their turn
 * @param onError told of what `take` throws
 */
export function flushPerTick<T>(
  phase: TickPhase,
  take: (item: T) => void,
  onError: (error: unknown, item: T) => void,
): (item: T) => void {
  let waiting: T[] = [];

  queues[phase].push({
    flush() {
      if (waiting.length === 0) return;
      const items = waiting;
      waiting = [];
      for (const item of items) {
        try {
          take(item);
        } catch (error) {
          onError(error, item);
        }
      }
    },
  });

  return (item) => {
    waiting.push(item);
    schedule();
  };
}
