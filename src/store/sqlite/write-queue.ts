// Group commit on SQLite's one writer connection: calls wait in fair queues, a batch of them runs in one transaction with
// a savepoint each, and no call gets its response before the commit that makes the batch durable
// (docs/adr/0003-group-commit.md).
//
//   submit      puts the unit in the queue of its caller (kernel/fair-queue.ts), and schedules a drain
//   #drain      in the next tick: BEGIN IMMEDIATE, which waits up to 5 s for other processes
//   #runBatch   takes units in the order of the fair queue, until 64 have run or 5 ms have passed
//   #runCall    SAVEPOINT; the unit; RELEASE, or ROLLBACK TO where the unit has failed. One that fails takes nothing with it
//   #commit     COMMIT, which waits for the disk
//   responses   each caller gets the value or the error of its unit; then the next batch
//
// A batch fails as a whole, and each of its callers gets the error, in three cases: COMMIT fails; an error such as a full
// disk has ended the transaction; or a unit awaits something other than its transaction, which would keep all other
// writers waiting. The last is noticed when the tick ends before the batch does (`nextImmediate`).
import { ApiError, databaseBusy, unavailable } from "../../kernel/errors.js";
import { FairQueue } from "../../kernel/fair-queue.js";
import type { Clock } from "../../kernel/time.js";
import type { TraceSpan } from "../../kernel/trace.js";
import type { Executor } from "../statement.js";
import type { UnitOptions } from "../store.js";
import type { Tx } from "../transaction.js";
import { Transaction } from "../transaction.js";
import { type UnitTurn, waitForTurn } from "../unit-turn.js";
import { createStoreCounts, type StoreCounts } from "../work-gate.js";

export interface WriterConnection extends Executor {
  /** Runs a transaction control statement. */
  control(
    statement: "BEGIN IMMEDIATE" | "COMMIT" | "ROLLBACK" | "SAVEPOINT call" | "RELEASE call" | "ROLLBACK TO call",
  ): void;
  readonly inTransaction: boolean;
}

/** Checks whether the database may be written. What it throws fails a batch. */
export interface WriteGuard {
  beforeBatch(): void;
  /** Called after each commit, before any call of the batch gets its response. */
  afterCommit(): void;
  /** Called when another process has held the database for as long as a batch waits. */
  onBusy(error: unknown): void;
}

/** Limits of a batch. The callers of its first units wait until all of it is committed. */
const MAX_BATCH_CALLS = 64;
const MAX_BATCH_MS = 5;
/**
 * How long to wait for another process to release the database, and how soon to try again: at random, so that no process
 * always comes second. Not in turns of the event loop: those would use the processor that the other process commits on.
 */
const BUSY_LIMIT_MS = 5_000;
const MIN_RETRY_MS = 1;
const MAX_RETRY_MS = 3;
/** How many calls may wait: as many as wait in the transport. */
const MAX_QUEUED = 10_000;

interface QueuedCall extends UnitTurn {
  readonly unit: (tx: Tx) => Promise<unknown>;
  /** The span of the unit, where it is recorded. */
  readonly trace: TraceSpan | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Batch {
  readonly calls: QueuedCall[];
  /** When its transaction began, by `performance.now()`. */
  readonly startMs: number;
  /** Is there from the first call on that is traced. */
  trace: TraceSpan | undefined;
}

type Outcome = { readonly call: QueuedCall } & ({ readonly value: unknown } | { readonly error: unknown });

/** The queue of writes. */
export class WriteQueue {
  readonly #connection: WriterConnection;
  readonly #clock: Clock;
  readonly #counts: StoreCounts;
  readonly #guard: WriteGuard;
  readonly #queue = new FairQueue<QueuedCall>(MAX_QUEUED);
  /** From the schedule of a drain until the queue is empty. */
  #isDraining = false;
  #isClosed = false;
  #resolveClose: (() => void) | undefined;

  /**
   * @param counts counts batches and commits
   * @param guard keeps writes out of files that were removed or replaced
   */
  constructor(
    connection: WriterConnection,
    clock: Clock,
    counts: StoreCounts = createStoreCounts(),
    guard: WriteGuard = { beforeBatch() {}, afterCommit() {}, onBusy() {} },
  ) {
    this.#connection = connection;
    this.#clock = clock;
    this.#counts = counts;
    this.#guard = guard;
  }

  /** Queues `unit`; resolves after the commit, rejects with what the unit threw. */
  submit<T>(unit: (tx: Tx) => Promise<T>, options?: UnitOptions): Promise<T> {
    if (this.#isClosed) return Promise.reject(unavailable("the service is stopping"));
    return new Promise<T>((resolve, reject) => {
      const trace = options?.trace?.isRecording ? options.trace : undefined;
      const { key, startByMs, late } = waitForTurn(options ?? {}, this.#clock);
      const call = { key, startByMs, late, unit, trace, resolve: resolve as (value: unknown) => void, reject };
      this.#queue.push(call)?.reject(databaseBusy());
      if (!this.#isDraining) this.#schedule(performance.now() + BUSY_LIMIT_MS);
    });
  }

  /** How many units wait. */
  get length(): number {
    return this.#queue.size;
  }

  /** Accepts no more units; resolves when those in the queue have run. */
  close(): Promise<void> {
    this.#isClosed = true;
    if (!this.#isDraining) return Promise.resolve();
    return new Promise((resolve) => {
      this.#resolveClose = resolve;
    });
  }

  #schedule(busyUntilMs: number): void {
    this.#isDraining = true;
    // A new macrotask, so that all calls of this tick of the event loop share the batch.
    setImmediate(() => void this.#drain(busyUntilMs));
  }

  async #drain(busyUntilMs: number): Promise<void> {
    for (const call of this.#queue.expired(performance.now())) call.reject(call.late());
    try {
      this.#guard.beforeBatch();
      this.#rollBack();
      this.#connection.control("BEGIN IMMEDIATE");
    } catch (error) {
      // Not by the clock of the machine, which may be set back meanwhile.
      if (isBusy(error) && performance.now() < busyUntilMs) {
        setTimeout(() => void this.#drain(busyUntilMs), MIN_RETRY_MS + Math.random() * (MAX_RETRY_MS - MIN_RETRY_MS));
        return;
      }
      if (isBusy(error)) this.#guard.onBusy(error);
      const failure = isBusy(error) ? unavailable("another process holds the database", 1000, error) : error;
      for (let call = this.#queue.take(); call !== undefined; call = this.#queue.take()) call.reject(failure);
      return this.#next();
    }
    const batch: Batch = { calls: [], startMs: performance.now(), trace: undefined };
    let outcomes: Outcome[] = [];
    try {
      outcomes = await this.#runBatch(batch);
      const startMs = performance.now();
      this.#commit(batch);
      this.#guard.afterCommit();
      const commitMs = performance.now() - startMs;
      for (const { key } of batch.calls) this.#queue.charge(key, commitMs / batch.calls.length);
      this.#counts.commitSeconds.observe(commitMs / 1000);
      this.#counts.batchUnits.observe(batch.calls.length);
    } catch (error) {
      this.#rollBack();
      outcomes = batch.calls.map((call) => ({ call, error }));
      batch.trace?.fail(error);
    }
    for (const outcome of outcomes) {
      if ("error" in outcome) outcome.call.reject(outcome.error);
      else outcome.call.resolve(outcome.value);
    }
    this.#next();
  }

  #commit({ calls, trace }: Batch): void {
    const span = trace?.startChild("COMMIT", { "db.system.name": "sqlite", "db.operation.name": "COMMIT" });
    this.#connection.control("COMMIT");
    span?.end();
    trace?.setAttributes({ "arbor.batch.calls": calls.length });
    trace?.end();
  }

  // Throws when the whole batch fails.
  async #runBatch(batch: Batch): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    const { calls } = batch;
    const endMs = batch.startMs + MAX_BATCH_MS;
    const overdue = nextImmediate();
    try {
      while (calls.length < MAX_BATCH_CALLS && (calls.length === 0 || performance.now() < endMs)) {
        const call = this.#queue.take();
        if (call === undefined) break;
        calls.push(call);
        if (call.trace !== undefined) traceCall(batch, call.trace);
        const startMs = performance.now();
        const isLate = startMs >= call.startByMs;
        outcomes.push(isLate ? { call, error: call.late() } : await this.#runCall(call, overdue.reached));
        this.#queue.charge(call.key, performance.now() - startMs);
      }
    } finally {
      overdue.cancel();
    }
    return outcomes;
  }

  async #runCall(call: QueuedCall, overdue: Promise<never>): Promise<Outcome> {
    const tx = new Transaction(this.#connection);
    this.#connection.control("SAVEPOINT call");
    try {
      const value = await Promise.race([call.unit(tx), overdue]);
      tx.revoke();
      this.#connection.control("RELEASE call");
      return { call, value };
    } catch (error) {
      tx.revoke();
      // An error such as a full disk may have ended the transaction: then the whole batch fails.
      if (error instanceof OverdueError || !this.#connection.inTransaction) throw error;
      this.#connection.control("ROLLBACK TO call");
      this.#connection.control("RELEASE call");
      return { call, error };
    }
  }

  // An error of the rollback is not thrown: the callers of this batch get the first error, and the next
  // batch fails by itself.
  #rollBack(): void {
    try {
      if (this.#connection.inTransaction) this.#connection.control("ROLLBACK");
    } catch {
      // The transaction is still open. The next batch tries to end it again.
    }
  }

  #next(): void {
    if (this.#queue.size > 0) {
      this.#schedule(performance.now() + BUSY_LIMIT_MS);
      return;
    }
    this.#isDraining = false;
    this.#resolveClose?.();
  }
}

// A span has one parent. The batch is part of the first traced call, and the others are linked with it both ways.
function traceCall(batch: Batch, call: TraceSpan): void {
  call.addEvent("begin");
  if (batch.trace === undefined) {
    batch.trace = call.startChild("group commit", { "db.system.name": "sqlite" }, batch.startMs);
    return;
  }
  batch.trace.addLink(call);
  call.addLink(batch.trace);
}

/** A unit awaited something other than its transaction. This is a defect, because all other writers had to wait. */
export class OverdueError extends TypeError {
  constructor() {
    super("a unit of work awaited something other than its transaction; its whole batch was rolled back");
    this.name = "OverdueError";
  }
}

// A batch runs in the microtasks of one tick, unless a unit awaits something else.
function nextImmediate(): { reached: Promise<never>; cancel: () => void } {
  let cancel = () => {};
  const reached = new Promise<never>((_, reject) => {
    const immediate = setImmediate(() => reject(new OverdueError()));
    cancel = () => clearImmediate(immediate);
  });
  reached.catch(() => {});
  return { reached, cancel };
}

// Other failures are UNAVAILABLE as well, such as a full disk; only a busy database is worth waiting for.
function isBusy(error: unknown): boolean {
  const cause = error instanceof ApiError ? error.cause : error;
  return String((cause as { code?: unknown } | undefined)?.code).startsWith("SQLITE_BUSY");
}
