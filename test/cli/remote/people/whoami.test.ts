// `arbor whoami`: who the service takes the caller for.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type CliWorld, startCliWorld } from "../iam/cli-world.js";

let world: CliWorld;
before(async () => {
  world = await startCliWorld();
});
after(() => world?.stop());

describe("arbor whoami", () => {
  it("prints the identity, its address and its roles", async () => {
    const { uid, token } = await world.service.identity({ name: "Ada", email: "ada@example.com" });
    await world.service.bind(uid, "viewer", world.root);
    const { code, stdout, stderr } = await world.arbor({ ARBOR_TOKEN: token }, "whoami");
    assert.deepEqual([code, stderr], [0, ""]);
    const rows = new Map(stdout.split("\n").map((line) => line.split(/ {2,}/) as [string, string]));
    assert.equal(rows.get("identity"), uid);
    assert.equal(rows.get("name"), "Ada");
    assert.equal(rows.get("credential"), "ARBOR_TOKEN");
    const file = await world.arbor({ ARBOR_TOKEN: "" }, "whoami", "--token-file", world.file(token));
    assert.match(file.stdout, /\ncredential +--token-file\n/);
    assert.equal(rows.get("email"), "ada@example.com");
    assert.match(
      rows.get("role") ?? "",
      new RegExp(`^viewer in acme\\.example \\(${world.root}\\), \\d+ capabilities$`),
    );
    assert.match(rows.get("token expires") ?? "", /^\d{4}-\d\d-\d\dT/);
  });

  it("prints the response of the service for programs", async () => {
    const { stdout } = await world.arbor({}, "whoami", "-o", "json");
    const { subject, capabilities } = JSON.parse(stdout) as {
      subject: string;
      capabilities: { role: { name: string } }[];
    };
    assert.deepEqual([subject, capabilities.map(({ role }) => role.name)], [world.owner, ["owner"]]);
  });

  it("without a role, and without a right to read itself, has neither roles nor a name", async () => {
    const { uid, token } = await world.service.identity({}, world.root);
    const { code, stdout } = await world.arbor({ ARBOR_TOKEN: token }, "whoami");
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`identity +${uid}\n`));
    assert.doesNotMatch(stdout, /^(role|name) /m);
  });

  it("without a login says how to log in", async () => {
    const { code, stderr } = await world.arbor({ ARBOR_TOKEN: "" }, "whoami");
    assert.equal(code, 3);
    assert.match(stderr, /run: arbor auth login --api /);
  });
});
