// The only module that loads the SQLite driver. better-sqlite3 13 uses N-API and ships its compiled code for
// Node 22 and newer. On Node 20 it can be imported, but opening a database ends the process with a
// segmentation fault. Version 12 runs on Node 20; on newer versions it can abort the
// process when a statement is garbage collected, so it is used only there. Delete this file when Node 20 is
// no longer supported.
import { createRequire } from "node:module";
import type Driver from "better-sqlite3";

/** An open SQLite database. */
export type SqliteDatabase = Driver.Database;
/** A statement prepared on one. */
export type SqliteStatement = Driver.Statement;
/** What a statement without rows returns. */
export type SqliteResult = Driver.RunResult;

type DriverPackage = "better-sqlite3" | "better-sqlite3-node20";

const load = createRequire(import.meta.url);

/**
 * Opens a database file, with the driver that fits the running Node.
 *
 * @param file its path; created if missing, unless `options` forbid it
 * @param options the driver's own; `timeout` is in milliseconds
 * @throws Error when the driver is not installed or the file cannot be opened
 */
export function openDatabase(file: string, options?: Driver.Options): SqliteDatabase {
  const name = chooseDriver(process.versions.node);
  return new (loadDriver(name))(file, options);
}

/**
 * Names the package whose driver runs on a version of Node.
 *
 * @param nodeVersion such as `24.15.0`
 */
export function chooseDriver(nodeVersion: string): DriverPackage {
  return Number.parseInt(nodeVersion, 10) < 22 ? "better-sqlite3-node20" : "better-sqlite3";
}

function loadDriver(name: DriverPackage): typeof Driver {
  try {
    return load(name) as typeof Driver;
  } catch (cause) {
    // npm silently skips an optional package that cannot be compiled.
    const remedy = name === "better-sqlite3-node20" ? "it is compiled by npm and needs a C++ toolchain" : "reinstall";
    throw new Error(`the SQLite driver ${name} for Node ${process.versions.node} is missing: ${remedy}`, { cause });
  }
}
