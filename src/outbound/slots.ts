import { OutboundError } from "./http-request.js";

/** The limits of running and waiting work. */
export interface SlotLimits {
  readonly running: number;
  readonly runningPerAccount: number;
  readonly runningPerTarget: number;
  readonly waiting: number;
  readonly waitingPerAccount: number;
}

interface Waiter {
  readonly target: string;
  start(): void;
}

/** Creates slots, which limit how much work, such as requests, runs at once: in all, for each account and to each target. */
export function createSlots(limits: SlotLimits) {
  const byAccount = new Counter();
  const byTarget = new Counter();
  // A map keeps the order of insertion: a served account moves to the end.
  const queues = new Map<string, Set<Waiter>>();
  let running = 0;
  let waiting = 0;

  const canRun = (account: string, target: string) =>
    running < limits.running &&
    byAccount.get(account) < limits.runningPerAccount &&
    byTarget.get(target) < limits.runningPerTarget;

  function run(account: string, target: string): () => void {
    running++;
    byAccount.add(account, 1);
    byTarget.add(target, 1);
    return () => {
      running--;
      byAccount.add(account, -1);
      byTarget.add(target, -1);
      serve();
    };
  }

  // The loop visits an account again that it moved to the end, so it ends when no waiter can run.
  function serve(): void {
    for (const [account, queue] of queues) {
      if (running >= limits.running) return;
      if (byAccount.get(account) >= limits.runningPerAccount) continue;
      for (const waiter of queue) {
        if (!canRun(account, waiter.target)) continue;
        waiter.start();
        queues.delete(account);
        if (queue.size > 0) queues.set(account, queue);
        break;
      }
    }
  }

  function wait(account: string, target: string, signal: AbortSignal): Promise<() => void> {
    const queue = queues.get(account) ?? new Set();
    if (waiting >= limits.waiting || queue.size >= limits.waitingPerAccount)
      throw new OutboundError("too many are waiting");
    queues.set(account, queue);
    waiting++;
    return new Promise((resolve, reject) => {
      const dequeue = () => {
        waiting--;
        queue.delete(waiter);
        signal.removeEventListener("abort", abort);
      };
      const waiter: Waiter = {
        target,
        start() {
          dequeue();
          resolve(run(account, target));
        },
      };
      const abort = () => {
        dequeue();
        if (queue.size === 0) queues.delete(account);
        reject(signal.reason);
      };
      queue.add(waiter);
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  return {
    /**
     * Acquires a slot, and waits where none is free. Waiting accounts are served round-robin, so that an account with
     * many requests delays only its own; those of one account are served in order of arrival.
     *
     * @param account the owner of the work
     * @param target the destination, such as an origin
     * @returns the function that releases the slot, to be called once
     * @throws the reason of `signal` when it is aborted first, or an OutboundError when too many wait already
     */
    async acquire(account: string, target: string, signal: AbortSignal): Promise<() => void> {
      signal.throwIfAborted();
      return canRun(account, target) ? run(account, target) : wait(account, target, signal);
    },
  };
}

/** Counts by name; keeps no name whose count is zero. */
class Counter {
  readonly #counts = new Map<string, number>();

  get(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(name: string, by: number): void {
    const count = this.get(name) + by;
    if (count === 0) this.#counts.delete(name);
    else this.#counts.set(name, count);
  }
}
