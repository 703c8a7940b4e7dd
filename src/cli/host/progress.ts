// The progress of long commands, such as `arbor migrate --expand`: a bar with a rate on a terminal, and a line every few
// seconds elsewhere.
import type { MigrationProgress } from "../../store/migrate/phases.js";
import { createProgressLine, type ProgressStream } from "../output/terminal.js";

const BAR_WIDTH = 20;

/**
 * Creates the progress of a command. Its `periodMs` says how often to report.
 *
 * @param unit the unit of `done` and `total`
 */
export function createMigrationProgress(stream: ProgressStream, unit = "rows") {
  const line = createProgressLine(stream);
  let first: (MigrationProgress & { startMs: number }) | undefined;
  return {
    periodMs: stream.isTTY ? 100 : 5_000,
    clear: line.clear,
    onProgress(progress: MigrationProgress): void {
      if (first?.name !== progress.name) first = { ...progress, startMs: performance.now() };
      const seconds = (performance.now() - first.startMs) / 1000;
      const rate = seconds > 0 ? (progress.done - first.done) / seconds : 0;
      line.show(formatProgress(progress, rate, unit));
    },
    onRemoval({ name, done }: Pick<MigrationProgress, "name" | "done">): void {
      line.show(`${name}: removed ${done} rows of the old form`);
    },
  };
}

/** Creates the progress of a command that reports each batch; it shows nothing unless `isShown`. */
export function createThrottledProgress(isShown: boolean) {
  const { onProgress, periodMs, clear } = createMigrationProgress(process.stderr);
  let shown = "";
  let shownMs = 0;
  return {
    clear,
    onProgress(progress: MigrationProgress): void {
      if (!isShown) return;
      const nowMs = performance.now();
      if (progress.name === shown && nowMs - shownMs < periodMs && progress.done < progress.total) return;
      shown = progress.name;
      shownMs = nowMs;
      onProgress(progress);
    },
  };
}

/**
 * Formats the progress of a migration.
 *
 * @param rate in units per second; 0 if unknown
 */
export function formatProgress({ name, done, total }: MigrationProgress, rate: number, unit = "rows"): string {
  // The total is an estimate.
  const share = total > 0 ? Math.min(done / total, 1) : 1;
  const filled = Math.round(share * BAR_WIDTH);
  const bar = "#".repeat(filled) + ".".repeat(BAR_WIDTH - filled);
  const left = rate > 0 ? `, ${Math.round(rate)} ${unit}/s, ${Math.ceil(Math.max(total - done, 0) / rate)} s left` : "";
  return `${name} [${bar}] ${Math.floor(share * 100)} %, ${done} of about ${total} ${unit}${left}`;
}
