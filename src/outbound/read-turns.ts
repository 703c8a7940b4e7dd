// Shares the event loop among the connections to other servers. What a server sends is parsed in small slices, and only for
// some milliseconds between two looks at all other sockets: a flood of tiny pieces delays nobody but its own organisation.

/** How long slices are parsed in one iteration of the event loop, in milliseconds. */
const BUDGET_MS = 4;

/** A connection with bytes that have arrived. */
export interface SliceReader {
  /** Whose turn it takes, such as an organisation. */
  readonly account: string;
  /** Parses one slice at most, and waits for another turn if there is more. */
  readSlice(): void;
}

export interface ReadTurnsOptions {
  /** In milliseconds; replaced in tests. */
  readonly now?: () => number;
  /** Calls back after the sockets that are ready; replaced in tests. */
  readonly defer?: (callback: () => void) => void;
}

/** Lets accounts take turns, and readers of an account; a reader has one turn in an iteration of the event loop. */
export class ReadTurns {
  readonly #now: () => number;
  readonly #defer: (callback: () => void) => void;
  /** In the order of their turns. */
  #waiting = new Map<string, Set<SliceReader>>();
  #isServing = false;
  #isDue = false;

  constructor({ now = () => performance.now(), defer = setImmediate }: ReadTurnsOptions = {}) {
    this.#now = now;
    this.#defer = defer;
  }

  /** Waits for a turn. A reader that waits already keeps its place. */
  add(reader: SliceReader): void {
    addTo(this.#waiting, reader);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isDue || this.#isServing) return;
    this.#isDue = true;
    this.#defer(() => this.#serve());
  }

  #serve(): void {
    this.#isDue = false;
    this.#isServing = true;
    const endMs = this.#now() + BUDGET_MS;
    // Who comes now waits for the next iteration, and those that got no turn in this one come first in it.
    const due = this.#waiting;
    this.#waiting = new Map();
    try {
      do {
        const reader = takeNext(due);
        if (reader === undefined) break;
        reader.readSlice();
      } while (this.#now() < endMs);
    } finally {
      // Also after an error, so that one connection stops no other.
      for (const readers of this.#waiting.values()) for (const reader of readers) addTo(due, reader);
      this.#waiting = due;
      this.#isServing = false;
      if (due.size > 0) this.#schedule();
    }
  }
}

function addTo(waiting: Map<string, Set<SliceReader>>, reader: SliceReader): void {
  const readers = waiting.get(reader.account);
  if (readers) readers.add(reader);
  else waiting.set(reader.account, new Set([reader]));
}

// An account moves to the end with its turn.
function takeNext(waiting: Map<string, Set<SliceReader>>): SliceReader | undefined {
  for (const [account, readers] of waiting) {
    waiting.delete(account);
    for (const reader of readers) {
      readers.delete(reader);
      if (readers.size > 0) waiting.set(account, readers);
      return reader;
    }
  }
  return undefined;
}
