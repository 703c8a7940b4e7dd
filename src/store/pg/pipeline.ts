// The transaction of a unit of work over a pipelined connection (docs/adr/0023-pipelined-transactions.md). Statements are
// sent without waiting for the responses to those before them, and the server runs them in their order.
import type pg from "pg";
import type { Executor, Statement, Take } from "../statement.js";
import type { Begin } from "./access.js";
import { findErrorCode, type PgExecutor } from "./connection.js";

/** A transaction that is beginning, or has begun. */
export class PipelinedTransaction implements Executor {
  readonly counterSlots: number;
  /** Resolves when the server has begun the transaction. */
  readonly begun: Promise<void>;
  readonly #client: pg.ClientBase;
  readonly #executor: PgExecutor;
  #isOpen = true;
  #hasBegun = false;
  #isWaiting = false;
  /** The statements without a response. */
  readonly #pending = new Set<Promise<unknown>>();
  #sent = 0;
  #failure: { readonly number: number; readonly error: unknown } | undefined;

  /**
   * Sends BEGIN. The first statement need not wait for the response.
   *
   * @param executor of the connection
   */
  constructor(client: pg.ClientBase, executor: PgExecutor, begin: Begin) {
    this.#client = client;
    this.#executor = executor;
    this.counterSlots = executor.counterSlots;
    this.begun = this.#begin(begin);
    // The statements, or who awaits it, fail with the same error.
    this.begun.catch(() => {});
  }

  get changedRows(): number {
    return this.#executor.changedRows;
  }

  async rows<Params extends object, Row, T>(
    statement: Statement<Params, Row>,
    params: Params,
    take?: Take<Row, T>,
  ): Promise<T> {
    // Where BEGIN fails, such as at the limit of its time, the server runs the statements after it outside of any
    // transaction. That is harmless while they read, because the unit fails. What changes rows would be stored.
    if (!this.#hasBegun && (this.#isWaiting || !this.#executor.isReading(statement))) await this.#waitForBegin();
    const rows = await this.#note(this.#executor.rows(statement, params));
    return take === undefined ? (rows as T) : take(rows);
  }

  nowMs(): Promise<number> {
    return this.#note(this.#executor.nowMs());
  }

  clockMs(): number {
    return this.#executor.clockMs();
  }

  /** Rejects statements that wait for BEGIN: they would run in the next transaction. */
  close(): void {
    this.#isOpen = false;
  }

  /**
   * Waits for the statements that the unit has not awaited.
   *
   * @throws what the first statement failed with that failed: PostgreSQL would report COMMIT as done, and roll back
   */
  async assertIntact(): Promise<void> {
    if (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /**
   * Finds why a unit failed. After BEGIN or a statement has failed, those that were sent behind it fail too, and whoever
   * waits for one of them gets an error that says only that.
   */
  async findCause(error: unknown): Promise<unknown> {
    if (this.#hasBegun && !ABORTED.includes(findErrorCode(error))) return error;
    await Promise.allSettled(this.#pending);
    return this.#failure?.error ?? error;
  }

  /**
   * Ends a transaction that has changed nothing. Nobody needs the response, and the next transaction of the connection is
   * sent behind it. While statements run, the next one would wait for them, so the connection is kept until then.
   *
   * @returns what the connection is to be kept for
   */
  leave(end: "COMMIT" | "ROLLBACK"): Promise<unknown> | undefined {
    const isBusy = this.#pending.size > 0;
    const ended = this.#client.query(end).catch(() => {});
    return isBusy ? ended : undefined;
  }

  async #begin({ text, verify }: Begin): Promise<void> {
    const sent = this.#client.query(text);
    await this.#note<unknown>(verify === undefined ? sent : verify(sent));
    this.#hasBegun = true;
  }

  // Statements behind one that waits wait too, so that they stay in their order.
  async #waitForBegin(): Promise<void> {
    this.#isWaiting = true;
    await this.begun;
    if (!this.#isOpen) throw new TypeError("a statement was not awaited by its unit of work");
  }

  async #note<T>(result: Promise<T>): Promise<T> {
    const number = this.#sent++;
    this.#pending.add(result);
    try {
      return await result;
    } catch (error) {
      // Responses come in the order of the statements, but promises that wait for them may settle in another one.
      if (this.#failure === undefined || number < this.#failure.number) this.#failure = { number, error };
      throw error;
    } finally {
      this.#pending.delete(result);
    }
  }
}

/** The transaction is aborted; a statement does not exist, because it could not be prepared in an aborted transaction. */
const ABORTED = ["25P02", "26000"];
