// Whether there is an installation, found out before anything is opened: SQLite would create files beside a database that
// it only reads, and a command with a wrong path must leave nothing behind.
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { type ApiError, failedPrecondition } from "../kernel/errors.js";
import { APPLICATION_ID, DATABASE_FILE, VERSIONED_APPLICATION_ID } from "./sqlite-connection.js";

/** Where the application id is in the header of a SQLite file (https://sqlite.org/fileformat2.html). */
const APPLICATION_ID_OFFSET = 68;
const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";

/**
 * FAILED_PRECONDITION: there is no installation where the settings say, and the command may not create one.
 *
 * @param where such as a directory
 * @param reason what is missing
 */
export function noInstallation(where: string, reason: string): ApiError {
  const remedy =
    "name its directory with --data or its database with --database-url, or create it with `arbor bootstrap` or `arbor serve`";
  return failedPrecondition("INSTALLATION", `there is no installation in ${where}: ${reason}; ${remedy}`);
}

/**
 * Finds the database of a data directory without opening it.
 *
 * @returns the path of the file
 * @throws ApiError FAILED_PRECONDITION where there is none, or the file is not a database of this program
 * @throws Error when the directory or the file cannot be read
 */
export function findSqliteInstallation(directory: string): string {
  const found = statSync(directory, { throwIfNoEntry: false });
  if (found === undefined) throw noInstallation(directory, "there is no such directory");
  if (!found.isDirectory()) throw noInstallation(directory, "it is not a directory");
  const file = join(directory, DATABASE_FILE);
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) throw noInstallation(directory, `it has no ${DATABASE_FILE}`);
  // The first changes of a database may be in the write-ahead log alone.
  const isLogged = (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (!isLogged && size === 0) throw noInstallation(directory, `its ${DATABASE_FILE} is empty`);
  if (!isLogged && !hasApplicationId(file)) {
    throw noInstallation(directory, `its ${DATABASE_FILE} is not a database of this program`);
  }
  return file;
}

function hasApplicationId(file: string): boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  const descriptor = openSync(file, "r");
  try {
    readSync(descriptor, header, 0, HEADER_BYTES, 0);
  } finally {
    closeSync(descriptor);
  }
  if (header.toString("latin1", 0, MAGIC.length) !== MAGIC) return false;
  return [APPLICATION_ID, VERSIONED_APPLICATION_ID].includes(header.readUInt32BE(APPLICATION_ID_OFFSET));
}
