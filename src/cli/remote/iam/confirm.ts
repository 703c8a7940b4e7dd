import { createInterface } from "node:readline/promises";
import { invalidArgument } from "../../../kernel/errors.js";
import { printable } from "../../printable.js";

/** Where a person is asked. */
export interface Prompt {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/**
 * Asks whether to delete something; only `y` or `yes` is a yes.
 *
 * @param what what is to be deleted, such as `group 0123`
 * @throws ApiError INVALID_ARGUMENT where there is nobody to ask
 * @throws Error when the answer is no
 */
export async function confirmDelete(
  what: string,
  { input, output }: Prompt = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if (!input.isTTY || !output.isTTY) {
    throw invalidArgument({ field: "--yes", description: "--yes is required where nobody can be asked" });
  }
  const lines = createInterface({ input, output, terminal: false });
  // End of input is a no as well.
  const ended = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
  const answer = await Promise.race([lines.question(`Delete ${printable(what)}? [y/N] `), ended]);
  lines.close();
  if (!/^\s*y(es)?\s*$/i.test(answer)) throw new Error("nothing was deleted");
}
