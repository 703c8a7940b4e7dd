// What a copy needs of both databases. SQLite and PostgreSQL implement it.
import type { Dialect, SqlRow } from "../migrate/data-migration.js";
import type { DatabaseState } from "../migrate/state.js";
import type { CopiedRow } from "./cells.js";
import type { CopiedTable } from "./tables.js";

export const BATCH_ROWS = 4_096;
/** After how many characters a batch ends, since a row may have megabytes. */
export const BATCH_CHARACTERS = 4 * 2 ** 20;

/** A database whose tables are read in the order of their primary keys. */
export interface CopyReader {
  readonly dialect: Dialect;
  /** What holds the database, for people: a file, or the name of a database. */
  readonly name: string;
  /** The rows of a table as they are stored. Nothing else may be read before the last batch. */
  rows(table: CopiedTable): AsyncIterable<readonly CopiedRow[]>;
  /** How many rows a table has, before slots are summed. */
  count(table: CopiedTable): Promise<number>;
  /** The highest number that a table has assigned, also to rows that were deleted since; 0 before the first. */
  lastNumber(table: CopiedTable): Promise<bigint>;
  close(): Promise<void>;
}

/** An open snapshot of the database that is copied. */
export interface CopySource extends CopyReader {
  /** How far its migrations are. */
  readonly state: DatabaseState;
  /** The rows of one SQL query without parameters. */
  query(statement: string): Promise<readonly SqlRow[]>;
  /** The value of a row of `settings`. */
  setting(name: string): Promise<string | undefined>;
  /**
   * @throws ApiError FAILED_PRECONDITION while servers use the database
   */
  assertNotServed(): Promise<void>;
  /** Whether others have written to it since the snapshot. */
  hasChanged(): Promise<boolean>;
}

/** The database that is written. No other copy writes to it at the same time. */
export interface CopyTarget extends CopyReader {
  /** The rows of one SQL query without parameters. */
  query(statement: string): Promise<readonly SqlRow[]>;
  /** Runs statements in one transaction while no server creates or changes tables. */
  changeSchema(statements: readonly string[]): Promise<void>;
  /** Adds rows, in one transaction unless one is open, without what triggers write because of them. */
  insert(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void>;
  /** Deletes all rows of these tables, in the reverse of their order. */
  clear(tables: readonly CopiedTable[]): Promise<void>;
  /** Lets a table assign higher numbers from now on. */
  setLastNumber(table: CopiedTable, last: bigint): Promise<void>;
  /** Runs `work` in one transaction, from whose snapshot it reads. */
  transaction<T>(work: () => Promise<T>): Promise<T>;
  /** Tidies the tables after all rows were inserted. */
  vacuum(): Promise<void>;
}

/** Gathers rows into batches of bounded size. */
export function createBatch() {
  let rows: CopiedRow[] = [];
  let characters = 0;
  return {
    /** Adds a row; returns whether the batch is full. */
    add(row: CopiedRow): boolean {
      rows.push(row);
      for (const cell of row) characters += cell?.length ?? 0;
      return rows.length >= BATCH_ROWS || characters >= BATCH_CHARACTERS;
    },
    /** The rows that were added; the batch is empty afterwards. */
    take(): readonly CopiedRow[] {
      const taken = rows;
      rows = [];
      characters = 0;
      return taken;
    },
  };
}
