// Misspelt environment variables, which every command rejects that could have read the right one.
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/program.js";
import { runCommand } from "../support/command.js";
import { tempDir } from "../support/temp-dir.js";

const directory = tempDir();
// Nothing listens there, nobody is logged in, and there is no data.
const right = {
  ...{ ARBOR_API: "http://127.0.0.1:1", ARBOR_CREDENTIALS: join(directory, "none.json") },
  ...{ ARBOR_DATA: join(directory, "data"), HOME: directory },
};
const wrong = { ...right, ARBOR_TOKE: "x", ARBOR_APL: "x" };
const MESSAGE =
  "ARBOR_APL is not a setting; did you mean ARBOR_API?\nARBOR_TOKE is not a setting; did you mean ARBOR_TOKEN?\n";

/** What docker, shells and editors run, in whatever environment they have. */
const exempt = ["help", "auth docker-credential", "completion", "complete-names", "config schema"];

const commands = listCommands(await createProgram());

// What a command needs in order to be parsed. With an address that is none, it would not serve if it went on.
function listCommands(command: Command, path: readonly string[] = []): { path: string; args: readonly string[] }[] {
  if (command.commands.length > 0) return command.commands.flatMap((one) => listCommands(one, [...path, one.name()]));
  const args = command.registeredArguments.filter(({ required }) => required).map(() => "0".repeat(40));
  const options = command.options
    .filter(({ mandatory, long = "" }) => mandatory || ["--listen", "--org", "--to"].includes(long))
    .flatMap(({ long, argChoices }) => [long ?? "", argChoices?.[0] ?? "x"])
    // Without a terminal and without this, the command would say so first.
    .concat(command.options.some(({ long }) => long === "--yes") ? ["--yes"] : []);
  return [{ path: path.join(" "), args: [...path, ...args, ...options] }];
}

describe("variables that no command reads are rejected, before anything else, by", () => {
  for (const { path, args } of commands) {
    if (exempt.includes(path)) continue;
    for (const more of path.startsWith("audit ") && path !== "audit get" ? [[], ["--scope", "0".repeat(40)]] : [[]]) {
      it(`arbor ${[...args, ...more].join(" ")}`, async () => {
        const { code, stdout, stderr } = await runCommand([...args, ...more], wrong);
        assert.deepEqual([code, stdout], [2, ""], stderr);
        assert.ok(stderr.startsWith(`arbor: ${MESSAGE}`), stderr);
      });
    }
  }

  it("all commands, and these are they", () => {
    assert.ok(commands.length > 90, String(commands.length));
    const names = commands.map(({ path }) => path);
    for (const path of exempt) assert.ok(names.includes(path), path);
  });
});

describe("other variables are ignored by", () => {
  const others = { ARBOR_LISTEN: "x", ARBOR_PORT: "tcp://10.0.0.11:8080", ARBOR_DB_SERVICE_HOST: "x", ARBORIST: "x" };
  for (const command of ["auth status", "auth token", "auth logout"]) {
    it(`arbor ${command}`, async () => {
      const { stderr } = await runCommand(command.split(" "), { ...right, ...others });
      assert.doesNotMatch(stderr, /is not a setting/);
      assert.equal(stderr, (await runCommand(command.split(" "), right)).stderr);
    });
  }
});

it("docker, shells and editors are answered whatever the variables are", async () => {
  for (const command of ["auth docker-credential list", "completion bash", "config schema"]) {
    const { code, stderr } = await runCommand(command.split(" "), wrong);
    assert.deepEqual([code, stderr], [0, ""], command);
  }
});

it("the version and the help are printed whatever the variables are", async () => {
  for (const command of ["--version", "iam --help", "iam groups list --help"]) {
    assert.equal((await runCommand(command.split(" "), wrong)).code, 0, command);
  }
});
