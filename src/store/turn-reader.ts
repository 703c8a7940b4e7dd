import type { Awaitable, Tx } from "./port.js";
import type { Executor } from "./statement.js";
import { Transaction } from "./transaction.js";

/** Reads on SQLite's read-only connection. */
export interface TurnReader {
  /** Runs `unit` on the snapshot of this turn of the event loop. */
  read<T>(unit: (tx: Tx) => Awaitable<T>): Awaitable<T>;
  /** Ends the snapshot, so that the next read sees every commit up to now. */
  endTurn(): void;
}

/**
 * Creates the reader. All reads of one turn of the event loop share a read transaction: beginning
 * one costs as much as a point read. The snapshot ends with the turn, and at every commit of this
 * process, so a read never misses a write that was acknowledged before it began.
 */
export function createTurnReader(connection: Executor, frame: (statement: "BEGIN" | "COMMIT") => void): TurnReader {
  let turn: Turn | undefined;

  function endTurn(): void {
    if (turn === undefined) return;
    turn.open = false;
    turn = undefined;
    frame("COMMIT");
  }

  function currentTurn(): Turn {
    if (turn === undefined) {
      frame("BEGIN");
      turn = new Turn(connection);
      const begun = turn;
      setImmediate(() => {
        if (turn === begun) endTurn();
      });
    }
    return turn;
  }

  return {
    read<T>(unit: (tx: Tx) => Awaitable<T>): Awaitable<T> {
      // Not revoked when it settles, but with the turn: a read that comes late harms nobody else.
      return unit(new Transaction(currentTurn()));
    },
    endTurn,
  };
}

// Stands between transactions and the connection, so that a unit that outlives its snapshot fails
// instead of reading from two.
class Turn implements Executor {
  open = true;
  readonly counterSlots: number;
  readonly #connection: Executor;

  constructor(connection: Executor) {
    this.#connection = connection;
    this.counterSlots = connection.counterSlots;
  }

  rows: Executor["rows"] = (statement, params) => {
    if (!this.open) throw new TypeError("a unit of work awaited something other than its transaction");
    return this.#connection.rows(statement, params);
  };
}
