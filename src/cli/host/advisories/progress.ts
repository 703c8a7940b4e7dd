// How far an import has come, on standard error. How much there is to come
// nobody knows: directories and archives are read as they are walked.
import type { ImportCounts } from "../../../vulnerabilities/osv/import.js";
import type { ProgressStream } from "../../output/progress.js";

/** Tells how far an import has come. */
export interface ImportProgress {
  show(counts: Readonly<ImportCounts>): void;
  /** Takes the line away, before anything else is written to the same terminal. */
  clear(): void;
}

const EVERY_MS = { terminal: 100, lines: 1_000 };

/**
 * Begins to tell.
 *
 * @param wanted tell even where nobody can be seen to watch: then as a line a second
 */
export function importProgressOn(stream: ProgressStream, wanted: boolean): ImportProgress {
  const terminal = stream.isTTY === true;
  let nextMs = 0;
  let shown = false;
  return {
    show({ records, created, updated, unchanged }) {
      if (!terminal && !wanted) return;
      const nowMs = performance.now();
      if (nowMs < nextMs) return;
      nextMs = nowMs + (terminal ? EVERY_MS.terminal : EVERY_MS.lines);
      const line = `${records} records, ${created} created, ${updated} updated, ${unchanged} unchanged`;
      stream.write(terminal ? `\r\u001b[K${line}` : `${line}\n`);
      shown = terminal;
    },
    clear() {
      if (shown) stream.write("\r\u001b[K");
      shown = false;
    },
  };
}
