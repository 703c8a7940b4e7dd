// The question before something that cannot be undone.
import { createInterface } from "node:readline/promises";
import { invalidFlag } from "../errors.js";
import { escapeControls } from "./terminal.js";

/** The streams of a question. */
export interface Prompt {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/**
 * Asks whether to delete something; only `y` or `yes` deletes it.
 *
 * @param what the resource in the question, such as `group 0123`
 * @throws CommandError INVALID_ARGUMENT when standard input is not a terminal
 * @throws Error for any other reply
 */
export async function confirmDelete(what: string, prompt?: Prompt): Promise<void> {
  await confirm(`Delete ${what}?`, prompt, "nothing was deleted");
}

/**
 * Checks that somebody can be asked.
 *
 * @throws CommandError INVALID_ARGUMENT when standard input is not a terminal
 */
export function requireTerminal({ input, output }: Prompt = { input: process.stdin, output: process.stderr }): void {
  if (!input.isTTY || !output.isTTY) throw invalidFlag("--yes", "is required without a terminal");
}

/**
 * Asks a question; only `y` or `yes` goes on.
 *
 * @param declined the error after any other reply
 * @throws CommandError INVALID_ARGUMENT when standard input is not a terminal
 * @throws Error for any other reply
 */
export async function confirm(
  question: string,
  { input, output }: Prompt = { input: process.stdin, output: process.stderr },
  declined = "nothing was changed",
): Promise<void> {
  requireTerminal({ input, output });
  const lines = createInterface({ input, output, terminal: false });
  // The end of input means no.
  const ended = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
  const response = await Promise.race([lines.question(`${escapeControls(question)} [y/N] `), ended]);
  lines.close();
  if (!/^\s*y(es)?\s*$/i.test(response)) throw new Error(declined);
}
