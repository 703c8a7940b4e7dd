// Commands whose reader exits, as `head` does, end quietly.
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { spawnSync } from "../../support/child-process.js";
import { runCommand } from "../../support/command.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../support/project.js";
import { tempDir } from "../../support/temp-dir.js";

const data = tempDir();
before(async () => {
  const { code, stderr } = await runCommand(["bootstrap", "--org", "acme.example", "--data", data]);
  assert.equal(code, 0, stderr);
});

/** Runs `arbor` with a standard output, and in the last case a standard error, that nobody reads. */
function runUnread(args: readonly string[], redirect = "") {
  const words = [process.execPath, ...scriptArguments("src/main.ts"), ...args, "--data", data];
  const command = words.map((word) => `'${word}'`).join(" ");
  // `true` is gone before anything is written.
  const script = `{ ${command} ${redirect}; echo "ended with $?" >&3; } | true`;
  return spawnSync("bash", ["-c", script], {
    cwd: PROJECT,
    env: environmentWithoutSettings(),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
}

const lists = [
  ["admin", "keys", "list"],
  ["admin", "jobs", "list"],
  ["admin", "role", "list"],
  ["audit", "list"],
  ["audit", "verify"],
  ["check"],
  ["migrate"],
  ["migrate", "--expand", "--dry-run"],
  ["config", "print"],
] as const;

describe("a command whose output nobody reads", { concurrency: 2 }, () => {
  for (const args of lists) {
    it(`arbor ${args.join(" ")} ends with 0 and says nothing`, () => {
      const { output, stderr } = runUnread(args);
      assert.equal(output[3], "ended with 0\n");
      // No server seals the audit log here.
      assert.match(stderr, /^(arbor: warning: .*\n)?$/);
    });
  }

  it("a command that fails ends with its own code, also if nobody reads its error", () => {
    assert.equal(runUnread(["admin", "unbind", "x", "--yes"], "2>&1").output[3], "ended with 5\n");
  });
});
