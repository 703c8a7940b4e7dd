// Which commands there are, and that each is there when the command line names it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createProgram } from "../../src/cli/program.js";
import { runCommand } from "../support/command.js";
import { tempDir } from "../support/temp-dir.js";

const names = async (first?: string) => (await createProgram(first)).commands.map((command) => command.name());

describe("the commands", () => {
  it("are all there for the help", async () => {
    const host = [
      "serve",
      "config",
      "bootstrap",
      "migrate",
      "check",
      "copy",
      "backup",
      "restore",
      "admin",
      "audit",
      "advisories",
      "registry",
      "demo",
    ];
    const all = [...host, "auth", "iam", "completion"];
    for (const first of [undefined, "--help", "help", "completion", "destroy"])
      assert.deepEqual(await names(first), all);
  });

  it("are loaded by groups, which know the names of their commands", async () => {
    for (const name of await names()) {
      const group = await names(name);
      assert.ok(group.includes(name), name);
      if (name !== "completion") assert.ok(group.length < 15, `${name} loads ${group.join(" ")}`);
    }
  });
});

describe("a variable that begins with ARBOR_ and sets nothing", () => {
  const uid = "0".repeat(40);
  // Nothing listens there, so that a command that goes on fails in another way.
  const accepted = { ARBOR_API: "http://127.0.0.1:9", ARBOR_TOKEN: "t", ARBOR_CREDENTIALS: `${tempDir()}/c.json` };
  const wrong = { ...accepted, ARBOR_TOKE: "x", ARBOR_APL: "x" };
  const message = [
    "ARBOR_APL is no setting; did you mean ARBOR_API?",
    "ARBOR_TOKE is no setting; did you mean ARBOR_TOKEN?",
  ].join("\n");

  for (const args of [
    ["iam", "groups", "list"],
    ["iam", "groups", "get", uid],
    ["registry", "repos", "list"],
    ["auth", "login"],
    ["auth", "token"],
    ["auth", "status"],
    ["auth", "logout"],
    ["auth", "configure-docker", "--registry", "registry.example.org"],
    ["auth", "bindings", "list"],
    ["auth", "pull-token", "list"],
    ["audit", "list", "--scope", uid],
    ["audit", "tail", "--scope", uid],
    ["audit", "verify", "--scope", uid],
    ["audit", "export", "--scope", uid],
    ["audit", "jwks", "--scope", uid],
    ["demo", "--listen", "192.0.2.1:1"],
    ["config", "check"],
    ["audit", "list"],
  ]) {
    it(`is rejected by ${args.join(" ")}`, async () => {
      const { code, stdout, stderr } = await runCommand(args, wrong);
      assert.deepEqual([code, stdout, stderr], [2, "", `arbor: ${message}\n`]);
    });
  }

  it("is ignored by commands that read none, and one of Kubernetes by all", async () => {
    assert.equal((await runCommand(["completion", "bash"], wrong)).code, 0);
    assert.equal((await runCommand(["config", "schema"], wrong)).code, 0);
    // It goes on, and finds no login.
    const { code, stderr } = await runCommand(["auth", "token"], { ...accepted, ARBOR_PORT: "tcp://10.0.0.1:8080" });
    assert.equal(code, 3);
    assert.match(stderr, /not logged in/);
  });
});
