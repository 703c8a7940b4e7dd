// The names of people in the list of role bindings, and what is said of the deletion of a person.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createNameFinder } from "../../../../src/cli/remote/iam/member-names.js";
import { type AccessWorld, startAccessWorld } from "../access/access-world.js";

let world: AccessWorld;
let team: string;
let ada: string;
before(async () => {
  world = await startAccessWorld();
  team = String((await world.json("groups", "create", "--parent", world.root, "--name", "later")).uid);
  ada = world.ada.uid;
  // The API has no name in a binding that is made for somebody who is a member already.
  const later = await world.json("role-bindings", "create", "--parent", team, "--identity", ada, "--role", "editor");
  assert.equal((later.identity as { name?: string }).name ?? "", "", "the control");
});
after(() => world?.stop());

describe("arbor iam role-bindings list", () => {
  it("has the names of members in bindings that were made later", async () => {
    const { code, stdout, stderr } = await world.iam("role-bindings", "list", "--group", team);
    assert.equal(code, 0, stderr);
    assert.match(stdout, new RegExp(`\nAda +ada@acme\\.example +editor +later +- +${ada} +\\S+\n$`));
    const csv = await world.iam("role-bindings", "list", "--group", team, "-o", "csv", "--columns", "identity.name");
    assert.equal(csv.stdout, "NAME\r\nAda\r\n");
    const json = await world.json("role-bindings", "list", "--group", team);
    assert.equal(JSON.stringify(json).includes("Ada"), false, "JSON is that of the API");
  });

  it("has no name of somebody who has accepted nothing there", async () => {
    const eve = await world.service.identity({ name: "Eve", email: "eve@evil.example" });
    await world.json("role-bindings", "create", "--parent", team, "--identity", eve.uid, "--role", "viewer");
    const { stdout } = await world.iam("role-bindings", "list");
    assert.match(stdout, new RegExp(`\n- +- +viewer +later +- +${eve.uid} `));
    assert.doesNotMatch(stdout, /Eve/);
  });

  it("makes one further call at most, and none where all have names", async () => {
    let calls = 0;
    const find = createNameFinder(async () => {
      calls++;
      return { roleBindings: [row("1", "a", "Ada"), row("2", "b", "Ada elsewhere", "0".repeat(40))] };
    });
    const root = "f".repeat(40);
    function row(uid: string, identity: string, name?: string, org = root) {
      return { uid: `${org}/${uid}`, identity: { uid: identity, ...(name !== undefined && { name }) } };
    }
    await find([row("3", "c", "Cleo"), row("4", `${root}/w`)]);
    assert.equal(calls, 0);
    const names = async (...rows: ReturnType<typeof row>[]) =>
      (await find(rows)).map(({ identity }) => (identity as { name?: string }).name);
    assert.deepEqual(await names(row("5", "a"), row("6", "b"), row("7", "c"), row("8", "d")), [
      "Ada",
      undefined,
      "Cleo",
      undefined,
    ]);
    await names(row("9", "e"));
    assert.equal(calls, 1);
  });
});

describe("arbor iam identities delete", () => {
  for (const person of ["ada@acme.example", "0123456789".repeat(4)]) {
    it(`of the person ${person} says what to do instead`, async () => {
      const { code, stdout, stderr } = await world.iam("identities", "delete", person, "--yes");
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, /^arbor: uid: the identity of a person is not deleted/);
      assert.match(stderr, person.includes("@") ? /arbor members offboard ada@acme\.example/ : /offboard ADDRESS/);
    });
  }

  it("deletes workloads", async () => {
    const { uid } = await world.service.identity({ name: "ci" }, team);
    assert.equal((await world.iam("identities", "delete", uid, "--yes")).stdout, `deleted ${uid}\n`);
  });
});
