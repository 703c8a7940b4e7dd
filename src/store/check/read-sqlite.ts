// Opens a snapshot of a SQLite store, beside a server or without one. Opening the store itself would create a missing
// database, bring an older one up to date and change permissions.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createExecutor, createQueries } from "../sqlite-connection.js";
import { openDatabase } from "../sqlite-driver.js";
import type { CheckDatabase } from "./database.js";
import { createSnapshotStore } from "./snapshot-store.js";

/**
 * Opens a snapshot of the database in a data directory. While it is open, the write-ahead log of a running server
 * cannot become shorter.
 *
 * @throws Error when there is no database
 */
export function readSqlite(directory: string): CheckDatabase {
  const file = join(directory, "arbor.db");
  if (!existsSync(file)) throw new Error(`there is no installation in ${directory}: it has no arbor.db`);
  const db = openDatabase(file, { readonly: true, fileMustExist: true });
  try {
    db.pragma("query_only = ON");
    db.pragma("trusted_schema = OFF");
    // In KiB. The walks over the lists look up rows in all parts of the file.
    db.pragma("cache_size = -65536");
    // Another process may be recovering the database.
    db.pragma("busy_timeout = 5000");
    db.exec("BEGIN");
  } catch (error) {
    db.close();
    throw error;
  }
  const queries = createQueries(db);
  const all: CheckDatabase["all"] = async (query) => queries.all(query);
  return {
    dialect: "sqlite",
    name: file,
    store: createSnapshotStore(createExecutor(db)),
    all,
    tryAll: all,
    async close() {
      db.close();
    },
  };
}
