// The check that a caller holds the rights of an identity before it changes how the identity is assumed: what it takes
// does not grow with the number of bindings, and what it decides is the same.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { permissionDenied } from "../contract/expectations.js";
import { bindingRow, childUid, groupRow } from "../support/rows.js";
import { takeShortest, watchTurns } from "../support/turns.js";
import { claimMatch, type IamWorld, type Somebody, startIamWorld } from "./iam-world.js";

/** As many bindings as an identity may have. */
const MANY = 1_000;
/** As many as one could have before there was a limit. */
const LEGACY = 20_000;
const viewer = builtinRoleUid("viewer");

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

// A group with children, at each of which all of these identities have the role.
async function bindAll(identities: readonly string[], role: string, count: number): Promise<string> {
  const top = await world.group();
  for (let from = 1; from <= count; from += 500) {
    await world.write(async (tx) => {
      for (let n = from; n < from + 500 && n <= count; n++) {
        const group = childUid(top, n);
        await tx.table(groupKind).insert(groupRow(group));
        for (const one of identities)
          await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(group), one, role));
      }
    });
  }
  return top;
}

const assumeAnew = (who: Somebody, uid: string) =>
  who.rest("PATCH", `/identities/${uid}?updateMask=claim_match`, { claimMatch: claimMatch() });

/** The longest turn of the event loop, in milliseconds of processor time. */
const MAX_MS = 25;

describe("changing how an identity with many bindings is assumed", () => {
  it("is for callers who hold its rights at each of its groups, wherever they hold them", async () => {
    const identity = await world.identity();
    const [each, top, child] = [
      await world.caller(["identity.update"]),
      await world.caller(["identity.update"]),
      await world.caller(["identity.update"]),
    ];
    const group = await bindAll([identity, each.uid], viewer, MANY);
    await world.harness.bind(top.uid, "viewer", group);
    await world.harness.bind(child.uid, "viewer", childUid(group, 1));
    for (const one of [world.owner, each, top]) {
      const { status, text } = await assumeAnew(one, identity);
      assert.equal(status, 200, text);
    }
    const { outcome } = await assumeAnew(child, identity);
    assert.deepEqual(outcome, permissionDenied(`granting rights at ${childUid(group, 2)} that the caller lacks there`));
    // One group of a thousand is enough.
    const [lost] = (
      await world.harness.app.installation.store.read((tx) => tx.table(roleBindingKind).findByIdentity(each.uid))
    )
      .filter(({ groupUid }) => groupUid === childUid(group, 700))
      .map(({ uid }) => uid);
    await world.write((tx) => tx.table(roleBindingKind).delete(lost ?? ""));
    const denied = permissionDenied(`granting rights at ${childUid(group, 700)} that the caller lacks there`);
    assert.deepEqual((await assumeAnew(each, identity)).outcome, denied);
  });

  it("takes little of the processor for any number of bindings", async () => {
    const identity = await world.identity();
    const delegate = await world.caller(["identity.update"]);
    const group = await bindAll([identity], viewer, LEGACY);
    await world.harness.bind(delegate.uid, "viewer", group);
    const turns = watchTurns();
    try {
      const allowed = await takeShortest(turns, MAX_MS, async () => {
        assert.equal((await assumeAnew(world.owner, identity)).status, 200);
      });
      assert.ok(allowed < MAX_MS, `a turn of ${allowed} ms`);
      // Only the organisation's own limit allows so many, and then not all of them are compared.
      const refused = await takeShortest(turns, MAX_MS, async () => {
        const { status, text } = await assumeAnew(delegate, identity);
        assert.equal(status, 400);
        assert.match(text, /TOO_MANY_BINDINGS/);
      });
      assert.ok(refused < MAX_MS, `a turn of ${refused} ms`);
    } finally {
      turns.stop();
    }
  });

  it("counts bindings that the operator made in another organisation", async () => {
    const identity = await world.identity();
    const uid = randomIds.newUid(world.foreign);
    await world.write((tx) => tx.table(roleBindingKind).insert(bindingRow(uid, identity, viewer)));
    const { outcome } = await assumeAnew(world.owner, identity);
    assert.deepEqual(outcome, permissionDenied(`granting rights at ${world.foreign} that the caller lacks there`));
  });
});

describe("changing a role that is bound at many groups", () => {
  it("takes little of the processor, and the rights at its group alone", async () => {
    const role = await world.role(["groups.list"]);
    const below = await bindAll([randomIds.newUid()], role, 5_000);
    const caller = await world.caller(["roles.update", "groups.list", "roles.list"]);
    const lacking = await world.caller(["roles.update", "groups.list"]);
    await world.harness.bind(lacking.uid, "viewer", below);
    const change = (who: Somebody, name: string) =>
      who.rest("PATCH", `/roles/${role}?updateMask=capabilities`, { capabilities: [name] });
    const denied = permissionDenied(`granting rights at ${world.root} that the caller lacks there`);
    assert.deepEqual((await change(lacking, "CAP_IAM_ROLES_LIST")).outcome, denied);
    const turns = watchTurns();
    try {
      // A change each time.
      const names = ["CAP_IAM_ROLES_LIST", "CAP_IAM_GROUPS_LIST"];
      const longest = await takeShortest(turns, MAX_MS, async (n) => {
        const { status, text } = await change(caller, names[n % names.length] ?? "");
        assert.equal(status, 200, text);
      });
      assert.ok(longest < MAX_MS, `a turn of ${longest} ms`);
    } finally {
      turns.stop();
    }
  });

  it("is not for callers of the API where the operator bound it in another organisation", async () => {
    const role = await world.role(["groups.list"]);
    await world.write((tx) =>
      tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(world.foreign), randomIds.newUid(), role)),
    );
    const body = { capabilities: ["CAP_IAM_ROLES_LIST"] };
    const { status } = await world.owner.rest("PATCH", `/roles/${role}?updateMask=capabilities`, body);
    assert.equal(status, 403);
  });
});
