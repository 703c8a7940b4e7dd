// What is said of an object that no migration created.
import type { SqlRow } from "../migrate/data-migration.js";

/** An object that no migration created, or one that is not as it was created. */
export interface UnknownObject {
  /** The table that it is about. */
  readonly table: string;
  readonly name: string;
  /** A sentence without a full stop and without the table, such as `no migration creates this trigger`. */
  readonly problem: string;
}

/** Runs one SQL query without parameters. */
export type RunQuery = (statement: string) => Promise<readonly SqlRow[]>;
