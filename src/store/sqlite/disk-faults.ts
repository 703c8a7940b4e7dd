// Faults of the disk that keep a SQLite database from being opened, as the operating system names them.
import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { describeDiskFault } from "../../kernel/disk-errors.js";

interface Failure {
  readonly code?: unknown;
  readonly path?: unknown;
  readonly cause?: unknown;
}

/**
 * Describes the fault of the disk that an error comes from, with the path that is affected, such as
 * `/var/lib/arbor: no space left (ENOSPC)`.
 *
 * @param directory the data directory
 * @returns undefined for any other error
 */
export function describeDiskFaultOf(error: unknown, directory: string): string | undefined {
  for (let failure = error as Failure | undefined; failure !== undefined; failure = failure.cause as typeof failure) {
    const found = describeDiskFault(failure);
    if (found !== undefined) return `${typeof failure.path === "string" ? failure.path : directory}: ${found}`;
    const kind = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN)/.exec(String(failure.code))?.[1];
    const fault = kind === undefined ? undefined : describeDiskFault(probe(directory) ?? assumed[kind]);
    if (fault !== undefined) return `${directory}: ${fault}`;
  }
  return undefined;
}

/** What SQLite reports only for such a fault, where a small file can be written all the same. */
const assumed: Readonly<Record<string, { readonly code: string }>> = {
  FULL: { code: "ENOSPC" },
  IOERR: { code: "EIO" },
};

/** As much as SQLite needs beside a database that it opens. */
const PROBE_BYTES = 64 * 1024;

// SQLite does not say what the operating system said, so a file is written as SQLite would.
function probe(directory: string): unknown {
  const file = join(directory, `probe.${randomBytes(8).toString("hex")}`);
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, "wx", 0o600);
    writeSync(descriptor, Buffer.alloc(PROBE_BYTES, 1));
    fsyncSync(descriptor);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    if (descriptor !== undefined) {
      closeSync(descriptor);
      rmSync(file, { force: true });
    }
  }
}
