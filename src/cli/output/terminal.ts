// Standard output, whose reader may be slow or exit, as `head` does; the progress of long commands on standard error;
// and the escapes of control characters.
import { once } from "node:events";

/** The properties of the terminal on which tables are printed. */
export interface Terminal {
  /** Whether the header is bold. */
  readonly colour: boolean;
  /** The width in columns; undefined for a file or a pipe, where no text is cut. */
  readonly width: number | undefined;
}

/** Standard output while a command runs. */
export interface Output {
  /** Writes `text`; resolves when there is room for more. */
  write(text: string): Promise<void>;
  /** Aborted when the reader has exited, so that the command can stop its work. */
  readonly closed: AbortSignal;
  readonly terminal: Terminal;
}

// A process has one standard output, which stays closed after its reader has exited.
const readerGone = new AbortController();
let isWatched = false;

/** What changes the texts that a command writes. */
export interface TextFilter {
  write(text: string): Promise<void>;
  /** Writes what is left after the last text. */
  end(): Promise<void>;
}

/** Creates a filter, which writes by `print`. */
export type CreateFilter = (print: (text: string) => Promise<void>) => Promise<TextFilter>;

/**
 * Runs `work`, which writes to standard output. It ends without an error when the reader exits.
 *
 * @throws Error when standard output fails in another way, such as a full disk; the error of the filter
 */
export async function withStdout(work: (output: Output) => Promise<void>, createFilter?: CreateFilter): Promise<void> {
  const { stdout } = process;
  watchStdout();
  const { signal } = readerGone;
  const print = async (text: string) => {
    signal.throwIfAborted();
    if (!stdout.write(text)) await once(stdout, "drain", { signal });
  };
  const filter = await createFilter?.(print);
  const output: Output = {
    closed: signal,
    terminal: detectTerminal(stdout, process.env),
    write: (text) => (filter === undefined ? print(text) : filter.write(text)),
  };
  try {
    try {
      await work(output);
    } catch (error) {
      // What was written before is a whole document, as that of a list which failed between two pages.
      if (!signal.aborted) await filter?.end().catch(() => undefined);
      throw error;
    }
    await filter?.end();
    await assertWritten();
  } catch (error) {
    if (!signal.aborted) throw error;
    await assertWritten();
  }
}

/** Lets the process live when the reader of its output exits: without a listener the error of a write would end it. */
export function watchStdout(): void {
  if (isWatched) return;
  isWatched = true;
  process.stdout.on("error", (error) => readerGone.abort(error));
  // Nothing is left that could be told.
  process.stderr.on("error", () => {});
}

/**
 * Checks that standard output took everything, or its reader has exited.
 *
 * @throws Error when it failed in another way, such as a full disk
 */
export async function assertWritten(): Promise<void> {
  // The error of a write arrives a tick of the event loop later.
  await new Promise((resolve) => setImmediate(resolve));
  const { signal } = readerGone;
  if (!signal.aborted) return;
  const { code = "unknown" } = signal.reason as NodeJS.ErrnoException;
  if (code !== "EPIPE") throw new Error(`standard output cannot be written to (${code})`);
}

/** Detects the terminal of a stream, with `NO_COLOR` (https://no-color.org). */
export function detectTerminal(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: Readonly<Record<string, string | undefined>>,
): Terminal {
  if (!stream.isTTY) return { colour: false, width: undefined };
  return { colour: !env.NO_COLOR && env.TERM !== "dumb", width: stream.columns || undefined };
}

/** The progress of a long list. */
export interface Progress {
  /** Removes the line, before other text is written to the terminal. */
  clear(): void;
  /** Shows that `done` of `total` rows are written. */
  show(done: number, total: number): void;
}

/** The part of standard error that progress needs. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/**
 * Creates the progress of a list.
 *
 * @param always whether to write progress to other streams than terminals too, as a line for each page
 */
export function createProgress(stream: ProgressStream, always: boolean): Progress {
  const { clear, show } = createProgressLine(stream);
  const isShown = stream.isTTY || always;
  return { clear, show: (done, total) => isShown && show(`${done} of ${total}`) };
}

/**
 * Creates a line with the progress of a command, which replaces itself on a terminal. Elsewhere each text is a line of its
 * own.
 */
export function createProgressLine(stream: ProgressStream) {
  let isShown = false;
  return {
    /** Removes the line, before other text is written to the terminal. */
    clear(): void {
      if (isShown) stream.write("\r\u001b[K");
      isShown = false;
    },
    show(text: string): void {
      isShown = stream.isTTY === true;
      stream.write(isShown ? `\r\u001b[K${text}` : `${text}\n`);
    },
  };
}

// Control characters, and characters that change the direction or the width of the text around them.
const ACTIVE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Replaces control and formatting characters by `\u` escapes, which do not change the meaning of JSON. */
export function escapeControls(text: string): string {
  return text.replace(ACTIVE, (found) => {
    return Array.from(
      { length: found.length },
      (_, i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, "0")}`,
    ).join("");
  });
}

/** Escapes as {@link escapeControls} does, except for line ends. */
export function escapeLines(text: string): string {
  return text.split("\n").map(escapeControls).join("\n");
}
