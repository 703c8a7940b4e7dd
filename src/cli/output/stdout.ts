// Standard output as a place that may fill up, or go away: whoever pipes a list
// into `head` has seen enough, and that is no error.
import { once } from "node:events";
import type { Terminal } from "./table.js";

/** Standard output while a command runs. */
export interface Output {
  /** Writes `text`; resolves when there is room for more. */
  write(text: string): Promise<void>;
  /** Aborted when nobody reads any more: work that is under way may stop. */
  readonly closed: AbortSignal;
  readonly terminal: Terminal;
}

// One process has one standard output: once it is gone it stays gone.
const gone = new AbortController();
let watched = false;

/**
 * Runs `work`, which writes to standard output, and ends it quietly when its reader goes away.
 *
 * @throws Error when standard output fails in another way, such as a disk that is full
 */
export async function withStdout(work: (output: Output) => Promise<void>): Promise<void> {
  const { stdout } = process;
  if (!watched) stdout.on("error", (error) => gone.abort(error));
  watched = true;
  const { signal } = gone;
  const output: Output = {
    closed: signal,
    terminal: terminalOf(stdout, process.env),
    async write(text) {
      signal.throwIfAborted();
      if (!stdout.write(text)) await once(stdout, "drain", { signal });
    },
  };
  try {
    await work(output);
    // What a write has failed with is told a turn later.
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
  } catch (error) {
    if (!signal.aborted) throw error;
    const { code = "unknown" } = signal.reason as NodeJS.ErrnoException;
    if (code !== "EPIPE") throw new Error(`standard output cannot be written to (${code})`);
  }
}

/** How standard output shows tables. See https://no-color.org for `NO_COLOR`. */
export function terminalOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: Readonly<Record<string, string | undefined>>,
): Terminal {
  if (!stream.isTTY) return { colour: false, width: undefined };
  return { colour: !env.NO_COLOR && env.TERM !== "dumb", width: stream.columns || undefined };
}
