// Group commit on SQLite's one writer connection: calls queue, a batch of them
// runs in one transaction with a savepoint each, and none is answered before
// the commit that makes all of them durable (docs/adr/0003-group-commit.md).

import type { Clock } from "../kernel/clock.js";
import { ApiError, deadlineExceeded, unavailable } from "../kernel/errors.js";
import type { Awaitable, Tx, UnitOptions } from "./port.js";
import type { Executor } from "./statement.js";
import { Transaction } from "./transaction.js";

/** The writer connection, down to what a batch needs of it. */
export interface WriterConnection extends Executor {
  /** Runs one of the statements that frame transactions. */
  frame(
    statement: "BEGIN IMMEDIATE" | "COMMIT" | "ROLLBACK" | "SAVEPOINT call" | "RELEASE call" | "ROLLBACK TO call",
  ): void;
  readonly inTransaction: boolean;
}

/** Limits of a batch; a longer one would keep readers of its first call waiting. */
const MAX_BATCH_CALLS = 64;
const MAX_BATCH_MS = 5;
/** How long to wait for another process to release the database, and how often to look. */
const BUSY_LIMIT_MS = 5_000;
const BUSY_RETRY_MS = 5;

interface Queued {
  readonly unit: (tx: Tx) => Awaitable<unknown>;
  readonly deadlineMs: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly call: Queued } & ({ readonly value: unknown } | { readonly error: unknown });

/** The queue in front of the writer connection. */
export interface WriteQueue {
  /** Runs `unit` in its turn; resolves after the commit, rejects with what the unit threw. */
  submit<T>(unit: (tx: Tx) => Awaitable<T>, options?: UnitOptions): Promise<T>;
  /** Resolves when nothing is queued or running; nothing is accepted from now on. */
  close(): Promise<void>;
}

/**
 * Creates the queue. `beforeAnswer` runs after every commit and before any call of the batch is
 * answered, so that a read begun by an answered caller sees what it wrote.
 */
export function createWriteQueue(connection: WriterConnection, clock: Clock, beforeAnswer: () => void): WriteQueue {
  const queue: Queued[] = [];
  let draining = false;
  let closed = false;
  let idle: (() => void) | undefined;

  return {
    submit<T>(unit: (tx: Tx) => Awaitable<T>, options?: UnitOptions): Promise<T> {
      if (closed) return Promise.reject(unavailable("the service is stopping"));
      return new Promise<T>((resolve, reject) => {
        const deadlineMs = options?.deadlineMs ?? Number.POSITIVE_INFINITY;
        queue.push({ unit, deadlineMs, resolve: resolve as (value: unknown) => void, reject });
        if (!draining) schedule(clock() + BUSY_LIMIT_MS);
      });
    },
    close() {
      closed = true;
      return draining ? new Promise((resolve) => (idle = resolve)) : Promise.resolve();
    },
  };

  function schedule(busyUntilMs: number): void {
    draining = true;
    // A new macrotask, so that all calls of this turn of the event loop share the batch.
    setImmediate(() => void drain(busyUntilMs));
  }

  async function drain(busyUntilMs: number): Promise<void> {
    try {
      connection.frame("BEGIN IMMEDIATE");
    } catch (error) {
      if (isBusy(error) && clock() < busyUntilMs) {
        setTimeout(() => void drain(busyUntilMs), BUSY_RETRY_MS);
        return;
      }
      const failure = isBusy(error) ? unavailable("another process holds the database", 1000, error) : error;
      for (const call of queue.splice(0)) call.reject(failure);
      return next();
    }
    const batch: Queued[] = [];
    let outcomes: Outcome[] = [];
    try {
      outcomes = await runBatch(batch);
      connection.frame("COMMIT");
    } catch (error) {
      rollBack();
      outcomes = batch.map((call) => ({ call, error }));
    }
    beforeAnswer();
    for (const outcome of outcomes) {
      if ("error" in outcome) outcome.call.reject(outcome.error);
      else outcome.call.resolve(outcome.value);
    }
    next();
  }

  // Throws when the batch as a whole is lost.
  async function runBatch(batch: Queued[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    const endMs = performance.now() + MAX_BATCH_MS;
    const overdue = nextImmediate();
    try {
      while (batch.length < MAX_BATCH_CALLS && (batch.length === 0 || performance.now() < endMs)) {
        const call = queue.shift();
        if (call === undefined) break;
        batch.push(call);
        outcomes.push(
          clock() > call.deadlineMs ? { call, error: deadlineExceeded() } : await runCall(call, overdue.reached),
        );
      }
    } finally {
      overdue.cancel();
    }
    return outcomes;
  }

  async function runCall(call: Queued, overdue: Promise<never>): Promise<Outcome> {
    const tx = new Transaction(connection);
    connection.frame("SAVEPOINT call");
    try {
      const value = await Promise.race([call.unit(tx), overdue]);
      tx.revoke();
      connection.frame("RELEASE call");
      return { call, value };
    } catch (error) {
      tx.revoke();
      // The error itself may have ended the transaction (disk full, for one): then all of the batch is lost.
      if (error instanceof OverdueError || !connection.inTransaction) throw error;
      connection.frame("ROLLBACK TO call");
      connection.frame("RELEASE call");
      return { call, error };
    }
  }

  // A database that cannot even roll back will say so to the next batch; the callers of this one
  // must hear of the first error all the same.
  function rollBack(): void {
    try {
      if (connection.inTransaction) connection.frame("ROLLBACK");
    } catch {
      // The transaction is open still, and BEGIN fails until it is gone.
    }
  }

  function next(): void {
    if (queue.length > 0) {
      schedule(clock() + BUSY_LIMIT_MS);
      return;
    }
    draining = false;
    idle?.();
  }
}

/** A unit awaited something besides its transaction; a defect, since it held every other writer up. */
export class OverdueError extends TypeError {
  constructor() {
    super("a unit of work awaited something other than its transaction; its whole batch was rolled back");
    this.name = "OverdueError";
  }
}

// All of a batch runs in the microtasks of one turn, unless a unit waits for something else.
function nextImmediate(): { reached: Promise<never>; cancel: () => void } {
  let cancel = () => {};
  const reached = new Promise<never>((_, reject) => {
    const immediate = setImmediate(() => reject(new OverdueError()));
    cancel = () => clearImmediate(immediate);
  });
  reached.catch(() => {});
  return { reached, cancel };
}

// The connection says UNAVAILABLE of more than this, such as a full disk; only for this waiting helps.
function isBusy(error: unknown): boolean {
  const cause = error instanceof ApiError ? error.cause : error;
  return String((cause as { code?: unknown } | undefined)?.code).startsWith("SQLITE_BUSY");
}
