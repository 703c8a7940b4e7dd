// Custom roles over REST, and the built-in ones beside them.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { getOption, hasOption } from "@bufbuild/protobuf";
import { bit, CapabilitySchema, name as capabilityName } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { builtinRoles, seedRoles } from "../../src/iam/roles/builtin-roles.js";
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { bitsOf, toCapabilitySet } from "../../src/kernel/capability-set.js";
import { builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { precondition } from "../contract/expectations.js";
import { restAs } from "../contract/rest.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";
import { rolesOf1_7 } from "./roles-of-1-7.js";

const capabilities = ["CAP_IAM_GROUPS_LIST", "CAP_IAM_ROLES_LIST"];
const viewer = builtinRoleUid("viewer");

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const create = (body: object, group = world.child) => world.owner.rest("POST", `/roles/${group}`, body);
const createRole = async (body: object = { name: "r", description: "d", capabilities }): Promise<string> => {
  const { status, json, text } = await create(body);
  assert.equal(status, 200, text);
  return String(json?.uid);
};

describe("custom roles", () => {
  it("show their distinct capabilities in one order", async () => {
    const uid = await createRole({ name: "r", capabilities: [...capabilities].reverse().concat(capabilities) });
    const { json } = await world.owner.rest("GET", `/roles/${uid}`);
    assert.match(uid, new RegExp(`^${world.child}/[0-9a-f]{16}$`));
    assert.deepEqual(json?.capabilities, capabilities);
  });

  it("keep the capabilities of the highest bits there are", async () => {
    const known = CapabilitySchema.values.filter((value) => hasOption(value, bit));
    const last = known.reduce((one, other) => (getOption(one, bit) > getOption(other, bit) ? one : other));
    const highest = [
      last.name,
      "CAP_SANDBOX_IDENTITY_ADMIN",
      "CAP_IAM_SCIM_USERS_LIST",
      "CAP_TELEMETRY_CONTAINERS_LIST",
    ];
    const uid = await createRole({ name: "high", capabilities: highest });
    const { json } = await world.owner.rest("GET", `/roles/${uid}`);
    assert.deepEqual((json?.capabilities as string[] | undefined)?.sort(), [...highest].sort());
    const names = known.filter(({ name }) => highest.includes(name)).map((value) => getOption(value, capabilityName));
    const holder = await world.caller(names);
    const whoAmI = await restAs(world.url, holder.token, "/auth/v1")("GET", "/ok");
    const [held] = (whoAmI.json?.capabilities ?? []) as { capabilities: string[] }[];
    assert.deepEqual(held?.capabilities.sort(), names.sort());
  });

  const updates: readonly { name: string; mask?: string; body: object; after: object }[] = [
    { name: "the keys present", body: { description: "" }, after: { name: "r", description: "", capabilities } },
    {
      name: "what the mask names",
      mask: "name",
      body: { name: "s", description: "x" },
      after: { name: "s", description: "d", capabilities },
    },
    {
      name: "everything",
      mask: "*",
      body: { name: "s", capabilities: ["CAP_IAM_GROUPS_LIST"] },
      after: { name: "s", description: "", capabilities: ["CAP_IAM_GROUPS_LIST"] },
    },
  ];
  for (const { name, mask, body, after: expected } of updates) {
    it(`change by ${name}`, async () => {
      const uid = await createRole();
      const { json } = await world.owner.rest("PATCH", `/roles/${uid}${mask ? `?updateMask=${mask}` : ""}`, body);
      const { createTime, updateTime, ...rest } = json ?? {};
      assert.deepEqual(rest, { uid, ...expected });
      assert.deepEqual((await world.owner.rest("GET", `/roles/${uid}`)).json, json);
    });
  }

  it("cannot go while anything gives them", async () => {
    const inUse = precondition("RESOURCE_IN_USE", "cannot delete role that is in use");
    const { rest } = world.owner;
    const oidc = { issuer: "https://login.example", clientId: "id", clientSecret: "s" };
    const newProvider = async (defaultRole: string) =>
      String((await rest("POST", `/identityProviders/${world.root}`, { name: "p", defaultRole, oidc })).json?.uid);
    const mapped = await newProvider(viewer);
    const users: readonly ((roleUid: string) => Promise<string>)[] = [
      async (roleUid) =>
        `/roleBindings/${(await rest("POST", `/roleBindings/${world.root}`, { identityUid: personUid("i", "s"), roleUid })).json?.uid}`,
      async (roleUid) =>
        `/groupInvites/${(await rest("POST", `/groupInvites/${world.root}`, { roleUid, ttl: "60s" })).json?.uid}`,
      async (roleUid) => `/identityProviders/${await newProvider(roleUid)}`,
      async (roleUid) => {
        const body = { externalGroupId: "x", roleUid, scope: world.root };
        return `/externalGroupRoleMappings/${(await rest("POST", `/externalGroupRoleMappings/${mapped}`, body)).json?.uid}`;
      },
    ];
    for (const use of users) {
      const role = await world.role(["groups.list"]);
      const path = await use(role);
      assert.deepEqual((await rest("DELETE", `/roles/${role}`)).outcome, inUse, path);
      assert.equal((await rest("DELETE", path)).status, 200, path);
      assert.equal((await rest("DELETE", `/roles/${role}`)).status, 200, path);
      assert.equal((await rest("DELETE", `/roles/${role}`)).status, 404, path);
    }
  });
});

describe("built-in roles", () => {
  it("are visible to every caller and immutable", async () => {
    const who = await world.harness.identity();
    const rest = restAs(world.url, who.token);
    const { json } = await rest("GET", "/roles?page_size=200");
    const roles = json?.roles as { uid: string; name: string; description: string }[];
    assert.deepEqual(roles.map(({ name }) => name).sort(), Object.keys(builtinRoles).sort());
    for (const { description } of roles) assert.match(description, / Role \(built-in\)$/);
    assert.equal((await rest("GET", `/roles/${viewer}`)).json?.name, "viewer");
    for (const call of [
      world.owner.rest("PATCH", `/roles/${viewer}`, { name: "x" }),
      world.owner.rest("DELETE", `/roles/${viewer}`),
    ]) {
      assert.equal((await call).status, 403, "no group gives rights over them");
    }
    assert.equal((await rest("GET", `/roles/${randomIds.newUid()}`)).status, 404);
    assert.equal((await rest("GET", "/roles/nonsense")).status, 400);
  });

  it("are listed among custom ones by name, parent and order", async () => {
    const group = await world.group();
    const { json } = await create({ name: "viewer", capabilities }, group);
    const list = async (query: string) => {
      const response = (await world.owner.rest("GET", `/roles?${query}`)).json;
      return ((response?.roles ?? []) as { uid: string }[]).map(({ uid }) => uid);
    };
    assert.deepEqual(await list(`uidp.descendants_of=${group}`), [json?.uid]);
    assert.deepEqual(await list(`uidp.ids=${viewer}`), [viewer]);
    assert.deepEqual(await list("name=viewer&order_by=created_at"), [viewer, json?.uid]);
    assert.deepEqual(await list("name=viewer&order_by=created_at%20desc"), [json?.uid, viewer]);
    assert.equal((await world.owner.rest("GET", "/roles?order_by=capabilities")).status, 400);
  });

  // A server of the version before stores the capabilities that it knows when it starts, one of this version all of them.
  it("have the capabilities of this version after each start, whatever they had", async () => {
    const [uid, nowMs] = [builtinRoleUid("owner"), Date.now()];
    const read = () => world.write((tx) => tx.table(roleKind).find(uid));
    const grown = (await read())?.capabilities;
    const before = buildCapabilitySet(rolesOf1_7.owner ?? []);
    const newer = toCapabilitySet([...bitsOf(grown ?? ""), 255]);
    assert.notEqual(before, grown);
    for (const stored of [before, newer]) {
      await world.write((tx) => tx.table(roleKind).update(uid, { capabilities: stored }, nowMs));
      assert.equal((await world.owner.rest("GET", `/roles/${uid}`)).status, 200);
      await world.write((tx) => seedRoles(tx, nowMs));
      assert.equal((await read())?.capabilities, grown);
    }
  });
});
