// Names in place of uids in the commands on the host, and their questions.
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { builtinRoleUid } from "../../../src/kernel/ids.js";
import { type Finished, runCommand } from "../../support/command.js";
import { tempDir } from "../../support/temp-dir.js";

const data = tempDir();
let root: string;
let owner: string;

const onHost = (...args: readonly string[]): Promise<Finished> => runCommand([...args, "--data", data]);

async function succeed(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await onHost(...args);
  assert.equal(code, 0, stderr);
  return stdout;
}

before(async () => {
  const made = JSON.parse(await succeed("bootstrap", "--org", "acme.example", "--json"));
  root = made.group;
  owner = made.identity;
});

describe("a name on the host", () => {
  it("of an organisation and of a role is found", async () => {
    const role = (await succeed("admin", "role", "create", "--name", "syncer", "--capability", "repo.update")).trim();
    const flags = ["--identity", owner, "--group", "acme.example", "--json"];
    const internal = JSON.parse(await succeed("admin", "bind", "--internal", "--role", "syncer", ...flags));
    assert.deepEqual([internal.roleUid, internal.groupUid], [role, root]);
    const builtIn = JSON.parse(await succeed("admin", "bind", "--role", "viewer", ...flags));
    assert.equal(builtIn.roleUid, builtinRoleUid("viewer"));
    assert.equal(
      await succeed("admin", "quota", "list", "--group", "acme.example"),
      await succeed("admin", "quota", "list", "--group", root),
    );
    assert.equal(
      await succeed("audit", "list", "--root", "acme.example", "--json"),
      await succeed("audit", "list", "--root", root, "--json"),
    );
    await succeed("admin", "unbind", internal.uid, "--yes");
    await succeed("admin", "role", "delete", "syncer", "--yes");
    assert.doesNotMatch(await succeed("admin", "role", "list"), /syncer/);
  });

  it("is compared byte by byte, and an absent one says how to list", async () => {
    for (const name of ["Acme.example", "acme.example ", "acme.example/none"]) {
      const { code, stderr } = await onHost("admin", "quota", "list", "--group", name);
      assert.equal(code, 2);
      assert.match(stderr, /no group has the name .*arbor admin organisations list/);
    }
    const { stderr } = await onHost("admin", "token", "--identity", "nobody@acme.example");
    assert.match(stderr, /no identity has the name nobody@acme\.example: .*arbor admin identities list --org NAME/);
  });

  it("that several have is an error with their uids", async () => {
    const flags = ["admin", "role", "create", "--name", "twice", "--capability", "repo.update"];
    const uids = [(await succeed(...flags)).trim(), (await succeed(...flags)).trim()];
    const { code, stderr } = await onHost("admin", "role", "delete", "twice", "--yes");
    assert.equal(code, 2);
    for (const uid of uids) assert.ok(stderr.includes(uid), stderr);
    for (const uid of uids) await succeed("admin", "role", "delete", uid, "--yes");
  });
});

describe("a deletion on the host", () => {
  it("needs --yes without a terminal, and changes nothing without it", async () => {
    await succeed("admin", "role", "create", "--name", "kept", "--capability", "repo.update");
    for (const args of [
      ["admin", "role", "delete", "kept"],
      ["admin", "unbind", `${root}/0123456789abcdef`],
    ]) {
      const { code, stderr } = await onHost(...args);
      assert.deepEqual([code, /--yes: is required without a terminal/.test(stderr)], [2, true], stderr);
    }
    assert.match(await succeed("admin", "role", "list"), /kept/);
  });
});
