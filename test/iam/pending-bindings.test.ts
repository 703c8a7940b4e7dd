// What others bind a person to: it grants its role where a call names the group,
// and is in no list over all groups until the person accepts it.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { bindIdentity } from "../../src/iam/operator/operate.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { precondition } from "../contract/expectations.js";
import { restAs } from "../contract/rest.js";
import { bindingRow } from "../support/rows.js";
import { waitUntil } from "../support/wait-until.js";
import { type IamWorld, type Somebody, startIamWorld } from "./iam-world.js";

const [viewer, owner, editor] = ["viewer", "owner", "editor"].map(builtinRoleUid) as [string, string, string];

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const newPerson = async (): Promise<Somebody & { own: ReturnType<typeof restAs>; v1: ReturnType<typeof restAs> }> => {
  const made = await world.harness.identity();
  const [own, v1] = ["/bindings/v1", "/iam/v1"].map((base) => restAs(world.url, made.token, base));
  return { ...made, rest: restAs(world.url, made.token), own: own as never, v1: v1 as never };
};
const bindAt = async (
  identityUid: string,
  group = world.child,
  roleUid = viewer,
  by = world.owner,
): Promise<string> => {
  const { json, status, text } = await by.rest("POST", `/roleBindings/${group}`, { identityUid, roleUid });
  assert.equal(status, 200, text);
  return String(json?.uid);
};
const uidsIn = async (rest: Somebody["rest"], path: string, key = path.slice(1)): Promise<string[]> => {
  const { json, status, text } = await rest("GET", path);
  assert.equal(status, 200, text);
  const rows = (json?.[key.replace(/\?.*/, "")] ?? []) as { uid?: string; id?: string }[];
  return rows.map((row) => row.uid ?? row.id ?? "");
};
const pendingOf = ({ own }: { own: Somebody["rest"] }) => uidsIn(own, "/bindings?pending=true");
const readPending = async (uid: string) => (await world.write((tx) => tx.table(roleBindingKind).find(uid)))?.pending;

/** Waits until a call that was answered has been written down. */
describe("a binding that another identity created", () => {
  it("is pending, grants its role at its group, and is in no list over all groups", async () => {
    const person = await newPerson();
    const uid = await bindAt(person.uid);
    assert.equal(await readPending(uid), true);
    for (const path of ["/groups", "/roleBindings", "/identities"])
      assert.deepEqual(await uidsIn(person.rest, path), []);
    assert.deepEqual(await uidsIn(person.v1, "/groups", "items"), []);
    const { json } = await restAs(world.url, person.token, "/auth/v1")("GET", "/ok");
    assert.deepEqual(json?.capabilities, []);
    assert.deepEqual(await pendingOf(person), [uid]);
    assert.equal((await person.rest("GET", `/groups/${world.child}`)).status, 200);
  });

  it("shows role and organisation, and is accepted with all others of the organisation", async () => {
    const person = await newPerson();
    const uids = [await bindAt(person.uid), await bindAt(person.uid, world.grandchild, editor)].sort();
    const foreign = await bindAt(person.uid, world.foreign, viewer, world.foreignOwner);
    const { json } = await person.own("GET", "/bindings?pending=true&pageSize=1");
    assert.equal(json?.totalCount, "3");
    const all = [...uids, foreign].sort();
    const found: unknown[] = [];
    let token = "";
    do {
      const page = (await person.own("GET", `/bindings?pending=true&pageSize=1&pageToken=${encodeURIComponent(token)}`))
        .json;
      found.push(...((page?.bindings ?? []) as unknown[]));
      token = String(page?.nextPageToken ?? "");
    } while (token !== "");
    assert.deepEqual(
      found.map((one) => (one as { uid: string }).uid),
      all,
    );
    const { createTime, ...shown } = found[all.indexOf(foreign)] as Record<string, unknown>;
    assert.match(String(createTime), /Z$/);
    const organization = { uid: world.foreign, name: "theirs", verified: false };
    const role = { uid: viewer, name: "viewer", description: "Viewer Role (built-in)" };
    assert.deepEqual(shown, { uid: foreign, group: organization, organization, role, pending: true });

    const accepted = await person.own("POST", `/bindings/${uids[0]}:accept`, {});
    assert.deepEqual([accepted.status, accepted.json?.uid, accepted.json?.pending], [200, uids[0], false]);
    assert.deepEqual(await pendingOf(person), [foreign]);
    assert.deepEqual((await uidsIn(person.rest, "/groups")).sort(), [world.child, world.grandchild].sort());
    // Accepting again changes nothing, and from here on nothing of this organisation waits.
    assert.equal((await person.own("POST", `/bindings/${uids[0]}:accept`, {})).status, 200);
    assert.equal(await readPending(await bindAt(person.uid, world.root)), false);
  });

  it("is accepted by the first call that names the group, however it does", async () => {
    const calls: readonly ((person: Somebody) => Promise<{ readonly status: number }>)[] = [
      ({ rest }) => rest("GET", `/groups/${world.child}`),
      ({ rest }) => rest("GET", `/groups?uidp.descendantsOf=${world.child}`),
      ({ rest }) => rest("POST", `/groups/${world.child}`, { name: "made" }),
      (person) => restAs(world.url, person.token, "/iam/v1")("GET", `/groups?id=${world.grandchild}`),
    ];
    for (const call of calls) {
      const person = await newPerson();
      const uid = await bindAt(person.uid, world.child, owner);
      assert.deepEqual(await uidsIn(person.rest, "/groups"), []);
      assert.equal((await call(person)).status, 200);
      await waitUntil(async () => (await readPending(uid)) === false);
      assert.ok((await uidsIn(person.rest, "/groups")).includes(world.child));
    }
  });

  it("stays pending after calls that fail or name other groups", async () => {
    const person = await newPerson();
    const uid = await bindAt(person.uid);
    assert.equal((await person.rest("DELETE", `/groups/${world.grandchild}`)).status, 403);
    assert.equal((await person.rest("GET", `/groups/${world.root}`)).status, 403);
    assert.equal((await person.rest("GET", "/groups")).status, 200);
    await new Promise((resolve) => setTimeout(resolve, 400));
    assert.equal(await readPending(uid), true);
  });

  it("is not pending when the operator creates it, nor for its creator, workloads or members", async () => {
    const person = await newPerson();
    const context = { ids: randomIds, nowMs: Date.now() };
    const bound = await world.write((tx) =>
      bindIdentity(tx, { identity: person.uid, role: viewer, group: world.child }, context),
    );
    assert.equal(await readPending(bound), false);
    assert.equal(await readPending(await bindAt(person.uid, world.grandchild, editor)), false);
    assert.equal(await readPending(await bindAt(world.owner.uid, world.child)), false);
    assert.equal(await readPending(await bindAt(await world.identity())), false);
    // As it was before bindings waited: what has no mark counts.
    const other = await newPerson();
    await world.write((tx) =>
      tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(world.root), other.uid, viewer)),
    );
    assert.equal(await readPending(await bindAt(other.uid)), false);
  });

  it("waits by every path: batch, version 1, and a change of whom it is for", async () => {
    const [a, b, c] = [await newPerson(), await newPerson(), await newPerson()];
    const batch = { parent: world.child, requests: [{ roleBinding: { identityUid: a.uid, roleUid: viewer } }] };
    assert.equal((await world.owner.rest("POST", "/roleBindings:batchCreate", batch)).status, 200);
    const v1 = restAs(world.url, world.owner.token, "/iam/v1");
    assert.equal((await v1("POST", `/rolebindings/${world.child}`, { identity: b.uid, role: viewer })).status, 200);
    const uid = await bindAt(await world.identity());
    assert.equal((await world.owner.rest("PATCH", `/roleBindings/${uid}`, { identityUid: c.uid })).status, 200);
    for (const person of [a, b, c]) assert.equal((await pendingOf(person)).length, 1);
  });
});

describe("a binding of one's own", () => {
  it("can be dropped by its person alone, pending or not, unless it is that of the last owner", async () => {
    const [person, other] = [await newPerson(), await newPerson()];
    const pending = await bindAt(person.uid);
    for (const path of [`/bindings/${pending}`, `/bindings/${randomIds.newUid(world.child)}`]) {
      assert.equal((await other.own("DELETE", path)).status, 403);
      assert.equal((await other.own("POST", `${path}:accept`, {})).status, 403);
    }
    const anybody = restAs(world.url, undefined, "/bindings/v1");
    assert.equal((await anybody("DELETE", `/bindings/${pending}`)).status, 401);
    assert.equal((await anybody("POST", `/bindings/${pending}:accept`, {})).status, 401);
    assert.equal((await anybody("GET", "/bindings")).status, 401);
    assert.equal((await person.own("DELETE", `/bindings/${pending}`)).status, 200);
    assert.equal((await person.rest("GET", `/groups/${world.child}`)).status, 403);
    const founder = await world.harness.organisation("founded");
    const own = restAs(world.url, founder.token, "/bindings/v1");
    assert.deepEqual(await uidsIn(own, "/bindings"), [founder.roleBinding]);
    const kept = await own("DELETE", `/bindings/${founder.roleBinding}`);
    assert.deepEqual(kept.outcome, precondition("OWNER_REQUIRED", "a root group must keep an owner"));
    await world.harness.bind(person.uid, "owner", founder.group);
    assert.equal((await own("DELETE", `/bindings/${founder.roleBinding}`)).status, 200);
    assert.equal((await restAs(world.url, founder.token)("GET", `/groups/${founder.group}`)).status, 403);
  });

  it("is no business of an identity that lies in a group", async () => {
    const made = await world.harness.identity({}, world.child);
    const uid = await bindAt(made.uid);
    assert.equal((await restAs(world.url, made.token, "/bindings/v1")("DELETE", `/bindings/${uid}`)).status, 403);
  });
});

describe("bindings by a stranger", () => {
  it("of hundreds of groups leave the lists of a person as they were", async () => {
    const person = await world.createBound("viewer", world.child);
    const before = await uidsIn(person.rest, "/groups");
    await world.write(async (tx) => {
      for (let i = 0; i < 300; i++) {
        const row = bindingRow(randomIds.newUid(world.foreign), person.uid, viewer, { pending: true });
        const role = randomIds.newUid(world.foreign);
        const times = { createTimeMs: 1, updateTimeMs: 1 };
        const rights = (await tx.table(roleKind).find(viewer))?.capabilities ?? "";
        await tx.table(roleKind).insert({
          uid: role,
          groupUid: world.foreign,
          name: "r",
          description: "",
          capabilities: rights,
          ...times,
        });
        await tx.table(roleBindingKind).insert({ ...row, roleUid: role });
      }
    });
    assert.deepEqual(await uidsIn(person.rest, "/groups"), before);
    // More than are accepted at a time follow with the next call that names the group.
    assert.equal((await person.rest("GET", `/groups/${world.foreign}`)).status, 200);
    await waitUntil(
      async () => (await world.write((tx) => tx.table(roleBindingKind).countPending(person.uid, true))) === 0,
    );
  });
});
