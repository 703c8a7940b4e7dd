// Command lines of `arbor` in texts: what the parser of the program says of them, without running them.
import assert from "node:assert/strict";
import { type Command, CommanderError } from "commander";
import { createProgram } from "../../src/cli/program.js";

/** Splits a line as a shell does, without replacing anything. */
export function splitWords(line: string): string[] {
  return [...line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word.replace(/^(["'])(.*)\1$/, "$2"));
}

/** The commands that do something, by their paths, such as `iam groups list`. */
export async function listCommands(): Promise<Map<string, Command>> {
  const found = new Map<string, Command>();
  const walk = (command: Command, path: string): void => {
    for (const child of command.createHelp().visibleCommands(command)) {
      const at = `${path} ${child.name()}`.trim();
      if (child.commands.length > 0) walk(child, at);
      else found.set(at, child);
    }
  };
  walk(await createProgram(), "");
  return found;
}

/** Parses words as the command of this path, without running it, and returns the error. */
export async function parseCommand(path: string, words: readonly string[]): Promise<unknown> {
  // In fresh commands, because a command keeps what it has parsed.
  const command = (await listCommands()).get(path) ?? assert.fail(path);
  // `arbor login` is `arbor auth login`.
  const named = path.split(" ");
  const own = words[0] === named[0] ? named : named.slice(1);
  assert.deepEqual(words.slice(0, own.length), own);
  command
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .action(() => {});
  // A question that there is nobody to ask is no error of the line.
  return command.parseAsync(words.slice(own.length), { from: "user" }).then(
    () => undefined,
    (error: unknown) => error,
  );
}

/** The error of the parser for the words of a line after `arbor`, or undefined. */
export async function findUsageError(words: readonly string[]): Promise<CommanderError | undefined> {
  const paths = [...(await listCommands()).keys()];
  const path = paths.find((one) => `${words.join(" ")} `.startsWith(`${one} `)) ?? assert.fail(words.join(" "));
  const error = await parseCommand(path, words);
  return error instanceof CommanderError ? error : undefined;
}
