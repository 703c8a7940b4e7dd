// Which commands there are, and that a start fills those alone that the command line names.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Command } from "commander";
import { createCommandLine } from "../../src/cli/command-line.js";
import { fillNamed } from "../../src/cli/lazy-command.js";
import { packageCommandLine } from "../../src/cli/package/command-line.js";
import { createProgram } from "../../src/cli/program.js";

const whole = await createProgram();
const namesOf = (command: Command) =>
  command
    .createHelp()
    .visibleCommands(command)
    .map((one) => one.name());

describe("the commands", () => {
  it("are all in the help, in groups", () => {
    const groups = [
      ["login", "logout", "status", "whoami", "docs", "demo"],
      ["members", "can", "access", "find"],
      ["iam", "registry", "advisories", "events", "scim", "audit", "apply", "export"],
      ["serve", "bootstrap", "config", "migrate", "check", "backup", "restore", "copy", "admin"],
      ["auth", "api", "completion", "version", "help"],
    ];
    assert.deepEqual(namesOf(whole), groups.flat());
    const help = whole.helpInformation();
    for (const name of groups.flat()) assert.match(help, new RegExp(`^  ${name} `, "m"));
  });

  it("all have a description, and something to run or commands below", () => {
    const check = (command: Command, path: string): void => {
      assert.notEqual(command.description(), "", path);
      const runs = "_actionHandler" in command && command._actionHandler !== null;
      assert.ok(runs || command.commands.length > 0, path);
      for (const child of command.commands) check(child, `${path} ${child.name()}`);
    };
    for (const command of whole.commands) check(command, command.name());
  });

  it("are filled when they are named, and no others", async () => {
    const arbor = createCommandLine(packageCommandLine);
    const { command, rest } = await fillNamed(arbor, ["iam", "groups", "list", "--page-size", "1"]);
    assert.deepEqual([command.name(), rest], ["list", ["--page-size", "1"]]);
    const isFilled = (one: Command) => one.commands.length > 0 || one.options.length > 0;
    assert.deepEqual(
      arbor.commands.filter(isFilled).map((one) => one.name()),
      ["iam"],
    );
    const iam = arbor.commands.find((one) => one.name() === "iam") ?? assert.fail();
    assert.deepEqual(
      iam.commands.filter(isFilled).map((one) => one.name()),
      ["groups"],
    );
  });
});
