// The examples at the end of the help of each command, which are loaded for the help alone.
import type { Command } from "commander";
import { pathOf } from "./lazy-command.js";

/** What somebody wants, in their words, and the command line that does it. */
export type Example = readonly [wish: string, line: string];

/** The examples by the path of the command, such as `iam groups list`. */
export const examples: Readonly<Record<string, readonly Example[]>> = {};

/** Adds the examples of a command to its help. */
export function addExamples(command: Command): void {
  const lines = (examples[pathOf(command)] ?? []).map(([wish, line]) => `  # ${wish}\n  $ ${line}`);
  if (lines.length > 0) command.addHelpText("after", `\nExamples:\n${lines.join("\n\n")}`);
}
