// Reads on SQLite. Those of one tick of the event loop share a transaction, because several units of a tick take turns
// statement by statement, and each would need a connection of its own. Three things make this more than a `BEGIN`:
//
// 1. A read must see every write that was acknowledged before, by this process or by another one. So a unit joins the
//    snapshot of its tick only while nothing was committed since the snapshot began: `PRAGMA data_version` changes with
//    every commit of another connection. It is read on a connection that is never in a transaction, because within one it
//    does not change, and before the snapshot begins, so that no commit falls between the two.
// 2. Some units are long, such as the chunk of a large list. SQLite runs in the thread of the event loop, so such a unit
//    calls `tx.pause()` between its statements. Once it has used 3 ms, the pause resolves in a later tick, and one paused
//    unit resumes per tick.
// 3. A unit that has paused still reads one snapshot from its beginning to its end. So it pins the snapshot: a snapshot
//    that is pinned keeps its connection, and later reads get another one.
//
// A snapshot is in one of these states:
//
//   current    units of this tick join it
//   replaced   something was committed: units that joined it read it to their end, at most until the tick ends
//   pinned     a unit has paused on it; until that unit settles, only the units that joined it in its tick read it
//   ended      nobody reads it; its connection is idle again. A unit that still tries made the error of awaiting something
//              other than its transaction
//
// At most four snapshots are pinned, because each has a connection and keeps the write-ahead log from being truncated. A
// unit that would pin a fifth fails within `pause`, waits until one is released, and runs again from its start
// (`#readWhenReleased`). That is allowed, because a read has no effects.
import type { Executor, Statement, Take } from "../statement.js";
import type { Tx } from "../transaction.js";
import { Transaction } from "../transaction.js";

/** A connection that only reads. */
export interface ReadConnection extends Executor {
  /** Begins or ends its one transaction. */
  control(statement: "BEGIN" | "COMMIT" | "ROLLBACK"): void;
  close(): void;
}

/** How long one unit may take before it pauses, in milliseconds. */
const SLICE_MS = 3;

/** How many snapshots may outlive their tick at the same time; each has a connection. */
const MAX_PINNED = 4;

/**
 * Reads of one tick of the event loop share a snapshot unless something was committed meanwhile, by whichever process, so that
 * a read sees every write that was acknowledged before.
 *
 * A unit that pauses pins its snapshot and its connection until it settles, and later reads use another connection: a long
 * unit sees one snapshot from beginning to end and does not block others.
 */
export class SnapshotReader {
  readonly #open: () => ReadConnection;
  readonly #dataVersion: () => unknown;
  readonly #readMs: () => number;
  #primary: ReadConnection | undefined;
  readonly #idle: ReadConnection[];
  /** Paused units, in the order in which they resume. */
  readonly #paused: (() => void)[] = [];
  /** Units that could not pause because too many snapshots were pinned; each runs again when one is released. */
  readonly #queued: (() => void)[] = [];
  #current: Snapshot | undefined;
  #pinned = 0;
  #resolveClose: (() => void) | undefined;

  /**
   * @param open opens a connection; called once at the start, and again when all others are in use
   * @param dataVersion reads a number that changes with every commit, on a connection that is not in a transaction
   * @param readMs a monotonic clock, in milliseconds
   */
  constructor(open: () => ReadConnection, dataVersion: () => unknown, readMs = () => performance.now()) {
    this.#open = open;
    this.#dataVersion = dataVersion;
    this.#readMs = readMs;
    this.#primary = open();
    this.#idle = [this.#primary];
  }

  /** Runs `unit` on the snapshot of the current tick of the event loop. */
  read<T>(unit: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#read(unit, false);
  }

  /** Closes the connections after all paused units have settled. */
  async close(): Promise<void> {
    if (this.#current !== undefined) this.#endSnapshot(this.#current);
    if (this.#pinned > 0) {
      await new Promise<void>((resolve) => {
        this.#resolveClose = resolve;
      });
    }
    for (const connection of this.#idle) connection.close();
  }

  async #read<T>(unit: (tx: Tx) => Promise<T>, isPinned: boolean): Promise<T> {
    const snapshot = isPinned ? this.#beginPinned() : this.#currentSnapshot();
    snapshot.units++;
    try {
      // The transaction is not revoked when the unit settles: the end of the snapshot stops later reads.
      return await unit(new ReadUnit(snapshot, this.#readMs));
    } catch (error) {
      if (!(error instanceof TooManyPinnedError)) throw error;
    } finally {
      snapshot.units--;
      this.#releaseWhenUnused(snapshot);
    }
    return this.#readWhenReleased(unit);
  }

  // Runs the unit from the start, on a snapshot of its own that is pinned from the beginning.
  async #readWhenReleased<T>(unit: (tx: Tx) => Promise<T>): Promise<T> {
    while (this.#pinned >= MAX_PINNED) await new Promise<void>((resolve) => this.#queued.push(resolve));
    return this.#read(unit, true);
  }

  #currentSnapshot(): Snapshot {
    if (this.#current !== undefined && this.#current.version !== this.#dataVersion()) {
      const replaced = this.#current;
      this.#current = undefined;
      // Where units of this tick still read it, the last of them ends it.
      if (replaced.units === 0) this.#endSnapshot(replaced);
    }
    if (this.#current === undefined) {
      const snapshot = this.#beginSnapshot();
      this.#current = snapshot;
      setImmediate(() => this.#endSnapshot(snapshot));
    }
    return this.#current;
  }

  #beginPinned(): Snapshot {
    const snapshot = this.#beginSnapshot();
    this.#pin(snapshot);
    return snapshot;
  }

  #beginSnapshot(): Snapshot {
    const version = this.#dataVersion();
    const connection = this.#idle.pop() ?? this.#open();
    this.#primary ??= connection;
    connection.control("BEGIN");
    return new Snapshot(connection, version, this.#pause);
  }

  #pin(snapshot: Snapshot): void {
    snapshot.pinned = true;
    this.#pinned++;
  }

  readonly #pause = (snapshot: Snapshot): Promise<void> => {
    if (!snapshot.pinned) {
      if (this.#pinned >= MAX_PINNED) throw new TooManyPinnedError();
      this.#pin(snapshot);
    }
    return new Promise((resolve) => {
      this.#paused.push(resolve);
      if (this.#paused.length === 1) setImmediate(this.#resumeOne);
    });
  };

  // One unit per tick: the slices of several long units do not add up.
  readonly #resumeOne = (): void => {
    this.#paused.shift()?.();
    if (this.#paused.length > 0) setImmediate(this.#resumeOne);
  };

  #releaseWhenUnused(snapshot: Snapshot): void {
    if (snapshot.units > 0) return;
    if (!snapshot.pinned) {
      if (snapshot !== this.#current) this.#endSnapshot(snapshot);
      return;
    }
    snapshot.pinned = false;
    this.#endSnapshot(snapshot);
    this.#pinned--;
    this.#queued.shift()?.();
    if (this.#pinned === 0) this.#resolveClose?.();
  }

  // Does nothing where it has ended.
  #endSnapshot(snapshot: Snapshot): void {
    if (this.#current === snapshot) this.#current = undefined;
    if (snapshot.pinned || !snapshot.open) return;
    snapshot.open = false;
    this.#release(snapshot.connection);
  }

  #release(connection: ReadConnection): void {
    if (!endTransaction(connection)) {
      if (connection === this.#primary) this.#primary = undefined;
      connection.close();
      return;
    }
    // The last one is used first: the primary connection, which has the large cache, whenever it is idle.
    if (connection === this.#primary) this.#idle.push(connection);
    else this.#idle.unshift(connection);
  }
}

// A statement that failed because of the disk may have ended the transaction, or make its COMMIT fail. Its caller has got
// the error, so there is nobody to throw this one to.
function endTransaction(connection: ReadConnection): boolean {
  for (const statement of ["COMMIT", "ROLLBACK"] as const) {
    try {
      connection.control(statement);
      return true;
    } catch {
      // A connection whose transaction cannot be ended is closed.
    }
  }
  return false;
}

/** A unit has to pause, but too many snapshots are pinned. */
class TooManyPinnedError extends Error {}

// An open read transaction. It stands between units and the connection, so that a unit that outlives its
// snapshot fails and never reads from two.
class Snapshot implements Executor {
  open = true;
  /** Whether it outlives its tick of the event loop. */
  pinned = false;
  /** How many units have not settled. */
  units = 0;
  readonly connection: ReadConnection;
  /** The version of the data before it began. */
  readonly version: unknown;
  readonly counterSlots: number;
  readonly #pause: (snapshot: Snapshot) => Promise<void>;

  constructor(connection: ReadConnection, version: unknown, pause: (snapshot: Snapshot) => Promise<void>) {
    this.connection = connection;
    this.version = version;
    this.counterSlots = connection.counterSlots;
    this.#pause = pause;
  }

  rows<Params extends object, Row, T>(
    statement: Statement<Params, Row>,
    params: Params,
    take?: Take<Row, T>,
  ): Promise<T> {
    if (!this.open) throw new TypeError("a unit of work awaited something other than its transaction");
    return this.connection.rows(statement, params, take);
  }

  readonly changedRows = 0;

  nowMs(): Promise<number> {
    return this.connection.nowMs();
  }

  clockMs(): number {
    return this.connection.clockMs();
  }

  pause(): Promise<void> {
    return this.#pause(this);
  }
}

// The transaction of one unit. Units of one tick take turns statement by statement, so the time of each is that of its own
// statements: by the clock alone, short units among many would pause, and wait for as many ticks. A unit that has paused
// resumes alone in its tick, and the clock also shows what it does between statements.
class ReadUnit extends Transaction {
  readonly #readMs: () => number;
  /** How long statements took before the first pause; counted from the first call of {@link pause}, as most units are short. */
  #sliceMs: number | undefined;
  /** When the unit resumed. */
  #resumedMs: number | undefined;

  constructor(snapshot: Snapshot, readMs: () => number) {
    super(snapshot);
    this.#readMs = readMs;
  }

  override rows<Params extends object, Row, T = Row[]>(
    statement: Statement<Params, Row>,
    params: Params,
    take?: Take<Row, T>,
  ): Promise<T> {
    const beforeMs = this.#sliceMs;
    if (beforeMs === undefined || this.#resumedMs !== undefined) return super.rows(statement, params, take);
    const startMs = this.#readMs();
    const result = super.rows(statement, params, take);
    this.#sliceMs = beforeMs + this.#readMs() - startMs;
    return result;
  }

  override pause(atOnce = false): Promise<void> | undefined {
    if (atOnce) return this.#pauseNow();
    if (this.#resumedMs !== undefined) {
      return this.#readMs() - this.#resumedMs >= SLICE_MS ? this.#pauseNow() : undefined;
    }
    this.#sliceMs ??= 0;
    return this.#sliceMs >= SLICE_MS ? this.#pauseNow() : undefined;
  }

  async #pauseNow(): Promise<void> {
    await super.pause();
    this.#resumedMs = this.#readMs();
  }
}
