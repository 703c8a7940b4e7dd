// Data directories whose database has been created.
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { dataMigrations } from "../../src/store/migrate/data-migrations.js";
import { prepareSqlite } from "../../src/store/migrate/prepare-sqlite.js";
import { DATABASE_FILE, openWriting } from "../../src/store/sqlite/connection.js";
import { createPrivateFile } from "../../src/store/sqlite/data-directory.js";
import { memoryDir } from "./temp-dir.js";

let template: string | undefined;

/**
 * A data directory like {@link memoryDir}, with a new database. It is a copy, because that takes a fifth of the time of the
 * migrations.
 *
 * @param from the directory of the database that is copied, whose store is closed; one without rows unless given
 */
export function newDataDir(from?: string): string {
  const directory = memoryDir();
  copyFileSync(join(from ?? findTemplate(), DATABASE_FILE), join(directory, DATABASE_FILE));
  return directory;
}

function findTemplate(): string {
  template ??= createTemplate();
  return template;
}

// As openSqlite does it, whose stores cannot be closed without waiting.
function createTemplate(): string {
  const directory = memoryDir();
  const file = join(directory, DATABASE_FILE);
  createPrivateFile(file);
  const db = openWriting(file);
  prepareSqlite(db, { directory, create: true, migrations: dataMigrations, holdsServeLock: true });
  db.close();
  return directory;
}
