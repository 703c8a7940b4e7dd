// What migrations need of a database. SQLite and PostgreSQL implement it.
import type { Awaitable } from "../port.js";
import type { Dialect, MigrationTx } from "./data-migration.js";

/** A database that is open for migrations, whether or not this version can use it. */
export interface MigrationDatabase {
  readonly dialect: Dialect;
  /** What holds the database, for people: a directory, or the name of a database. */
  readonly name: string;
  /** Runs `unit` in a transaction that changes nothing and keeps no writer waiting. */
  read<T>(unit: (tx: MigrationTx) => Awaitable<T>): Promise<T>;
  /**
   * Runs `unit` in a serializable transaction. One migration process at a time runs such a transaction. It waits for
   * others up to two minutes, and `unit` runs again after a conflict.
   */
  write<T>(unit: (tx: MigrationTx) => Awaitable<T>): Promise<T>;
  /** Names servers of older versions that use the database now, as an operator recognises them. */
  findOlderServers(): Promise<readonly string[]>;
  /** Gives the space of deleted rows back to the file system; writers wait meanwhile. PostgreSQL does that by itself. */
  vacuum?(): Promise<void>;
  close(): Promise<void>;
}

/** How long a transaction waits for others that use the database, in milliseconds. */
export const MAX_WAIT_MS = 120_000;
