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
  const response = await ask(`${question} [y/N]`, { input, output });
  if (!/^y(es)?$/i.test(response)) throw new Error(declined);
}

/**
 * Asks for the name of what is to be deleted; only that name goes on.
 *
 * @throws CommandError INVALID_ARGUMENT when standard input is not a terminal
 * @throws Error for any other reply
 */
export async function confirmName(
  question: string,
  name: string,
  prompt: Prompt = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if ((await ask(`${question} (${name}):`, prompt)) !== name) throw new Error("nothing was deleted");
}

async function ask(question: string, { input, output }: Prompt): Promise<string> {
  requireTerminal({ input, output });
  const lines = createInterface({ input, output, terminal: false });
  // The end of input means no.
  const ended = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
  const response = await Promise.race([lines.question(`${escapeControls(question)} `), ended]);
  lines.close();
  return response.trim();
}
