// Faults of the machine that SQLite meets: which there are, which error callers get, and when they begin and end.
import { accessSync, constants, utimesSync } from "node:fs";
import { dirname } from "node:path";
import { type ApiError, unavailable } from "../../kernel/errors.js";

/** The kinds of faults. The last two never end while the process runs. */
export const databaseFaults = ["full", "read_only", "io_error", "no_files", "corrupt", "replaced"] as const;
export type DatabaseFault = (typeof databaseFaults)[number];

/** The begin or the end of a fault; or that what a removed log had is saved. */
export interface DatabaseFaultEvent {
  readonly fault: DatabaseFault;
  readonly state: "began" | "saved" | "ended";
  /** What it means for callers, for the operator's log. */
  readonly message: string;
  /** What the operator has to do, where the fault does not end by itself. */
  readonly advice?: string;
  /** The file that is affected, where one is. */
  readonly file?: string;
  /** How long it lasted and how many statements failed, at its end. */
  readonly durationMs?: number;
  readonly errors?: number;
  readonly err?: unknown;
}

/** What is known of each fault. */
export interface DatabaseFaultCounts {
  /** Statements that failed since the start. */
  readonly errors: Readonly<Record<DatabaseFault, number>>;
  /** The faults that have not ended. */
  readonly current: ReadonlySet<DatabaseFault>;
}

/**
 * A fault ends with a commit after so many milliseconds without an error: on a full disk some commits still succeed.
 */
const QUIET_MS = 5_000;
const RETRY_MS = 1_000;
/** When callers may try again where the operator has to act first. */
const LATER_MS = 30_000;

const messages: Readonly<Record<DatabaseFault, string>> = {
  full: "the disk or its quota is full: writes fail until there is space",
  read_only: "the database cannot be written, because its file system or file is read-only: writes fail",
  io_error: "the disk does not read or write the database: calls fail until it does",
  no_files: "no file of the database can be opened: calls fail until files can be opened again",
  corrupt: "the database is damaged: all writes are refused until a restart",
  replaced: "a file of the database was removed or replaced: all calls are refused until a restart",
};

/** The faults of one open database. */
export type FaultMonitor = ReturnType<typeof createFaultMonitor>;

/**
 * Creates the monitor.
 *
 * @param file the path of the database
 * @param onChange called once when a fault begins and once when it ends
 */
export function createFaultMonitor(file: string, onChange: (event: DatabaseFaultEvent) => void = () => {}) {
  const errors = Object.fromEntries(databaseFaults.map((fault) => [fault, 0])) as Record<DatabaseFault, number>;
  const current = new Map<DatabaseFault, { readonly startMs: number; readonly before: number; lastMs: number }>();

  function begin(fault: DatabaseFault, more: Partial<DatabaseFaultEvent>): void {
    const nowMs = performance.now();
    const known = current.get(fault);
    errors[fault]++;
    if (known !== undefined) {
      known.lastMs = nowMs;
      return;
    }
    current.set(fault, { startMs: nowMs, before: errors[fault] - 1, lastMs: nowMs });
    onChange({ fault, state: "began", message: messages[fault], ...more });
  }

  function createFaultError(fault: "corrupt" | "replaced"): ApiError {
    return unavailable(
      fault === "corrupt" ? "the database is damaged" : "the database was replaced while it was in use",
      LATER_MS,
    );
  }

  return {
    counts: {
      errors,
      get current() {
        return new Set(current.keys());
      },
    } satisfies DatabaseFaultCounts,

    /** Whether a fault began and has not ended. */
    get isFaulty(): boolean {
      return current.size > 0;
    },

    /** Whether writes failed a moment ago, while reads succeed. */
    get isReadOnly(): boolean {
      return current.has("full") || current.has("read_only") || current.has("io_error");
    },

    /** Notes an error of SQLite, and returns that for callers. Other errors are defects and are returned unchanged. */
    toCallError(error: unknown): unknown {
      const code = String((error as { code?: unknown }).code ?? "");
      if (code.startsWith("SQLITE_BUSY"))
        return unavailable("the database cannot be used at the moment", RETRY_MS, error);
      const fault = findFault(code, file);
      if (fault === undefined) return error;
      begin(fault, { err: error });
      if (fault === "corrupt") {
        return unavailable("the database is damaged", LATER_MS, error);
      }
      return unavailable("the database cannot be used at the moment", RETRY_MS, error);
    },

    /** Notes that a file is gone or another one. */
    noteReplaced(replaced: string, advice: string): void {
      begin("replaced", { file: replaced, advice });
    },

    /** Notes that all commits of a log that was removed are in the database. */
    noteSaved(): void {
      const message = "all commits of the removed log were copied to the database: restart the service";
      onChange({ fault: "replaced", state: "saved", message });
    },

    /** Notes a commit: all faults end that may, unless an error was a moment ago. */
    noteCommit(): void {
      const nowMs = performance.now();
      for (const [fault, { startMs, before, lastMs }] of current) {
        if (fault === "corrupt" || fault === "replaced" || nowMs - lastMs < QUIET_MS) continue;
        current.delete(fault);
        const durationMs = Math.round(nowMs - startMs);
        const message = "the database can be used again";
        onChange({ fault, state: "ended", message, durationMs, errors: errors[fault] - before });
      }
    },

    /** @throws ApiError UNAVAILABLE where nothing may be read any more */
    assertReadable(): void {
      if (current.size > 0 && current.has("replaced")) throw createFaultError("replaced");
    },

    /** @throws ApiError UNAVAILABLE where nothing may be written any more */
    assertWritable(): void {
      if (current.size === 0) return;
      this.assertReadable();
      if (current.has("corrupt")) throw createFaultError("corrupt");
    },
  };
}

function findFault(code: string, file: string): DatabaseFault | undefined {
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
