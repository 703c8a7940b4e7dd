// What `arbor check` looks for in a database, and how a finding is reported. Each check is an object of the type `Check` in a
// file of its own: integrity.ts of the files, the schema and its constraints; references.ts of uids and of columns that name
// rows; counters.ts and what else derived.ts lists, of what can be computed again from other rows, which `--repair` does by
// the same statements; quotas.ts; secrets.ts of what the master key opens. All of them read one snapshot (database.ts), beside
// servers, page by page. Of a rule that many rows break, the first findings are kept and the rest are counted.
import type { CheckDatabase } from "./database.js";

/** A row, an index or a file that is not as it should be. */
export interface Finding {
  /** The table, or the file. */
  readonly table: string;
  /** The primary key of the row, or what identifies the object in the table. */
  readonly key: string;
  readonly problem: string;
  readonly remedy: string;
  /** Whether `arbor check --repair` repairs it. */
  readonly repairable?: true;
}

/** A finding in an index that is derived from other rows. */
export function buildRepairable(table: string, key: string, problem: string): Finding {
  return { table, key, problem, remedy: "arbor check --repair", repairable: true };
}

/** One check of all that `arbor check` runs. */
export interface Check {
  readonly name: string;
  run(context: CheckContext): Promise<void>;
}

export interface CheckContext {
  readonly db: CheckDatabase;
  /**
   * Reports findings of one rule.
   *
   * @param rule groups what has the same cause; at most {@link MAX_KEPT} findings of a rule are kept
   * @param count of how many findings this one is an example; 1 unless set
   */
  report(rule: string, finding: Finding, count?: number): void;
  /** Whether no further finding of the rule is kept, so that an example need not be found. */
  isFull(rule: string): boolean;
  /** Adds information that is no finding. */
  note(text: string): void;
  /** Says that the check, or a part of it, was left out, and why. */
  leaveOut(reason: string): void;
  /** Says that no other check can run. */
  stop(): void;
  /** Shows how far the check is. */
  progress(text: string): void;
}

export interface CheckResult {
  readonly check: string;
  readonly findings: readonly Finding[];
  /** How many further findings there are. */
  readonly more: number;
  readonly notes: readonly string[];
  readonly leftOut: readonly string[];
  /** Whether other checks can run. */
  readonly mayContinue: boolean;
}

/** How many findings of a rule are kept. */
export const MAX_KEPT = 10;

/**
 * Runs a check.
 *
 * @param onProgress shows a text such as `references: roles`
 */
export async function runCheck(
  check: Check,
  db: CheckDatabase,
  onProgress: (text: string) => void,
): Promise<CheckResult> {
  const kept = new Map<string, number>();
  const findings: Finding[] = [];
  const notes: string[] = [];
  const leftOut: string[] = [];
  let more = 0;
  let mayContinue = true;
  const isFull = (rule: string) => (kept.get(rule) ?? 0) >= MAX_KEPT;
  const report: CheckContext["report"] = (rule, finding, count = 1) => {
    more += count;
    if (isFull(rule)) return;
    kept.set(rule, (kept.get(rule) ?? 0) + 1);
    findings.push(finding);
    more--;
  };
  onProgress(check.name);
  const context: CheckContext = {
    db,
    isFull,
    report,
    note: (text) => notes.push(text),
    leaveOut: (reason) => leftOut.push(reason),
    stop() {
      mayContinue = false;
    },
    progress: (text) => onProgress(`${check.name}: ${text}`),
  };
  try {
    await check.run(context);
  } catch (error) {
    if (!isDamage(error)) throw error;
    const problem = `the check ended early: ${(error as Error).message}`;
    report("damage", { table: db.name, key: "the file", problem, remedy: "restore a backup" });
  }
  return { check: check.name, findings, more, notes, leftOut, mayContinue };
}

// SQLite cannot read a page. On PostgreSQL a failed statement ends the snapshot, and the command with it.
function isDamage(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return /^SQLITE_CORRUPT/.test(String(code)) || (cause !== undefined && isDamage(cause));
}
