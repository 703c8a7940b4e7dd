// The only module that loads the SQLite driver. better-sqlite3 13 uses N-API and ships its compiled code for
// Node 22 and newer. On Node 20 it can be imported, but opening a database ends the process with a
// segmentation fault. Version 12 runs on Node 20; on newer versions it can abort the
// process when a statement is garbage collected, so it is used only there. Delete this file when Node 20 is
// no longer supported.
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import type Driver from "better-sqlite3";

export type SqliteDatabase = Driver.Database;
export type SqliteStatement = Driver.Statement;
/** What a statement without rows returns. */
export type SqliteResult = Driver.RunResult;

type DriverPackage = "better-sqlite3" | "better-sqlite3-node20";

const load = createRequire(import.meta.url);

const IN_MEMORY = ":memory:";

/**
 * Opens a database file, with the driver that fits the running Node. From the first file on that a process opens, SQLite
 * has its temporary files in the directory of that file, unless `SQLITE_TMPDIR` names another: they may be as large as the
 * database, and `/tmp` is often small or in memory. SQLite reads the variable once.
 *
 * @param file its path; created if missing, unless `options` forbid it
 * @param options the driver's own; `timeout` is in milliseconds
 * @throws Error when the driver is not installed or the file cannot be opened
 */
export function openDatabase(file: string, options?: Driver.Options): SqliteDatabase {
  const name = chooseDriver(process.versions.node);
  if (file !== IN_MEMORY) process.env.SQLITE_TMPDIR ||= dirname(resolve(file));
  try {
    return new (loadDriver(name))(file, options);
  } catch (error) {
    throw describeMissingDriver(error, name) ?? error;
  }
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
  return load(name) as typeof Driver;
}

/**
 * Describes an error of a driver that is not installed, or whose code is not compiled. npm silently skips an optional
 * package that cannot be compiled, and with `--ignore-scripts` it compiles none.
 *
 * @returns undefined for any other error
 */
export function describeMissingDriver(cause: unknown, name: DriverPackage): Error | undefined {
  const { code = "", message = "" } = (cause ?? {}) as { readonly code?: string; readonly message?: string };
  const isMissing = /^(MODULE_NOT_FOUND|ERR_DLOPEN_FAILED)$/.test(code) || /bindings file/.test(message);
  if (!isMissing) return undefined;
  const remedy =
    name === "better-sqlite3-node20"
      ? "npm compiles it, unless it was told to ignore scripts: install a C++ toolchain, python3 and make and run `npm " +
        "install` and `npm rebuild better-sqlite3-node20`, or use Node 22 or newer, which needs neither"
      : "run `npm ci` again with this version of Node";
  return new Error(`the SQLite driver ${name} for Node ${process.versions.node} is missing: ${remedy}`, { cause });
}
