// Commands that do what cannot be undone ask first. Every command is looked at: one that is new and deletes something fails
// here until it has the question.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/program.js";
import { getMethods } from "../../src/cli/remote/methods.js";
import { runCommand } from "../support/command.js";

interface Leaf {
  readonly path: string;
  readonly command: Command;
}

function listLeaves(command: Command, path: string): Leaf[] {
  if (command.commands.length === 0) return [{ path, command }];
  return command.commands.flatMap((child) => listLeaves(child, `${path} ${child.name()}`.trim()));
}

const leaves = listLeaves(await createProgram(), "");
const asks = ({ command }: Leaf) => command.options.some(({ long }) => long === "--yes");

/** What commands do that read, or whose effect another command takes back, by the last word of their names. */
const harmless: ReadonlySet<string> = new Set([
  ...["list", "get", "print", "check", "schema", "lookup", "state", "tail", "export", "verify", "jwks", "history"],
  ...["architectures", "size", "config", "count-digests", "count-copies", "tags-summary", "update-status", "whoami"],
  ...[
    "check-eligibility",
    "status",
    "token",
    "listen",
    "completion",
    "can",
    "find",
    "explain",
    "subjects",
    "search",
    "review",
  ],
  ...["test-claims", "users", "groups", "docs", "version", "help", "complete-names"],
  // Each is taken back by the other, and a token is revoked.
  ...["enable", "disable", "generate"],
  // They add or change something, which can be removed or changed again.
  ...["create", "batch-create", "update", "update-metadata", "set", "set-scim-enabled", "bind", "rotate", "bootstrap"],
  // The end of a binding is set again by the same command.
  "set-end",
  ...["request-access", "generate-scim-token", "login", "configure-docker", "import", "sync", "configure"],
  ...["suspend", "resume", "test", "redeliver", "serve", "demo"],
  // Each can be dropped.
  ...["accept"],
  // They write where nothing is.
  ...["backup", "restore", "copy"],
  // It adds what an upgrade needs. What it removes, with `--contract`, the version that runs does not use.
  "migrate",
  // It ends the login of this machine, and the next `login` begins another.
  "logout",
  // docker asks for nothing that is lost, and nobody is there to answer. It stores nothing.
  "docker-credential",
  // It sends what the caller says, by its description without a question.
  "call",
]);

/** Commands whose last word does not say that they ask, with what they are given so that they do. */
const withFlags: Readonly<Record<string, readonly string[]>> = {
  apply: ["--file", "x"],
  "registry move": ["--delete-old"],
};
/** It reads before it asks: what the guard would shut out. test/cli/remote/iam/trust.test.ts shows that it sets nothing. */
const READS_FIRST = "iam guard set";

describe("a command that does what cannot be undone", () => {
  it("has --yes, and so has every command that is not known to be harmless", () => {
    const silent = leaves.filter((leaf) => !asks(leaf) && !harmless.has(leaf.path.split(" ").at(-1) ?? ""));
    assert.deepEqual(
      silent.map(({ path }) => path),
      [],
    );
    assert.ok(leaves.filter(asks).length > 20);
    // The control: a command that deletes is not taken for harmless.
    for (const word of ["delete", "revoke", "retire", "drop", "unbind", "batch-delete", "regenerate-scim-token"])
      assert.ok(!harmless.has(word), word);
  });

  it("has --yes if it calls a method that deletes, revokes or replaces a secret", () => {
    const isIrreversible = (method: string) => /\/(?:Batch)?(?:Delete|Revoke|Drop|Remove|Regenerate)/.test(method);
    const calling = leaves.filter(({ command }) => getMethods(command).some(isIrreversible));
    assert.ok(calling.length > 12);
    assert.deepEqual(
      calling.filter((leaf) => !asks(leaf)).map(({ path }) => path),
      [],
    );
  });

  for (const leaf of leaves.filter((one) => asks(one) && one.path !== READS_FIRST)) {
    it(`${leaf.path}, without a terminal, does nothing without --yes`, async () => {
      const args = leaf.command.registeredArguments.map(() => "0".repeat(40));
      const flags = withFlags[leaf.path] ?? [];
      // Whatever the command would do first would fail with another code: nothing listens, and no data is there.
      const env = { ARBOR_API: "http://127.0.0.1:1" };
      assert.deepEqual(await runCommand([...leaf.path.split(" "), ...args, ...flags], env), {
        code: 2,
        stdout: "",
        stderr: `arbor: --yes: is required without a terminal; see arbor ${leaf.path} --help\n`,
      });
    });
  }

  it("goes on with --yes", async () => {
    const env = { ARBOR_API: "http://127.0.0.1:1" };
    const { code, stderr } = await runCommand(["iam", "groups", "delete", "0".repeat(40), "--yes"], env);
    assert.equal(code, 8, stderr);
  });
});
