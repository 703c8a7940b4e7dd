// Fair queueing by deficit round-robin (Shreedhar and Varghese, 1995): each key has a queue of its own, and the queues are
// served in turn. What an item costs is known only afterwards, so a key is charged then, and a key in debt is passed over
// until its turns have paid for it. So a key with many or dear items delays its own items only.

/** Who waits, and for how long. */
export interface Turn {
  /** Whose turn it is: usually the address of a caller. */
  readonly key: string;
  /** When the item is given up if its turn has not come, by `performance.now()`. */
  readonly startByMs: number;
}

/** The key of the service itself. */
export const SERVICE = "";

/** The items of one key. */
interface Flow<T> {
  readonly key: string;
  readonly items: T[];
  /** What it may still cost in its turn, in milliseconds; negative if it has cost more. */
  creditMs: number;
  /** The round in which it last had a turn. */
  round: number;
  /** The next flow of the ring; undefined while it is not in the ring. */
  next: Flow<T> | undefined;
}

/** What a key is given in each round, in milliseconds: less than most items cost, so that keys are served by cost. */
const QUANTUM_MS = 0.05;
/** The most that a key owes, in milliseconds: a pause of the process is charged to whose item runs at the time. */
const MAX_DEBT_MS = 25;
/** When there are as many keys, the debts of those without items are forgiven. */
const MAX_KEYS = 20_000;

/** Items that wait for their turn. */
export class FairQueue<T extends Turn> {
  readonly #capacity: number;
  readonly #flows = new Map<string, Flow<T>>();
  /** The last flow of the ring, whose next is the first. */
  #last: Flow<T> | undefined;
  #round = 0;
  #size = 0;

  /** @param capacity how many items may wait */
  constructor(capacity = Number.POSITIVE_INFINITY) {
    this.#capacity = capacity;
  }

  /** How many items wait. */
  get size(): number {
    return this.#size;
  }

  /** Adds an item. Returns the one that has no room: the newest of the longest queue, which may be the same item. */
  push(item: T): T | undefined {
    const flow = this.#flowOf(item.key);
    flow.items.push(item);
    this.#size++;
    this.#enter(flow);
    return this.#size > this.#capacity ? this.#dropNewest(this.#longest(flow)) : undefined;
  }

  /** Takes the next item. */
  take(): T | undefined {
    for (let first = this.#last?.next; first !== undefined; first = this.#last?.next) {
      if (first.items.length === 0) {
        this.#leave(first);
        continue;
      }
      // The first has waited longest for its turn. If it had one in this round, all have.
      if (first.round === this.#round) this.#round++;
      first.round = this.#round;
      this.#last = first;
      if (first.creditMs > 0) {
        this.#size--;
        return first.items.shift();
      }
      first.creditMs += QUANTUM_MS;
    }
    // Nobody waits, so nobody is owed anything.
    this.#flows.clear();
    return undefined;
  }

  /** Charges a key for what an item has cost, in milliseconds. */
  charge(key: string, costMs: number): void {
    const flow = this.#flowOf(key);
    flow.creditMs = Math.max(flow.creditMs - costMs, -MAX_DEBT_MS);
  }

  /**
   * Takes items that were not served in time. Those behind others of their key follow when they are the first.
   *
   * @param atMost how many
   */
  expired(nowMs: number, atMost = Number.POSITIVE_INFINITY): T[] {
    const expired: T[] = [];
    for (const { items } of this.#flows.values()) {
      while (items[0] !== undefined && items[0].startByMs <= nowMs && expired.length < atMost)
        expired.push(items.shift() as T);
    }
    this.#size -= expired.length;
    return expired;
  }

  takeNewest(key: string): T | undefined {
    const flow = this.#flows.get(key);
    return flow && this.#dropNewest(flow);
  }

  /** All items that wait. */
  *[Symbol.iterator](): Generator<T> {
    for (const { items } of this.#flows.values()) yield* items;
  }

  #flowOf(key: string): Flow<T> {
    let flow = this.#flows.get(key);
    if (flow === undefined) {
      if (this.#flows.size >= MAX_KEYS) this.#forgetIdle();
      flow = { key, items: [], creditMs: QUANTUM_MS, round: this.#round, next: undefined };
      this.#flows.set(key, flow);
    }
    return flow;
  }

  // Puts a flow at the end of the ring, with what it would have been given in the rounds that it missed.
  #enter(flow: Flow<T>): void {
    if (flow.next !== undefined) return;
    flow.creditMs = Math.min(flow.creditMs + (this.#round - flow.round) * QUANTUM_MS, QUANTUM_MS);
    flow.round = this.#round;
    flow.next = this.#last?.next ?? flow;
    if (this.#last !== undefined) this.#last.next = flow;
    this.#last = flow;
  }

  #leave(first: Flow<T>): void {
    if (first === this.#last) this.#last = undefined;
    else if (this.#last !== undefined) this.#last.next = first.next;
    first.next = undefined;
  }

  #longest(longest: Flow<T>): Flow<T> {
    for (const flow of this.#flows.values()) if (flow.items.length > longest.items.length) longest = flow;
    return longest;
  }

  #dropNewest(flow: Flow<T>): T | undefined {
    const item = flow.items.pop();
    if (item !== undefined) this.#size--;
    return item;
  }

  #forgetIdle(): void {
    for (const [key, flow] of this.#flows) if (flow.next === undefined) this.#flows.delete(key);
  }
}
