// The examples in the help: each command has some, and the command line takes each.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CommanderError } from "commander";
import { examples } from "../../src/cli/examples.js";
import { runCommand } from "../support/command.js";
import { listCommands, parseCommand, splitWords } from "../support/command-line.js";

describe("the examples", () => {
  it("are there for each command, and for no other", async () => {
    assert.deepEqual(Object.keys(examples).sort(), [...(await listCommands()).keys()].sort());
  });

  for (const [path, lines] of Object.entries(examples)) {
    it(`of ${path} are command lines`, async () => {
      for (const [wish, line] of lines) {
        assert.match(wish, /^[A-Z`][^.]+$/);
        // Some are a part of a longer line of a shell.
        const own = /[$<]\((arbor [^)]*)\)/.exec(line)?.[1] ?? line.replace(/ > \S+$/, "");
        const [arbor, ...words] = splitWords(own);
        assert.equal(arbor, "arbor", line);
        const error = await parseCommand(path, words);
        assert.ok(!(error instanceof CommanderError), `${line}: ${error}`);
      }
    });
  }

  it("would be found wrong with a flag that there is not", async () => {
    assert.ok((await parseCommand("whoami", ["whoami", "--nothing"])) instanceof CommanderError);
  });
});

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
