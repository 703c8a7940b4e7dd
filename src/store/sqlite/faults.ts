// Faults of the machine that SQLite meets: which error begins which fault, and which error callers get.
import { accessSync, constants, utimesSync } from "node:fs";
import { dirname } from "node:path";
import { type ApiError, unavailable } from "../../kernel/errors.js";
import { type DatabaseFaultCounts, type DatabaseFaultEvent, type FaultKind, FaultLog } from "../faults.js";

const RETRY_MS = 1_000;
/** When callers may try again where the operator has to act first. */
const LATER_MS = 30_000;

const kinds = {
  full: { message: "the disk or its quota is full: writes fail until there is space", stopsOnlyWrites: true },
  read_only: {
    message: "the database cannot be written, because its file system or file is read-only: writes fail",
    stopsOnlyWrites: true,
  },
  io_error: {
    message: "the disk does not read or write the database: calls fail until it does",
    stopsOnlyWrites: true,
  },
  no_files: { message: "no file of the database can be opened: calls fail until files can be opened again" },
  busy: { message: "another process holds the database: writes fail until it ends", stopsOnlyWrites: true },
  corrupt: { message: "the database is damaged: all writes are refused until a restart", isFinal: true },
  replaced: {
    message: "a file of the database was removed or replaced: all calls are refused until a restart",
    isFinal: true,
  },
} as const satisfies Partial<Record<DatabaseFaultEvent["fault"], FaultKind>>;
type SqliteFault = keyof typeof kinds;

/** The faults of one open database. */
export type FaultMonitor = ReturnType<typeof createFaultMonitor>;

/**
 * Creates the monitor.
 *
 * @param file the path of the database
 * @param onChange called once when a fault begins and once when it ends, and each minute between while statements fail
 */
export function createFaultMonitor(file: string, onChange?: (event: DatabaseFaultEvent) => void) {
  const log = new FaultLog<SqliteFault>({ kinds, onChange });

  function createFaultError(fault: "corrupt" | "replaced"): ApiError {
    return unavailable(
      fault === "corrupt" ? "the database is damaged" : "the database was replaced while it was in use",
      LATER_MS,
    );
  }

  return {
    counts: log satisfies DatabaseFaultCounts,

    /** Whether a fault began and has not ended. */
    get isFaulty(): boolean {
      return log.isFaulty;
    },

    /** Whether writes failed a moment ago, while reads succeed. */
    get isReadOnly(): boolean {
      return log.isReadOnly;
    },

    /** Notes an error of SQLite, and returns that for callers. Other errors are defects and are returned unchanged. */
    toCallError(error: unknown): unknown {
      const code = String((error as { code?: unknown }).code ?? "");
      // The write queue tries again for some seconds.
      if (code.startsWith("SQLITE_BUSY"))
        return unavailable("the database cannot be used at the moment", RETRY_MS, error);
      const fault = findFault(code, file);
      if (fault === undefined) return error;
      log.note(fault, { code, err: error });
      if (fault === "corrupt") {
        return unavailable("the database is damaged", LATER_MS, error);
      }
      return unavailable("the database cannot be used at the moment", RETRY_MS, error);
    },

    /** Notes that another process held the database for as long as a write waits for it. */
    noteBusy(error: unknown): void {
      const { cause = error } = error as { readonly cause?: unknown };
      log.note("busy", { code: String((cause as { code?: unknown }).code), err: cause });
    },

    /** Notes that a file is gone or another one. */
    noteReplaced(replaced: string, advice: string): void {
      log.note("replaced", { file: replaced, advice });
    },

    /** Notes that all commits of a log that was removed are in the database. */
    noteSaved(): void {
      const message = "all commits of the removed log were copied to the database: restart the service";
      log.report({ fault: "replaced", state: "saved", message });
    },

    /** Notes a commit: all faults end that may, unless an error was a moment ago. */
    noteCommit(): void {
      log.noteCommit();
    },

    /** @throws ApiError UNAVAILABLE where nothing may be read any more */
    assertReadable(): void {
      if (log.isFaulty && log.has("replaced")) throw createFaultError("replaced");
    },

    /** @throws ApiError UNAVAILABLE where nothing may be written any more */
    assertWritable(): void {
      if (!log.isFaulty) return;
      this.assertReadable();
      if (log.has("corrupt")) throw createFaultError("corrupt");
    },
  };
}

function findFault(code: string, file: string): SqliteFault | undefined {
  if (code.startsWith("SQLITE_FULL")) return "full";
  if (code.startsWith("SQLITE_READONLY")) return "read_only";
  // SQLite does not tell these two apart from other errors of a write.
  if (code.startsWith("SQLITE_IOERR")) return isReadOnly(file) ? "read_only" : "io_error";
  if (code.startsWith("SQLITE_CANTOPEN")) return "no_files";
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) return "corrupt";
  return undefined;
}

function isReadOnly(file: string): boolean {
  try {
    accessSync(file, constants.W_OK);
    // A file system that stopped writing after an error of the disk still says that the file may be written.
    const now = new Date();
    utimesSync(dirname(file), now, now);
    return false;
  } catch (error) {
    return ["EROFS", "EPERM", "EACCES"].includes(String((error as NodeJS.ErrnoException).code));
  }
}
