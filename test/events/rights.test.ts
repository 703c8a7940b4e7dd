// Who may do what with subscriptions.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { randomIds } from "../../src/kernel/ids.js";
import { subscriptionKind } from "../../src/store/iam/subscriptions.js";
import { permissionDenied } from "../contract/expectations.js";
import { restAs } from "../contract/rest.js";
import { type IamWorld, type Somebody, startIamWorld } from "../iam/iam-world.js";

const SINK = "https://localhost/callback";
const versions = ["v1", "v2beta1", "v2"] as const;

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const rest = ({ token }: Somebody, version: string) => restAs(world.url, token, `/events/${version}`);

async function storeSubscription(group: string): Promise<string> {
  const uid = randomIds.newUid(group);
  const times = { createTimeMs: 1_000, updateTimeMs: 1_000 };
  await world.write((tx) => tx.table(subscriptionKind).insert({ uid, groupUid: group, sink: SINK, ...times }));
  return uid;
}

for (const version of versions) {
  it(`each needs its own capability in ${version}`, async () => {
    const uid = await storeSubscription(world.child);
    const path = `/subscriptions/${world.child}`;
    const holders = new Map<string, Somebody>();
    for (const verb of ["create", "list", "delete", "update"]) {
      holders.set(verb, await world.caller([`subscriptions.${verb}`]));
    }
    for (const [verb, who] of holders) {
      const { status, outcome } = await rest(who, version)("POST", path, { sink: SINK });
      if (verb === "create") assert.equal(status, 200);
      else assert.deepEqual(outcome, permissionDenied(`subscriptions.create at ${world.child}`), verb);
      const { json } = await rest(who, version)("GET", `/subscriptions?uidp.ids=${uid}`);
      const visible = ((json?.items ?? json?.subscriptions ?? []) as object[]).length;
      assert.equal(visible, verb === "list" ? 1 : 0, verb);
    }
    for (const [verb, who] of holders) {
      if (verb === "delete") continue;
      const { outcome } = await rest(who, version)("DELETE", `/subscriptions/${uid}`);
      assert.deepEqual(outcome, permissionDenied(`subscriptions.delete at ${uid}`), verb);
    }
    const deleter = holders.get("delete");
    assert.ok(deleter);
    assert.equal((await rest(deleter, version)("DELETE", `/subscriptions/${uid}`)).status, 200);
    // A caller who may not read the group cannot tell that it was deleted.
    const again = await rest(deleter, version)("DELETE", `/subscriptions/${uid}`);
    assert.deepEqual(again.outcome, permissionDenied(`subscriptions.delete at ${uid}`));
  });

  it(`another organisation sees and changes nothing in ${version}`, async () => {
    const uid = await storeSubscription(world.grandchild);
    const foreign = rest(world.foreignOwner, version);
    for (const query of ["", `?uidp.ids=${uid}`, `?uidp.descendants_of=${world.root}`]) {
      const { status, text } = await foreign("GET", `/subscriptions${query}`);
      assert.equal(status, 200);
      assert.doesNotMatch(text, new RegExp(uid));
    }
    const deleted = await foreign("DELETE", `/subscriptions/${uid}`);
    assert.deepEqual(deleted.outcome, permissionDenied(`subscriptions.delete at ${uid}`));
    const made = await foreign("POST", `/subscriptions/${world.child}`, { sink: SINK });
    assert.deepEqual(made.outcome, permissionDenied(`subscriptions.create at ${world.child}`));
    const before = await rest(world.owner, version)("GET", `/subscriptions?uidp.ids=${uid}`);
    assert.match(before.text, new RegExp(uid));
    assert.equal((await restAs(world.url, undefined, `/events/${version}`)("GET", "/subscriptions")).status, 401);
  });
}

it("one holds below the group where it was given, and nowhere else", async () => {
  const who = await world.caller(["subscriptions.list"], world.child);
  const [above, at, below] = [
    await storeSubscription(world.root),
    await storeSubscription(world.child),
    await storeSubscription(world.grandchild),
  ];
  const { json } = await rest(who, "v1")("GET", "/subscriptions");
  const ids = ((json?.items ?? []) as { id: string }[]).map(({ id }) => id);
  assert.deepEqual(
    [above, at, below].map((uid) => ids.includes(uid)),
    [false, true, true],
  );
  const visible = async (uid: string) => (await rest(who, "v2beta1")("GET", `/subscriptions/${uid}`)).status;
  assert.deepEqual([await visible(above), await visible(at), await visible(below)], [403, 200, 200]);
});
