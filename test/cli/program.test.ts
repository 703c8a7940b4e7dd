// Which commands there are, and that each is there when the command line names it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createProgram } from "../../src/cli/program.js";

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
    const all = [
      ...host,
      "auth",
      "iam",
      "whoami",
      "members",
      "can",
      "find",
      "access",
      "scim",
      "events",
      "apply",
      "export",
      "api",
      "completion",
    ];
    for (const first of [undefined, "--help", "help", "completion", "api", "destroy"])
      assert.deepEqual(await names(first), all);
  });

  it("are loaded by groups, which know the names of their commands", async () => {
    for (const name of await names()) {
      const group = await names(name);
      assert.ok(group.includes(name), name);
      if (!["api", "completion"].includes(name)) assert.ok(group.length < 15, `${name} loads ${group.join(" ")}`);
    }
  });
});
