// What a migration of stored rows consists of, and what it needs of a database. Changes of the schema alone are in
// src/store/migrations/.
import type { Executor } from "../statement.js";

/** The databases that statements are written for. */
export type Dialect = "sqlite" | "pg";

/** A row by the names of its columns, with the values as the driver returns them. */
export type SqlRow = Readonly<Record<string, unknown>>;

/** One open transaction of a migration. It is serializable; on PostgreSQL it runs again after a conflict. */
export interface MigrationTx extends Executor {
  readonly dialect: Dialect;
  /** Runs one SQL statement; returns how many rows it changed. */
  run(statement: string, values?: readonly unknown[]): Promise<number>;
  /** The rows of one SQL query. */
  query(statement: string, values?: readonly unknown[]): Promise<SqlRow[]>;
}

export interface ContractStatement {
  /** On SQLite it may also be an `UPDATE sqlite_schema`, which removes a constraint from the text of a table. */
  readonly sql: string;
  /** Run it, each time in a transaction of its own, until it changes no row: for deletions in batches. */
  readonly repeat?: boolean;
}

/**
 * Copies stored rows into a new form beside serving instances of this version and of the one before. It begins with
 * triggers that copy what those write from then on, and goes on with batches that copy what is stored.
 *
 * Every method runs in a transaction that also stores how far the migration is, so that an end at any point neither loses
 * nor repeats a batch. On an empty database only `begin` and `contract` run, one after the other, within the creation of
 * the schema, unless the migration leaves nothing.
 */
export interface DataMigration {
  /** The key under which progress is stored. It must never change. */
  readonly name: string;
  /** Whether `contract` drops all that `begin` creates. Then a new database gets neither, and needs no right to create triggers. */
  readonly leavesNothing?: true;
  /** Statements that run once, in one transaction, before the first batch; they install triggers, for example. */
  begin(dialect: Dialect): readonly string[];
  /** About how many rows there are to do, in the unit of `done` below; for the progress bar. Runs once per process. */
  total(tx: MigrationTx): Promise<number>;
  /**
   * Does one batch. On SQLite all other writers wait for it, so it should take at most 30 ms.
   *
   * @param position what the batch before returned; the empty string at first
   * @returns the position for the next batch, or undefined after the last one, and how many rows this batch did
   */
  step(tx: MigrationTx, position: string): Promise<{ readonly position: string | undefined; readonly done: number }>;
  /**
   * The statements that remove the old form, in their order. Each runs in a transaction of its own, and no older version
   * uses the database any more.
   */
  contract(dialect: Dialect): readonly ContractStatement[];
}

/** A database that is open for migrations, whether or not this version can use it. */
export interface MigrationDatabase {
  readonly dialect: Dialect;
  /** What holds the database, for people: a directory, or the name of a database. */
  readonly name: string;
  /** Runs `unit` in a transaction that changes nothing and keeps no writer waiting. */
  read<T>(unit: (tx: MigrationTx) => Promise<T>): Promise<T>;
  /**
   * Runs `unit` in a serializable transaction. One migration process at a time runs such a transaction. It waits for
   * others up to two minutes, and `unit` runs again after a conflict.
   */
  write<T>(unit: (tx: MigrationTx) => Promise<T>): Promise<T>;
  /** Names servers of older versions that use the database now, as an operator recognises them. */
  findOlderServers(): Promise<readonly string[]>;
  /** Gives the space of deleted rows back to the file system; writers wait meanwhile. PostgreSQL does that by itself. */
  vacuum?(): Promise<void>;
  close(): Promise<void>;
}

/** How long a transaction waits for others that use the database, in milliseconds. */
export const MAX_WAIT_MS = 120_000;
