// `arbor iam groups delete --recursive`: that it deletes every kind, continues, and deletes nothing where it may not delete all.
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { after, before, describe, it } from "node:test";
import { definitions } from "../../../../src/app/definitions.js";
import { confirmName } from "../../../../src/cli/output/confirm.js";
import { listKindsOfTree, loadCalls } from "../../../../src/cli/remote/iam/delete-tree.js";
import { builtinRoleUid, randomIds } from "../../../../src/kernel/ids.js";
import { groupKind } from "../../../../src/store/iam/groups.js";
import { roleBindingKind } from "../../../../src/store/iam/role-bindings.js";
import { roleKind } from "../../../../src/store/iam/roles.js";
import { kinds as storedKinds } from "../../../../src/store/kinds.js";
import { type IamWorld, startIamWorld } from "../../../iam/iam-world.js";
import { insertGroup } from "../../../iam/populate.js";
import { runCommand } from "../../../support/command.js";
import { bindingRow, roleRow } from "../../../support/rows.js";

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

/** Runs the command as a caller. */
function remove(token: string, ...args: readonly string[]) {
  const env = { ARBOR_API: world.url, ARBOR_TOKEN: token };
  return runCommand(["iam", "groups", "delete", "--recursive", ...args], env);
}

/** An organisation of three groups with one of every kind in each, and a person who may delete it. */
async function createOrganisation(): Promise<{ root: string; child: string; token: string; uid: string }> {
  const { uid, token } = await world.harness.identity();
  const root = randomIds.newUid("");
  const child = randomIds.newUid(root);
  await world.write(async (tx) => {
    for (const group of [root, child, randomIds.newUid(child)])
      await insertGroup(tx, group, { name: "full", text: "x" });
  });
  await world.harness.bind(uid, "owner", root);
  await world.harness.bind(uid, "advisories.admin", root);
  return { root, child, token, uid };
}

/** How many rows of which tables are below a group. */
async function countRows(group: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  await world.write(async (tx) => {
    for (const kind of storedKinds) {
      const order = { field: "uid", descending: false };
      const query = { visible: [group], filter: { descendantsOf: group }, order, skip: 0, limit: 200 };
      const { rows } = await tx.table(kind as typeof groupKind).list(query);
      if (rows.length > 0) counts[kind.key] = rows.length;
    }
  });
  return counts;
}

describe("the kinds that are deleted with a group", () => {
  const blocking = (all: typeof definitions) =>
    all
      .filter(({ parent, keeps }) =>
        [parent?.onDelete.restrict && parent.type, keeps?.type].includes("iam.chainguard.dev/Group"),
      )
      .map(({ displayName }) => displayName);

  it("are those that keep a group from being deleted, and each has a method that deletes it", async () => {
    assert.deepEqual([...listKindsOfTree(), "group"].sort(), blocking(definitions).sort());
    for (const kind of listKindsOfTree()) await loadCalls(kind);
    // The control: a kind without a command would be missed.
    const another = { ...definitions.find(({ displayName }) => displayName === "repo"), displayName: "probe" };
    const more = blocking([...definitions, another as (typeof definitions)[number]]);
    assert.ok(more.includes("probe") && !(listKindsOfTree() as string[]).includes("probe"));
  });
});

describe("groups delete --recursive", () => {
  it("deletes an organisation with every kind in every group", async () => {
    const { root, token } = await createOrganisation();
    const full = await countRows(root);
    for (const { key } of storedKinds) if (key !== "scimUsers") assert.ok((full[key] ?? 0) > 0, key);
    const { code, stdout, stderr } = await remove(token, root, "--yes");
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^deleted [0-9a-f]{40} and all that was in it: \d+ resources\n$/);
    assert.match(stderr, /^full \([0-9a-f]{40}\) and all that is in it:\n {2}full\n {4}full\n {6}full\n3 groups, /);
    assert.match(stderr, /3 repos.*; with them go 3 tags, 3 overlay bindings\n/);
    assert.deepEqual(await countRows(root), {});
  });

  it("asks for the name, and deletes nothing after another one", async () => {
    const ask = async (answer: string) => {
      const [input, output] = [new PassThrough(), new PassThrough()].map((stream) =>
        Object.assign(stream, { isTTY: true }),
      ) as [PassThrough & { isTTY: boolean }, PassThrough & { isTTY: boolean }];
      input.end(`${answer}\n`);
      return confirmName("Type the name of the group", "old", { input, output });
    };
    await ask("old");
    await assert.rejects(ask("y"), /nothing was deleted/);
    await assert.rejects(ask("older"), /nothing was deleted/);
  });

  it("stops at what it was not shown, says so, and goes on when it is run again", async () => {
    const { root, child, token } = await createOrganisation();
    const limited = await world.role(
      [
        ...["groups.list", "groups.delete", "identity.list", "identity.delete", "roles.list", "roles.delete"],
        ...["role_bindings.list", "role_bindings.delete", "group_invites.list", "group_invites.delete"],
        ...["account_associations.list", "account_associations.delete", "identity_providers.list"],
        ...["identity_providers.delete", "repo.list", "repo.delete", "tag.list", "tag.delete"],
      ],
      root,
    );
    const other = await world.harness.identity();
    await world.write((tx) => tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(root), other.uid, limited)));
    const stopped = await remove(other.token, child, "--yes");
    assert.equal(stopped.code, 6, stopped.stderr);
    assert.match(stopped.stderr, /you may not list these kinds, of which more may be in the way: .*subscription/);
    assert.match(stopped.stderr, /in the way: .*1 subscription/);
    assert.match(stopped.stderr, /deleted \d+ of \d+: run the command again to go on/);
    const left = await countRows(child);
    assert.equal(left.groups, 1);
    assert.equal(left.repos, undefined);
    assert.equal((await remove(token, child, "--yes")).code, 0);
    assert.deepEqual(await countRows(child), {});
    assert.ok(await world.write((tx) => tx.table(groupKind).find(root)));
  });

  const refused = async (token: string, group: string, code: number, text: RegExp) => {
    const before = await countRows(group);
    const ended = await remove(token, group, "--yes");
    assert.match(ended.stderr, text);
    assert.equal(ended.code, code);
    assert.deepEqual(await countRows(group), before);
  };

  it("deletes nothing without the right to delete each kind", async () => {
    const { root, child } = await createOrganisation();
    const { uid, token } = await world.harness.identity();
    await world.harness.bind(uid, "viewer", root);
    await refused(
      token,
      child,
      4,
      /nothing was deleted: you may not delete all of it\n.*2 groups: lacks groups\.delete/s,
    );
  });

  it("deletes nothing where the caller would be deleted, or the right to go on", async () => {
    const { root, child } = await createOrganisation();
    const inside = await world.harness.identity({ groupUid: child } as object, child);
    await world.harness.bind(inside.uid, "owner", root);
    await world.harness.bind(inside.uid, "advisories.admin", root);
    await refused(inside.token, child, 6, /you are the identity .* which is in the group/);
    const { uid, token } = await world.harness.identity();
    await world.harness.bind(uid, "owner", child);
    await world.harness.bind(uid, "advisories.admin", child);
    await refused(token, child, 6, /your rights here come from your role binding in the group alone/);
  });

  it("deletes an organisation for none but an owner", async () => {
    const { root } = await createOrganisation();
    const { uid, token } = await world.harness.identity();
    // A role of the organisation with all that an owner may do.
    await world.write(async (tx) => {
      const { capabilities = "" } = (await tx.table(roleKind).find(builtinRoleUid("owner"))) ?? {};
      const role = roleRow(randomIds.newUid(root), { groupUid: root, capabilities: capabilities as never });
      await tx.table(roleKind).insert(role);
      await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(root), uid, role.uid));
    });
    await world.harness.bind(uid, "advisories.admin", root);
    await refused(token, root, 6, /only an owner of an organisation deletes it/);
  });
});
