import { OutboundError } from "./outbound-error.js";

/** The limits of running and waiting work. */
export interface SlotLimits {
  readonly running: number;
  readonly runningPerAccount: number;
  readonly runningPerTarget: number;
  /** Of one account to one target; by default as many as the limits of both allow. */
  readonly runningPerAccountAndTarget?: number;
  /**
   * Whether an account may take no more slots than are free, in all and of a target: the more accounts are busy, the fewer
   * each has, and one that has none finds a free slot.
   */
  readonly leavesFree?: boolean;
  readonly waiting: number;
  readonly waitingPerAccount: number;
}

interface Waiter {
  start(): void;
}

/** Limits how much work, such as requests, runs at once. */
export type Slots = ReturnType<typeof createSlots>;

/** Creates slots, which limit how much work, such as requests, runs at once: in all, for each account and to each target. */
export function createSlots(limits: SlotLimits) {
  const { runningPerAccountAndTarget = Number.POSITIVE_INFINITY, leavesFree = false } = limits;
  const byAccount = new Counter();
  const byTarget = new Counter();
  const byBoth = new Counter();
  const waitingByAccount = new Counter();
  // Waiters by account and target. A map keeps the order of insertion: what was served moves to the end.
  const queues = new Map<string, Map<string, Set<Waiter>>>();
  let running = 0;
  let waiting = 0;

  function canRun(account: string, target: string): boolean {
    const free = limits.running - running;
    const mine = byAccount.get(account);
    if (free <= 0 || mine >= limits.runningPerAccount || (leavesFree && mine >= free)) return false;
    const freeAtTarget = limits.runningPerTarget - byTarget.get(target);
    const mineAtTarget = byBoth.get(both(account, target));
    if (freeAtTarget <= 0 || mineAtTarget >= runningPerAccountAndTarget) return false;
    return !leavesFree || mineAtTarget < freeAtTarget;
  }

  function count(account: string, target: string, by: 1 | -1): void {
    running += by;
    byAccount.add(account, by);
    byTarget.add(target, by);
    byBoth.add(both(account, target), by);
  }

  function run(account: string, target: string): () => void {
    count(account, target, 1);
    return () => {
      count(account, target, -1);
      serve();
    };
  }

  // The loop visits an account again that it moved to the end, so it ends when no waiter can run.
  function serve(): void {
    for (const [account, targets] of queues) {
      if (running >= limits.running) return;
      if (byAccount.get(account) >= limits.runningPerAccount) continue;
      for (const [target, waiters] of targets) {
        const [waiter] = waiters;
        if (waiter === undefined || !canRun(account, target)) continue;
        waiter.start();
        moveToEnd(targets, target);
        moveToEnd(queues, account);
        break;
      }
    }
  }

  function wait(account: string, target: string, signal: AbortSignal): Promise<() => void> {
    if (waiting >= limits.waiting || waitingByAccount.get(account) >= limits.waitingPerAccount)
      throw new OutboundError("too many are waiting");
    const targets = queues.get(account) ?? new Map<string, Set<Waiter>>();
    const waiters = targets.get(target) ?? new Set();
    queues.set(account, targets.set(target, waiters));
    waiting++;
    waitingByAccount.add(account, 1);
    return new Promise((resolve, reject) => {
      const dequeue = () => {
        waiting--;
        waitingByAccount.add(account, -1);
        waiters.delete(waiter);
        if (waiters.size === 0) targets.delete(target);
        if (targets.size === 0) queues.delete(account);
        signal.removeEventListener("abort", abort);
      };
      const waiter: Waiter = {
        start() {
          dequeue();
          resolve(run(account, target));
        },
      };
      const abort = () => {
        dequeue();
        reject(signal.reason);
      };
      waiters.add(waiter);
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  return {
    /**
     * Acquires a slot, and waits where none is free. Waiting accounts are served round-robin, so that an account with
     * many requests delays only its own, and so are the targets of an account; those to one target are served in order of
     * arrival.
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

function both(account: string, target: string): string {
  return `${account} ${target}`;
}

function moveToEnd<T>(map: Map<string, T>, key: string): void {
  const value = map.get(key);
  if (value === undefined) return;
  map.delete(key);
  map.set(key, value);
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
