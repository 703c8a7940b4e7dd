// A database as the service uses it, whichever it is: units of work, and what is known of their state. sqlite/open.ts and
// pg/open.ts open one; `test/store/store-suite.ts` tests both. A write takes these steps to its acknowledgement:
//
//   unit-watch.ts              the store that calls get: names the queue of the caller, and notes units that do not end.
//   work-gate.ts               rejects units once the process is about to end.
//   SQLite                     sqlite/write-queue.ts puts the unit in the queue of its caller. The next tick of the event
//                              loop begins a transaction, in which up to 64 units run, each in a savepoint of its own. One
//                              COMMIT makes all of them durable. Then the callers get their results.
//   PostgreSQL                 pg/turns.ts gives the unit a connection when it is its turn. It runs in a serializable
//                              transaction (pg/pipeline.ts), from the start again after a conflict, and its caller waits
//                              for its COMMIT.
//   after that                 a full or lost disk, or a server that is away, has become UNAVAILABLE for the caller, and a
//                              fault with its cause for the operator (faults.ts). No caller has a response to a write that
//                              is not in the database.
import type { Histogram } from "../kernel/histogram.js";
import type { TraceSpan } from "../kernel/trace.js";
import type { DatabaseFaultCounts } from "./faults.js";
import type { Tx } from "./transaction.js";

/** Limits of one unit of work. */
export interface UnitOptions {
  /** In whose queue the unit waits: usually the address of a caller. That of the service itself unless set. */
  readonly key?: string | undefined;
  /** How long the unit waits for the database until it is given up, in milliseconds; without end unless set. */
  readonly maxWaitMs?: number | undefined;
  /** When the caller stops waiting, in epoch milliseconds: a unit does not start after that. */
  readonly deadlineMs?: number;
  /**
   * How long the transaction may wait for this process, in milliseconds, for rows that other nodes wait for: PostgreSQL
   * ends the transaction of a node that is suspended. 30 s unless set; SQLite ignores it.
   */
  readonly maxIdleMs?: number;
  /** The span of the unit, to which the store adds its commit, the batch that it shares, and why it runs again. */
  readonly trace?: TraceSpan | undefined;
}

/** What a store counts since it was opened, for metrics. */
export interface StoreStats {
  /** How many units of work a transaction committed; PostgreSQL commits each one alone and counts none. */
  readonly batchUnits: Histogram;
  /** How long commits of transactions that wrote took, in seconds. */
  readonly commitSeconds: Histogram;
  /** How many transactions ran again after a conflict. */
  readonly conflicts: number;
  /** How many units wait for the writer of SQLite, or for a connection to PostgreSQL. */
  readonly waiting: number;
  /** The connections to PostgreSQL. */
  readonly pool?: { readonly busy: number; readonly idle: number; readonly max: number };
  /** Reads the sizes of the files of SQLite and what is free beside them, in bytes. */
  readonly files?: () => { readonly database: number; readonly wal: number; readonly free: number };
  /** The faults of the machine or of the database server. */
  readonly faults?: DatabaseFaultCounts;
}

/** A database. */
export interface Store {
  /**
   * Runs `unit` on one snapshot that contains every write acknowledged before. The unit must await
   * nothing but its `tx`, which can no longer be used once the unit settles.
   *
   * @throws ApiError UNAVAILABLE when the database cannot be reached, or has no time for it.
   */
  read<T>(unit: (tx: Tx) => Promise<T>, options?: UnitOptions): Promise<T>;

  /**
   * Runs `unit` in one serializable transaction and resolves after it is durable. When a concurrent
   * transaction conflicts with it, the unit is rolled back and runs again from the start, so it must
   * have no effect besides its `tx`.
   *
   * @throws ApiError ABORTED when conflicts do not end, UNAVAILABLE, DEADLINE_EXCEEDED; what the unit
   * throws, after its writes are rolled back.
   */
  write<T>(unit: (tx: Tx) => Promise<T>, options?: UnitOptions): Promise<T>;

  /**
   * A row may become visible at most this many milliseconds after its number was assigned: concurrent
   * writers commit in another order than they begin. 0 where there is one writer at a time. Holds for
   * rows that a unit of work writes last, as it does with the audit log.
   */
  readonly lateCommitMs: number;

  /** Reads the counts of this process. */
  stats(): StoreStats;

  /**
   * Resolves when the database answers and its schema is current, to what works; rejects otherwise. `read-only` says
   * that writes failed a moment ago, as on a full disk.
   */
  check(): Promise<"ok" | "read-only">;

  /** Closes every connection after the writes in progress are done. */
  close(): Promise<void>;
}
