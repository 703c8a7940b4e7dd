// Faults of a database and of its machine, whichever database it is: when they begin and end, and what operators learn of
// them. `sqlite/faults.ts` and `pg/faults.ts` say which error begins which fault.
import type { Tx } from "./transaction.js";

/** The kinds of faults of both databases. */
export const databaseFaults = [
  "full",
  "read_only",
  "denied",
  "io_error",
  "no_files",
  "no_memory",
  "no_connections",
  "limit",
  "busy",
  "timeout",
  "unreachable",
  "unconfirmed",
  "unsuitable",
  "corrupt",
  "replaced",
] as const;
export type DatabaseFault = (typeof databaseFaults)[number];

/** What is known of a kind of fault. */
export interface FaultKind {
  /** What it means for callers, for the operator's log. */
  readonly message: string;
  /** Whether only writes fail while it lasts. */
  readonly stopsOnlyWrites?: true;
  /** Whether it lasts until the process ends. */
  readonly isFinal?: true;
}

/** The begin or the end of a fault; that it lasts; or that what a removed log had is saved. */
export interface DatabaseFaultEvent {
  readonly fault: DatabaseFault;
  readonly state: "began" | "lasts" | "saved" | "ended";
  /** What it means for callers, for the operator's log. */
  readonly message: string;
  /** What the operator has to do, where the fault does not end by itself. */
  readonly advice?: string;
  /** The file that is affected, where one is. */
  readonly file?: string;
  /** The SQLSTATE of PostgreSQL, the result code of SQLite, or the error of the operating system. */
  readonly code?: string;
  /** How long it lasted and how many statements failed: at its end, and while it lasts. */
  readonly durationMs?: number;
  readonly errors?: number;
  readonly err?: unknown;
}

/** What is known of each fault. */
export interface DatabaseFaultCounts {
  /** Statements that failed since the start, of each fault that this database can have. */
  readonly errors: Readonly<Partial<Record<DatabaseFault, number>>>;
  /** The faults that have not ended. */
  readonly current: ReadonlySet<DatabaseFault>;
}

/**
 * A fault ends with a commit after so many milliseconds without an error: on a full disk some commits still succeed.
 */
const QUIET_MS = 5_000;
/** How often a fault that lasts is reported while statements fail, in milliseconds. */
const REPEAT_MS = 60_000;

interface CurrentFault {
  readonly startMs: number;
  /** How many statements had failed before it began. */
  readonly before: number;
  lastMs: number;
  reportedMs: number;
}

export interface FaultLogOptions<Fault extends DatabaseFault> {
  /** All faults that this database can have. */
  readonly kinds: Readonly<Record<Fault, FaultKind>>;
  /** Called once when a fault begins and once when it ends, and each minute between while statements fail. */
  readonly onChange?: ((event: DatabaseFaultEvent) => void) | undefined;
  /** A monotonic clock; replaced in tests. */
  readonly monotonicMs?: (() => number) | undefined;
}

/** The faults of one open database. */
export class FaultLog<Fault extends DatabaseFault> implements DatabaseFaultCounts {
  readonly errors: Record<Fault, number>;
  readonly #kinds: Readonly<Record<Fault, FaultKind>>;
  readonly #onChange: (event: DatabaseFaultEvent) => void;
  readonly #monotonicMs: () => number;
  readonly #current = new Map<Fault, CurrentFault>();

  constructor({ kinds, onChange = () => {}, monotonicMs = () => performance.now() }: FaultLogOptions<Fault>) {
    this.#kinds = kinds;
    this.#onChange = onChange;
    this.#monotonicMs = monotonicMs;
    this.errors = Object.fromEntries(Object.keys(kinds).map((fault) => [fault, 0])) as Record<Fault, number>;
  }

  get current(): ReadonlySet<Fault> {
    return new Set(this.#current.keys());
  }

  /** Whether a fault began and has not ended. */
  get isFaulty(): boolean {
    return this.#current.size > 0;
  }

  /** Whether writes failed a moment ago, while reads succeed. */
  get isReadOnly(): boolean {
    for (const fault of this.#current.keys()) if (this.#kinds[fault].stopsOnlyWrites) return true;
    return false;
  }

  has(fault: Fault): boolean {
    return this.#current.has(fault);
  }

  /** Notes that a statement failed because of a fault. */
  note(fault: Fault, more: Partial<DatabaseFaultEvent> = {}): void {
    const nowMs = this.#monotonicMs();
    const known = this.#current.get(fault);
    const { message } = this.#kinds[fault];
    const failed = ++this.errors[fault];
    if (known === undefined) {
      this.#current.set(fault, { startMs: nowMs, before: failed - 1, lastMs: nowMs, reportedMs: nowMs });
      this.#onChange({ fault, state: "began", message, ...more });
      return;
    }
    known.lastMs = nowMs;
    if (nowMs - known.reportedMs < REPEAT_MS) return;
    known.reportedMs = nowMs;
    const durationMs = Math.round(nowMs - known.startMs);
    this.#onChange({ fault, state: "lasts", message, ...more, durationMs, errors: failed - known.before });
  }

  /** Reports something else of a fault. */
  report(event: DatabaseFaultEvent & { readonly fault: Fault }): void {
    this.#onChange(event);
  }

  /** Notes a commit: all faults end that may, unless an error was a moment ago. */
  noteCommit(): void {
    const nowMs = this.#monotonicMs();
    for (const [fault, { startMs, before, lastMs }] of this.#current) {
      if (this.#kinds[fault].isFinal || nowMs - lastMs < QUIET_MS) continue;
      this.#current.delete(fault);
      const durationMs = Math.round(nowMs - startMs);
      const message = "the database can be used again";
      this.#onChange({ fault, state: "ended", message, durationMs, errors: this.errors[fault] - before });
    }
  }
}

/** Writes a page and syncs it without a change of any value. Every service stores its origin. */
export async function rewriteSetting(tx: Tx): Promise<void> {
  const origin = await tx.settings.find("origin");
  if (origin !== undefined) await tx.settings.put("origin", origin);
}
