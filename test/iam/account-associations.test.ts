// Account associations: who acts for them, their checks and lists. What requests may say is in test/contract/rules.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { randomIds } from "../../src/kernel/ids.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { invalid } from "../contract/expectations.js";
import { identityRow } from "../support/rows.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const amazon = { account: "123456789012" };

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const create = (body: object, group: string) => world.owner.rest("POST", `/accountAssociations/${group}`, body);
const createAssociation = async (body: object = { name: "accounts", amazon }): Promise<string> => {
  const group = await world.group();
  const { status, json, text } = await create(body, group);
  assert.equal(status, 200, text);
  assert.equal(json?.uid, group);
  return group;
};
describe("an association", () => {
  it("lets only service principals directly in the group act for it", async () => {
    const group = await world.group();
    const rule = "ingester must be a service principal directly in the group";
    const principal = { relation: 4, relationship: { servicePrincipal: "SERVICE_PRINCIPAL_INGESTER" } };
    const [own, above, foreign] = [group, world.root, world.foreign].map((at) => randomIds.newUid(at)) as [
      string,
      string,
      string,
    ];
    await world.write(async (tx) => {
      for (const uid of [own, above, foreign]) await tx.table(identityKind).insert(identityRow(uid, principal));
    });
    const refused = [
      await world.identity(group),
      above,
      foreign,
      randomIds.newUid(group),
      randomIds.newUid(world.foreign),
      "nonsense",
    ];
    for (const uid of refused) {
      const { outcome } = await create({ name: "a", chainguard: { serviceBindings: { ingester: uid } } }, group);
      assert.deepEqual(outcome, invalid(["chainguard.serviceBindings.ingester", rule]), uid);
    }
    assert.equal((await create({ name: "a", chainguard: { serviceBindings: { ingester: own } } }, group)).status, 200);
  });

  it("reports the check of its accounts", async () => {
    const uid = await createAssociation({ name: "a", amazon });
    const check = async (providerType: string) =>
      (await world.owner.rest("POST", `/accountAssociations/${uid}:checkAccountAssociation`, { providerType })).json;
    assert.deepEqual(
      [(await check("ACCOUNT_PROVIDER_TYPE_AMAZON"))?.status, (await check("ACCOUNT_PROVIDER_TYPE_AMAZON"))?.reason],
      ["CHECK_STATUS_NOT_READY", "NOT_VERIFIED"],
    );
    assert.equal((await check("ACCOUNT_PROVIDER_TYPE_GOOGLE"))?.reason, "NOT_CONFIGURED");
    assert.equal(
      (await world.owner.rest("POST", `/accountAssociations/${uid}:checkAccountAssociation`, {})).status,
      400,
    );
  });

  it("is listed by group by default", async () => {
    const top = await world.group();
    const groups = [await world.group(top), await world.group(top), await world.group(top)];
    for (const [i, group] of groups.entries())
      assert.equal((await create({ name: ["b", "a", "b"][i] }, group)).status, 200);
    const list = async (query: string) => {
      const { json } = await world.owner.rest("GET", `/accountAssociations?uidp.descendants_of=${top}${query}`);
      return ((json?.accountAssociations ?? []) as { uid: string }[]).map(({ uid }) => uid);
    };
    const sorted = [...groups].sort();
    assert.deepEqual(await list(""), sorted);
    assert.deepEqual(await list("&order_by=group%20desc"), [...sorted].reverse());
    assert.deepEqual(await list("&name=a"), [groups[1]]);
    assert.equal((await list("&order_by=name"))[0], groups[1]);
    const count = async (filter: string) =>
      (await world.owner.rest("GET", `/accountAssociations?uidp.${filter}`)).json?.totalCount;
    assert.equal(await count(`descendants_of=${top}`), "3", "the group above has none itself");
    assert.equal((await create({ name: "above" }, top)).status, 200);
    assert.equal(await count(`descendants_of=${top}`), "3", "nor does its own count");
    assert.equal(await count(`children_of=${top}`), "3");
    assert.equal(await count(`descendants_of=${groups[0]}`), "0");
    assert.equal(await count(`ids=${top}`), "1");
    assert.equal((await world.owner.rest("GET", "/accountAssociations?order_by=amazon")).status, 400);
  });
});
