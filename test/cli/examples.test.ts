// The examples in the help: each command has some, and the command line takes each.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Command, CommanderError } from "commander";
import { examples } from "../../src/cli/examples.js";
import { createProgram } from "../../src/cli/program.js";
import { runCommand } from "../support/command.js";

/** Splits a line as a shell does, without replacing anything. */
function splitWords(line: string): string[] {
  return [...line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word.replace(/^(["'])(.*)\1$/, "$2"));
}

async function listLeaves(): Promise<Map<string, Command>> {
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

describe("the examples", () => {
  it("are there for each command, and for no other", async () => {
    assert.deepEqual(Object.keys(examples).sort(), [...(await listLeaves()).keys()].sort());
  });

  for (const [path, lines] of Object.entries(examples)) {
    it(`of ${path} are command lines`, async () => {
      for (const [wish, line] of lines) {
        assert.match(wish, /^[A-Z`][^.]+$/);
        // Some are a part of a longer line of a shell.
        const own = /[$<]\((arbor [^)]*)\)/.exec(line)?.[1] ?? line.replace(/ > \S+$/, "");
        const [arbor, ...words] = splitWords(own);
        assert.equal(arbor, "arbor", line);
        const error = await parse(path, words);
        assert.ok(!(error instanceof CommanderError), `${line}: ${error}`);
      }
    });
  }

  it("would be found wrong with a flag that there is not", async () => {
    assert.ok((await parse("whoami", ["whoami", "--nothing"])) instanceof CommanderError);
  });
});

/** Parses words as a command, without running it, and returns the error. */
async function parse(path: string, words: readonly string[]): Promise<unknown> {
  // In fresh commands, because a command keeps what it has parsed.
  const command = (await listLeaves()).get(path) ?? assert.fail(path);
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

it("are at the end of the help, however it is asked for", async () => {
  for (const args of [
    ["iam", "groups", "create", "--help"],
    ["help", "iam", "groups", "create"],
  ]) {
    const { code, stdout } = await runCommand(args);
    assert.equal(code, 0);
    assert.match(
      stdout,
      /\nExamples:\n {2}# Create a group for a team\n {2}\$ arbor iam groups create --parent acme\.example --name platform\n/,
    );
  }
});
