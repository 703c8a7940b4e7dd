import type { Awaitable, Tx } from "./port.js";
import type { Executor } from "./statement.js";
import { Transaction } from "./transaction.js";

/** A connection that only reads. */
export interface ReadConnection extends Executor {
  /** Begins or ends its one transaction. */
  frame(statement: "BEGIN" | "COMMIT"): void;
  close(): void;
}

/** Reads on SQLite's read-only connections. */
export interface SnapshotReader {
  /** Runs `unit` on the snapshot of this turn of the event loop. */
  read<T>(unit: (tx: Tx) => Awaitable<T>): Awaitable<T>;
  /** Ends the snapshot, so that the next read sees every commit up to now. */
  endTurn(): void;
  /** Closes the connections after the units that are paused have settled. */
  close(): Promise<void>;
}

/** How long units of one snapshot may keep the event loop before they pause, in milliseconds. */
const SLICE_MS = 3;

/** How many snapshots may outlive their turn at once; each holds a connection. */
const MAX_HELD = 4;

/**
 * Creates the reader. All reads of one turn of the event loop share a read transaction: beginning
 * one costs as much as a point read. The snapshot ends with the turn, and at every commit of this
 * process, so a read never misses a write that was acknowledged before it began.
 *
 * A unit that pauses takes the snapshot and its connection with it, and later reads get another
 * connection, so that a long unit sees one snapshot to its end and keeps nobody waiting.
 *
 * @param open opens a connection; called once at the start, and again while all others are held
 */
export function createSnapshotReader(open: () => ReadConnection): SnapshotReader {
  const primary = open();
  const idle: ReadConnection[] = [primary];
  /** Units that pause, each waiting for its next slice. */
  const paused: (() => void)[] = [];
  /** Units that could not pause because too many snapshots were held; each runs again when one is let go. */
  const queued: (() => void)[] = [];
  let turn: Turn | undefined;
  let held = 0;
  let drained: (() => void) | undefined;

  function take(): ReadConnection {
    return idle.pop() ?? open();
  }

  function release(connection: ReadConnection): void {
    connection.frame("COMMIT");
    // The last is taken first: that the one with the large cache is used whenever it is free.
    if (connection === primary) idle.push(connection);
    else idle.unshift(connection);
  }

  function begin(): Turn {
    const connection = take();
    connection.frame("BEGIN");
    return new Turn(connection, pause, settled);
  }

  function endTurn(): void {
    const ended = turn;
    turn = undefined;
    if (ended === undefined || ended.held) return;
    ended.open = false;
    release(ended.connection);
  }

  function currentTurn(): Turn {
    if (turn === undefined) {
      const begun = begin();
      turn = begun;
      setImmediate(() => {
        if (turn === begun) endTurn();
      });
    }
    return turn;
  }

  function hold(one: Turn): void {
    one.held = true;
    held++;
  }

  function pause(from: Turn): Promise<void> {
    if (!from.held) {
      if (held >= MAX_HELD) throw new NoSlotError();
      hold(from);
    }
    return new Promise((resolve) => {
      paused.push(() => {
        from.beginSlice();
        resolve();
      });
      if (paused.length === 1) setImmediate(resumeOne);
    });
  }

  // One in each turn of the event loop: the slices of several long units do not add up.
  function resumeOne(): void {
    paused.shift()?.();
    if (paused.length > 0) setImmediate(resumeOne);
  }

  function settled(of: Turn): void {
    if (!of.held || of.units > 0) return;
    if (turn === of) turn = undefined;
    of.open = false;
    of.held = false;
    release(of.connection);
    held--;
    queued.shift()?.();
    if (held === 0) drained?.();
  }

  function readOn<T>(on: Turn, unit: (tx: Tx) => Awaitable<T>): Awaitable<T> {
    // Not revoked when it settles, but with the turn: a read that comes late harms nobody else.
    const result = unit(new Transaction(on));
    if (!(result instanceof Promise)) return result;
    on.units++;
    return result.then(on.resolved<T>, on.rejected).catch((error) => {
      if (error instanceof NoSlotError) return readWhenFree(unit);
      throw error;
    });
  }

  // From the start, on a snapshot of its own that it may keep from the beginning.
  async function readWhenFree<T>(unit: (tx: Tx) => Awaitable<T>): Promise<T> {
    while (held >= MAX_HELD) await new Promise<void>((resolve) => queued.push(resolve));
    const own = begin();
    hold(own);
    return readOn(own, async (tx) => unit(tx));
  }

  return {
    read: (unit) => readOn(currentTurn(), unit),
    endTurn,
    async close() {
      endTurn();
      if (held > 0) await new Promise<void>((resolve) => (drained = resolve));
      for (const connection of idle) connection.close();
    },
  };
}

/** A unit wants to pause and cannot yet. */
class NoSlotError extends Error {}

// Stands between transactions and the connection, so that a unit that outlives its snapshot fails
// instead of reading from two.
class Turn implements Executor {
  open = true;
  /** Whether the snapshot outlives this turn of the event loop. */
  held = false;
  /** How many units have not settled. */
  units = 0;
  readonly connection: ReadConnection;
  readonly counterSlots: number;
  readonly #pause: (turn: Turn) => Promise<void>;
  readonly #settled: (turn: Turn) => void;
  #sliceMs = performance.now();

  constructor(connection: ReadConnection, pause: (turn: Turn) => Promise<void>, settled: (turn: Turn) => void) {
    this.connection = connection;
    this.counterSlots = connection.counterSlots;
    this.#pause = pause;
    this.#settled = settled;
  }

  rows: Executor["rows"] = (statement, params) => {
    if (!this.open) throw new TypeError("a unit of work awaited something other than its transaction");
    return this.connection.rows(statement, params);
  };

  beginSlice(): void {
    this.#sliceMs = performance.now();
  }

  pause(): Promise<void> | undefined {
    return performance.now() - this.#sliceMs < SLICE_MS ? undefined : this.#pause(this);
  }

  resolved = <T>(value: T): T => {
    this.units--;
    this.#settled(this);
    return value;
  };

  rejected = (error: unknown): never => {
    this.units--;
    this.#settled(this);
    throw error;
  };
}
