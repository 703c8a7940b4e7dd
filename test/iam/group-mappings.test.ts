// Mappings of directories' groups to roles, and terms, over REST.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { invalid } from "../contract/expectations.js";
import { bindingRow } from "../support/rows.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const [viewer, editor] = ["viewer", "editor"].map(builtinRoleUid) as [string, string];

let world: IamWorld;
let provider: string;
before(async () => {
  world = await startIamWorld();
  provider = await newProvider();
});
after(() => world.stop());

async function newProvider(): Promise<string> {
  const oidc = { issuer: "https://login.example", clientId: "id", clientSecret: "s" };
  const { json } = await world.owner.rest("POST", `/identityProviders/${world.root}`, {
    name: "p",
    defaultRole: viewer,
    oidc,
  });
  return String(json?.uid);
}

const mappings = "/externalGroupRoleMappings";
const create = (body: object, parent = provider) => world.owner.rest("POST", `${mappings}/${parent}`, body);
const createMapping = async (externalGroupId: string, roleUid = viewer, parent = provider): Promise<string> => {
  const { status, json, text } = await create({ externalGroupId, roleUid, scope: world.root }, parent);
  assert.equal(status, 200, text);
  return String(json?.uid);
};

describe("a mapping", () => {
  it("is a child of its provider and is there once", async () => {
    const uid = await createMapping("once");
    assert.match(uid, new RegExp(`^${provider}/[0-9a-f]{16}$`));
    const { json } = await world.owner.rest("GET", `${mappings}/${uid}`);
    assert.deepEqual(
      [json?.identityProviderUid, json?.externalGroupId, json?.roleUid, json?.scope],
      [provider, "once", viewer, world.root],
    );
    assert.equal((await create({ externalGroupId: "once", roleUid: viewer, scope: world.root })).status, 409);
    await createMapping("once", editor);
  });

  it("is made at any group where its maker holds what the role grants, and at no other", async () => {
    const maker = await world.caller(["identity_providers.create", "role_bindings.create", "identity_providers.list"]);
    const sibling = await world.group();
    const rootsRole = await world.role(["repo.delete"]);
    const childsRole = await world.role(["repo.delete"], world.child);
    await world.write((tx) =>
      tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(world.child), maker.uid, rootsRole)),
    );
    const make = async (roleUid: string, scope: string) => {
      const externalGroupId = randomIds.newId();
      const { status, json } = await maker.rest("POST", `${mappings}/${provider}`, { externalGroupId, roleUid, scope });
      return status === 200 ? "made" : String(json?.message);
    };
    const lacks = (group: string) =>
      `Permission denied: granting rights at ${group} that the caller lacks there (or it might not exist)`;
    const unavailable = "Invalid argument: roleUid: roleUid must be a built-in role or one of the group or above it";
    assert.deepEqual(
      [
        await make(rootsRole, world.child),
        await make(rootsRole, world.grandchild),
        await make(childsRole, world.grandchild),
        await make(rootsRole, world.root),
        await make(rootsRole, sibling),
        await make(childsRole, sibling),
      ],
      ["made", "made", "made", lacks(world.root), lacks(sibling), unavailable],
    );
  });

  it("needs a provider that is there", async () => {
    const { status, json } = await create(
      { externalGroupId: "g", roleUid: viewer, scope: world.root },
      randomIds.newUid(world.root),
    );
    assert.equal(status, 404);
    assert.match(String(json?.message), /^Not found: identity provider: /);
  });

  it("is an error to delete when it is not there, but not in a batch", async () => {
    const own = await newProvider();
    const [a, b] = [await createMapping("a", viewer, own), await createMapping("b", viewer, own)];
    assert.equal((await world.owner.rest("DELETE", `${mappings}/${a}`)).status, 200);
    assert.equal((await world.owner.rest("DELETE", `${mappings}/${a}`)).status, 404);
    const batch = (names: readonly string[], parent = own) =>
      world.owner.rest("POST", `${mappings}:batchDelete`, { parent, names });
    const { json } = await batch([a, b, b]);
    assert.deepEqual(
      [json?.parent, ((json?.externalGroupRoleMappings ?? []) as { uid: string }[]).map(({ uid }) => uid)],
      [own, [b]],
    );
    const rule = "names must be mappings of the parent";
    const others = await createMapping("c");
    assert.deepEqual((await batch([b, others])).outcome, invalid(["names[1]", rule]));
    assert.deepEqual((await batch(["nonsense"])).outcome, invalid(["names[0]", rule]));
    assert.deepEqual(
      (await batch(Array.from({ length: 101 }, () => a))).outcome,
      invalid(["names", "names must be at most 100"]),
    );
    assert.deepEqual((await batch([])).outcome, invalid(["names", "names is required"]));
    assert.equal((await world.owner.rest("GET", `${mappings}/${others}`)).status, 200);
  });

  it("is listed by provider, parent and order", async () => {
    const own = await newProvider();
    const uids = [await createMapping("x", viewer, own), await createMapping("y", viewer, own)].sort();
    for (const query of [
      `identity_provider_uid=${own}`,
      `identityProviderUid=${own}&order_by=uid`,
      `uidp.children_of=${own}`,
      `uidp.ids=${uids[0]}&uidp.ids=${uids[1]}`,
    ]) {
      const { json } = await world.owner.rest("GET", `${mappings}?${query}`);
      assert.deepEqual(
        ((json?.externalGroupRoleMappings ?? []) as { uid: string }[]).map(({ uid }) => uid),
        uids,
        query,
      );
    }
    assert.equal(
      (await world.owner.rest("GET", `${mappings}?identity_provider_uid=${randomIds.newUid(world.root)}`)).json
        ?.totalCount,
      "0",
    );
    assert.equal((await world.owner.rest("GET", `${mappings}?order_by=scope`)).status, 400);
  });
});

describe("terms", () => {
  const accept = (documentIds: readonly string[], group = world.child) =>
    world.owner.rest("POST", `/terms/${group}`, { documentIds });
  const list = async (query = "", group = world.child) => {
    const { json, text, status } = await world.owner.rest("GET", `/terms/${group}?${query}`);
    assert.equal(status, 200, text);
    return json as {
      termsAcceptances: { docId: string; acceptedBy: string; orgUid: string }[];
      nextPageToken?: string;
      totalCount: string;
    };
  };

  it("are accepted once, by the first person", async () => {
    const { json } = await accept(["eula", "dpa"]);
    assert.deepEqual([json?.group, json?.documentIds], [world.child, ["eula", "dpa"]]);
    const other = await world.createBound("owner");
    assert.equal((await other.rest("POST", `/terms/${world.child}`, { documentIds: ["eula"] })).status, 200);
    const { termsAcceptances, totalCount } = await list();
    assert.deepEqual([termsAcceptances.map(({ docId }) => docId).sort(), totalCount], [["dpa", "eula"], "2"]);
    assert.ok(
      termsAcceptances.every(({ acceptedBy, orgUid }) => acceptedBy === world.owner.uid && orgUid === world.child),
    );
    assert.equal((await list("", world.grandchild)).totalCount, "2");
  });

  it("page in both directions", async () => {
    const group = await world.group();
    const ids = ["a", "b", "c", "d", "e"];
    for (const [i, id] of ids.entries()) {
      world.harness.skewMs = i * 1_000;
      assert.equal((await accept([id], group)).status, 200);
    }
    world.harness.skewMs = 0;
    for (const order of ["created_at", "created_at%20desc"]) {
      const seen: string[] = [];
      let token = "";
      do {
        const one = await list(`order_by=${order}&page_size=2&page_token=${token}`, group);
        seen.push(...one.termsAcceptances.map(({ docId }) => docId));
        assert.equal(one.totalCount, "5");
        token = one.nextPageToken ?? "";
      } while (token !== "");
      assert.deepEqual(seen, order.endsWith("desc") ? [...ids].reverse() : ids);
    }
    assert.deepEqual((await list("skip=3", group)).termsAcceptances.length, 2);
  });

  it("name documents", async () => {
    const rule = "documentIds must be at most 100 ids of 1 to 256 characters";
    for (const bad of [[""], ["x".repeat(257)], ["a\n"], Array.from({ length: 101 }, (_, i) => `${i}`)]) {
      assert.deepEqual((await accept(bad)).outcome, invalid(["documentIds", rule]));
    }
    assert.deepEqual((await accept([])).outcome, invalid(["documentIds", "documentIds is required"]));
  });
});
