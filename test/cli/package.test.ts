// The command line of the package without the service: all commands over the network, with the same flags, and for each one
// on the host a word about where it is.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Argument, Command } from "commander";
import { createWholeCommandLine, runCommandLine } from "../../src/cli/command-line.js";
import { packageCommandLine } from "../../src/cli/package/command-line.js";
import { hostCommands as standIns } from "../../src/cli/package/host-commands.js";
import { createProgram } from "../../src/cli/program.js";
import { hostCommands } from "../../src/cli/top-commands.js";

const [whole, own] = await Promise.all([createProgram(), createWholeCommandLine(packageCommandLine)]);

/** The commands below one, by their paths such as `iam groups list`. */
function listCommands(command: Command, path = ""): (readonly [path: string, command: Command])[] {
  return command.commands.flatMap((child) => {
    const name = `${path} ${child.name()}`.trim();
    return [[name, child] as const, ...listCommands(child, name)];
  });
}

const isOnHost = (path: string) => hostCommands.some((one) => path === one || path.startsWith(`${one} `));
const remote = (program: Command) => listCommands(program).filter(([path]) => !isOnHost(path));

describe("the command line without the service", () => {
  it("has the commands over the network of the whole one, in groups of the same names", () => {
    const paths = (program: Command) => remote(program).map(([path]) => path);
    assert.ok(paths(whole).length > 80, `${paths(whole).length} commands`);
    assert.deepEqual(paths(own).sort(), paths(whole).sort());
  });

  it("has their flags and arguments, but for those of the host", () => {
    const describeFlags = (command: Command) => command.options.map(({ flags }) => flags);
    const expected = new Map(remote(whole));
    for (const [path, command] of remote(own)) {
      const other = expected.get(path) ?? assert.fail(path);
      const onHost = describeFlags(other).includes("--data <directory>");
      const missing = describeFlags(other).filter((flags) => !describeFlags(command).includes(flags));
      assert.equal(missing.length > 0, onHost, `${path}: ${missing}`);
      if (onHost) assert.match(path, /^audit /);
      assert.deepEqual(command.registeredArguments.map(nameOf), other.registeredArguments.map(nameOf), path);
    }
  });

  it("knows every command on the host", () => {
    const known = new Set(listCommands(whole).map(([path]) => path));
    assert.deepEqual(
      hostCommands.filter((path) => !known.has(path)),
      [],
    );
  });

  it("would be found without a command", async () => {
    const fewer = await createWholeCommandLine({ loadHost: async () => ({ ...standIns, audit: () => {} }) });
    assert.ok(!remote(fewer).some(([path]) => path === "audit list"));
  });

  for (const path of hostCommands) {
    it(`says of ${path} that it is on the host, whatever follows it`, async (test) => {
      let stderr = "";
      test.mock.method(process.stderr, "write", (text: string) => {
        stderr += text;
        return true;
      });
      for (const more of [[], ["--help"], ["list", "--data", "x", "--json"]]) {
        assert.equal(await runCommandLine([...path.split(" "), ...more], packageCommandLine), 2);
      }
      const line = `arbor: \`arbor ${path}\` is a command on the host, in the package of the service, arbor-platform; `;
      assert.equal(stderr.split(line).length, 4, stderr);
    });
  }
});

function nameOf(argument: Argument): string {
  return `${argument.name()} ${argument.required} ${argument.argChoices}`;
}
