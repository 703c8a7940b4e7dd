// Commands that are added with a name and a description alone. Their arguments, flags and subcommands are loaded when the
// command line names them, so that a start loads what its command needs.
import type { Command } from "commander";

/** Adds the arguments, flags and subcommands of a command. */
export type FillCommand = (command: Command) => void;

/** A command of a list. */
export interface LazyCommand {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly description: string;
  /** The heading above it in the list. */
  readonly group?: string;
  readonly hidden?: boolean;
  readonly load: () => Promise<FillCommand>;
}

const unfilled = new WeakMap<Command, LazyCommand["load"]>();

/** Adds a command that is filled when it is named. */
export function addLazyCommand(
  parent: Command,
  { name, aliases = [], description, group, hidden = false, load }: LazyCommand,
): Command {
  const command = parent.command(name, { hidden }).aliases(aliases).description(description);
  if (group !== undefined) command.helpGroup(group);
  unfilled.set(command, load);
  return command;
}

/** Fills the commands that the words name, one below the other, and returns the last of them with the words after it. */
export async function fillNamed(
  root: Command,
  words: readonly string[],
): Promise<{ readonly command: Command; readonly rest: readonly string[] }> {
  let command = root;
  let rest = words;
  for (;;) {
    await fill(command);
    const [word] = rest;
    const next = word === undefined ? undefined : findChild(command, word);
    if (next === undefined) return { command, rest };
    command = next;
    rest = rest.slice(1);
  }
}

/** Fills a command and all below it. */
export async function fillAll(command: Command): Promise<void> {
  await fill(command);
  for (const child of command.commands) await fillAll(child);
}

async function fill(command: Command): Promise<void> {
  const load = unfilled.get(command);
  unfilled.delete(command);
  if (load !== undefined) (await load())(command);
}

function findChild({ commands }: Command, word: string): Command | undefined {
  return commands.find((one) => one.name() === word || one.aliases().includes(word));
}

/** The names of a command and of the groups it is in, such as `auth login`; empty for `arbor` itself. */
export function pathOf(command: Command): string {
  return command.parent === null ? "" : `${pathOf(command.parent)} ${command.name()}`.trim();
}
