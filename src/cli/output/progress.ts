// How far a long list has come, for people who wait: on standard error, so that
// it is never part of what the command answers.

/** A line that tells how far a list has come. */
export interface Progress {
  /** Takes the line away, before anything else is written to the same terminal. */
  clear(): void;
  /** Shows that `done` of `total` rows are there. */
  show(done: number, total: number): void;
}

/** The part of standard error that is needed. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/**
 * Begins to tell.
 *
 * @param wanted tell even where nobody can be seen to watch: then as a line for each page
 */
export function progressOn(stream: ProgressStream, wanted: boolean): Progress {
  if (!stream.isTTY) {
    return { clear() {}, show: wanted ? (done, total) => stream.write(`${done} of ${total}\n`) : () => {} };
  }
  let shown = false;
  return {
    clear() {
      if (shown) stream.write("\r\u001b[K");
      shown = false;
    },
    show(done, total) {
      stream.write(`\r\u001b[K${done} of ${total}`);
      shown = true;
    },
  };
}
