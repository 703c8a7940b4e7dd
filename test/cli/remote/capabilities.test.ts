// Capabilities in both spellings, in any case, wherever commands take them.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createProgram } from "../../../src/cli/program.js";
import { type Finished, runCommand } from "../../support/command.js";
import { tempDir } from "../../support/temp-dir.js";
import { type CliWorld, startCliWorld } from "./iam/cli-world.js";

const SPELLINGS = ["groups.create", "GROUPS.Create", "CAP_IAM_GROUPS_CREATE", "cap_iam_groups_create"];

let world: CliWorld;
before(async () => {
  world = await startCliWorld();
});
after(() => world?.stop());

const stored = (role: Readonly<Record<string, unknown>>) => role.capabilities;

describe("a capability", () => {
  for (const [i, spelling] of SPELLINGS.entries()) {
    it(`may be spelled ${spelling}`, async () => {
      const parent = ["--parent", world.root];
      const flag = await world.json("roles", "create", ...parent, "--name", `flag ${i}`, "--capability", spelling);
      assert.deepEqual(stored(flag), ["CAP_IAM_GROUPS_CREATE"]);
      const file = world.file(`name: file ${i}\ncapabilities: [${spelling}]\n`);
      assert.deepEqual(stored(await world.json("roles", "create", ...parent, "-f", file)), ["CAP_IAM_GROUPS_CREATE"]);
      const update = await world.json("roles", "update", String(flag.uid), "-f", file);
      assert.deepEqual(stored(update), ["CAP_IAM_GROUPS_CREATE"]);

      const request = { parent: world.root, role: { name: `call ${i}`, capabilities: [spelling] } };
      const call = ["api", "call", "RolesService/CreateRole", "-f", world.file(JSON.stringify(request))];
      const called = await world.arbor({}, ...call);
      assert.equal(called.code, 0, called.stderr);
      assert.deepEqual(stored(JSON.parse(called.stdout)), ["CAP_IAM_GROUPS_CREATE"]);

      const at = ["--group", "acme.example"];
      assert.equal((await world.arbor({}, "can", "me", spelling, ...at)).stdout, "yes\n");
      assert.equal((await world.arbor({}, "can", "me", `${spelling},roles.list`, ...at)).stdout, "yes\n");
      const check = world.file(JSON.stringify({ resource: world.root, actions: [spelling] }));
      const checked = await world.arbor({}, "api", "call", "AccessService/Check", "-f", check);
      assert.equal(JSON.parse(checked.stdout).allowed, true, checked.stderr);
    });
  }

  it("has its dotted name in tables, and that of the API in JSON", async () => {
    await world.json("roles", "create", "--parent", world.root, "--name", "shown", "--capability", "groups.create");
    const list = ["roles", "list", "--name", "shown"];
    assert.match((await world.iam(...list, "--columns", "name,capabilities")).stdout, /\nshown +groups\.create\n$/);
    assert.match((await world.iam(...list)).stdout, /\nshown +- +1 +\S+\n$/);
    assert.match((await world.iam("roles", "get", "shown")).stdout, /^capabilities +groups\.create$/m);
    assert.match((await world.iam(...list, "-o", "json")).stdout, /"CAP_IAM_GROUPS_CREATE"/);
  });

  it("that does not exist is rejected by its flag", async () => {
    const login = await world.arbor({}, "auth", "login", "--cap", "groups.creat");
    assert.equal(login.code, 2);
    assert.match(login.stderr, /^arbor: --cap: there is no capability groups\.creat: .*groups\.create/);
    const can = await world.arbor({}, "can", "me", "CAP_NOTHING", "--group", "acme.example");
    assert.match(can.stderr, /^arbor: method: there is no capability CAP_NOTHING/);
    const file = world.file("name: wrong\ncapabilities: [groups.creat]\n");
    const made = await world.iam("roles", "create", "--parent", world.root, "-f", file);
    assert.equal(made.code, 2);
    assert.match(made.stderr, /capabilities/);
  });

  it("of an operator role is spelled as any other, on the host", async () => {
    const data = tempDir();
    const onHost = (...args: readonly string[]): Promise<Finished> => runCommand([...args, "--data", data]);
    assert.equal((await onHost("bootstrap", "--org", "acme.example")).code, 0);
    const made = await onHost("admin", "roles", "create", "--capability", "CAP_REPO_UPDATE, Repo.List", "-o", "json");
    assert.equal(made.code, 0, made.stderr);
    assert.deepEqual(JSON.parse(made.stdout).capabilities.sort(), ["repo.list", "repo.update"]);
    const wrong = await onHost("admin", "roles", "create", "--capability", "nothing");
    assert.match(wrong.stderr, /^arbor: --capability: there is no capability nothing/);
  });

  it("is taken by no flag that is not here", async () => {
    const found: string[] = [];
    const collect = (command: Awaited<ReturnType<typeof createProgram>>, path: string) => {
      for (const { long } of command.options) if (/^--cap/.test(long ?? "")) found.push(`${path} ${long}`);
      for (const child of command.commands) collect(child, `${path} ${child.name()}`.trim());
    };
    collect(await createProgram(), "");
    assert.deepEqual(found.sort(), [
      "admin roles create --capability",
      "auth login --cap",
      "iam roles create --capability",
      "iam roles update --capability",
      "login --cap",
    ]);
  });
});
