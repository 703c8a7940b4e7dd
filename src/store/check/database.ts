// The database as `arbor check` reads it: one snapshot, and no statement that writes.
import type { SQL } from "drizzle-orm";
import type { Store } from "../port.js";
import type { Executor } from "../statement.js";
import { Transaction } from "../transaction.js";
import { createStoreCounts } from "../work-gate.js";

/** An open snapshot of a database. */
export interface CheckDatabase {
  readonly dialect: "sqlite" | "pg";
  /** What holds the database, as findings about all of it name it: the file, or the database of the server. */
  readonly name: string;
  /** The same snapshot for readers of the store. Its `write` throws. */
  readonly store: Store;
  /** Runs a query. Integers beyond 32 bits are texts on PostgreSQL. */
  all<Row extends object>(query: SQL): Promise<Row[]>;
  /**
   * Runs a query that the server may reject, for want of a right or of a function, without an end of the snapshot.
   *
   * @throws Error of the driver
   */
  tryAll<Row extends object>(query: SQL): Promise<Row[]>;
  close(): Promise<void>;
}

/** Creates a store whose units of work all read one open snapshot. */
export function createSnapshotStore(connection: Executor): Store {
  return {
    read: (unit) => unit(new Transaction(connection)),
    write() {
      throw new TypeError("the store was opened to be read");
    },
    lateCommitMs: 0,
    stats: () => createStoreCounts(),
    hasRoom: () => true,
    check: async () => "ok",
    async close() {},
  };
}
