// A database of version 0.11.0, as far as it can be told from one of 1.0 (test/fixtures/database-0.11.0).
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const read = (name: string) => readFileSync(join(PROJECT, "test/fixtures/database-0.11.0", name), "utf8");

/** What every command says of it. */
export const TOO_OLD =
  "Precondition failed: the database is that of a version before 1.0, and goes through version 1.7 first: run `arbor migrate` " +
  "of version 1.7.0 with the same settings (docs/upgrade.md)";

/** Creates a data directory with the database on SQLite and its master key. */
export function createOldDirectory(): string {
  const data = tempDir();
  writeFileSync(join(data, "arbor.db"), "", { mode: 0o600 });
  const db = openDatabase(join(data, "arbor.db"));
  try {
    db.pragma("journal_mode = WAL");
    db.exec(read("sqlite.sql"));
  } finally {
    db.close();
  }
  writeFileSync(join(data, "master.key"), read("master.key"), { mode: 0o600 });
  return data;
}

/** The statements that create the database on PostgreSQL. */
export const oldPostgres = read("postgres.sql");
