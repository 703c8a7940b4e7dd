// The examples at the end of a command's help, each with what it is for.
import type { Command } from "commander";

/** What somebody wants, in their words, and the command line that does it. */
export type Example = readonly [wish: string, line: string];

const examples = new WeakMap<Command, readonly Example[]>();

/** Adds examples to the help of a command. */
export function addExamples(command: Command, ...added: readonly Example[]): Command {
  examples.set(command, [...getExamples(command), ...added]);
  return command;
}

/** The examples of a command, in the order of its help. */
export function getExamples(command: Command): readonly Example[] {
  return examples.get(command) ?? [];
}

/** Formats the examples of a command for its help; empty without any. */
export function formatExamples(command: Command): string {
  const lines = getExamples(command).map(([wish, line]) => `  # ${wish}\n  $ ${line}`);
  return lines.length === 0 ? "" : `\nExamples:\n${lines.join("\n\n")}`;
}
