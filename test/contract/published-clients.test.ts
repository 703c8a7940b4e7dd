// Habits of published clients, above all of the Terraform provider, which calls
// version 2beta1 for what it manages and version 1 to see whether it is gone.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { type IamWorld, startIamWorld } from "../iam/iam-world.js";
import { groupRow } from "../support/rows.js";
import { connectPublished, type Plain, type PublishedClient } from "./published-client.js";

let world: IamWorld;
let owner: PublishedClient;
before(async () => {
  world = await startIamWorld();
  owner = connectPublished(world.url, world.owner.token);
});
after(async () => {
  owner.close();
  await world.stop();
});

const viewer = builtinRoleUid("viewer");
const items = async (list: string, filter: object, client = owner) => {
  return (await client.answer(list, filter)).items as readonly Plain[];
};
const claimMatch = () => ({ issuer: "https://issuer.example", subject: randomBytes(4).toString("hex") });
const oidc = { issuer: "https://login.example", clientId: "platform", clientSecret: "hush" };

/** A kind that is created and deleted by one service, and looked for in a list of version 1. */
interface Kind {
  readonly name: string;
  readonly list: string;
  /** The filter of that list that finds one; `id` unless said. */
  readonly filter?: string;
  readonly create: string;
  readonly request: () => Promise<object> | object;
  /** The field of what is created that names it. */
  readonly named: "uid" | "id" | "group";
  readonly delete: string;
  /** Whether deleting one that is not there succeeds. */
  readonly idempotent?: true;
}

const iam = "iam.v2beta1";
const kinds: readonly Kind[] = [
  {
    ...{ name: "group", list: "iam.Groups.List", named: "uid" },
    ...{ create: `${iam}.GroupsService.CreateGroup`, delete: `${iam}.GroupsService.DeleteGroup` },
    request: () => ({ parent: world.root, group: { name: "shop" } }),
  },
  {
    ...{ name: "role", list: "iam.Roles.List", named: "uid" },
    ...{ create: `${iam}.RolesService.CreateRole`, delete: `${iam}.RolesService.DeleteRole` },
    request: () => ({ parent: world.root, role: { name: "lister", capabilities: ["CAP_IAM_GROUPS_LIST"] } }),
  },
  {
    ...{ name: "role binding", list: "iam.RoleBindings.List", named: "uid", idempotent: true },
    ...{
      create: `${iam}.RoleBindingsService.CreateRoleBinding`,
      delete: `${iam}.RoleBindingsService.DeleteRoleBinding`,
    },
    // An identity may lie above the group in which it is bound.
    request: async () => {
      const identityUid = await world.identity(world.root);
      return { parent: world.child, roleBinding: { identityUid, roleUid: viewer } };
    },
  },
  {
    ...{ name: "identity", list: "iam.Identities.List", named: "uid" },
    ...{ create: `${iam}.IdentitiesService.CreateIdentity`, delete: `${iam}.IdentitiesService.DeleteIdentity` },
    request: () => ({ parent: world.root, identity: { name: "ci", claimMatch: claimMatch() } }),
  },
  {
    ...{ name: "identity provider", list: "iam.IdentityProviders.List", named: "uid" },
    create: `${iam}.IdentityProvidersService.CreateIdentityProvider`,
    delete: `${iam}.IdentityProvidersService.DeleteIdentityProvider`,
    request: () => ({ parent: world.root, identityProvider: { name: "login", defaultRole: viewer, oidc } }),
  },
  {
    ...{ name: "account association", list: "iam.GroupAccountAssociations.List", filter: "group", named: "uid" },
    create: `${iam}.AccountAssociationsService.CreateAccountAssociation`,
    delete: `${iam}.AccountAssociationsService.DeleteAccountAssociation`,
    idempotent: true,
    request: () => ({
      parent: world.child,
      accountAssociation: { name: "cloud", amazon: { account: "123456789012" } },
    }),
  },
  {
    ...{ name: "group invite", list: "iam.GroupInvites.List", named: "uid", idempotent: true },
    ...{
      create: `${iam}.GroupInvitesService.CreateGroupInvite`,
      delete: `${iam}.GroupInvitesService.DeleteGroupInvite`,
    },
    request: () => ({ parent: world.root, groupInvite: { roleUid: viewer, ttl: { seconds: 604_800 } } }),
  },
  {
    ...{ name: "subscription", list: "events.Subscriptions.List", named: "id" },
    ...{ create: "events.Subscriptions.Create", delete: "events.Subscriptions.Delete" },
    // Whether anybody listens there is not looked at.
    request: () => ({ parentId: world.root, subscription: { sink: "https://localhost/callback" } }),
  },
  {
    ...{ name: "repo", list: "registry.Registry.ListRepos", named: "id" },
    ...{ create: "registry.Registry.CreateRepo", delete: "registry.Registry.DeleteRepo" },
    request: () => ({ parentId: world.root, repo: { name: "shop" } }),
  },
  {
    ...{ name: "tag", list: "registry.Registry.ListTags", named: "id" },
    ...{ create: "registry.Registry.CreateTag", delete: "registry.Registry.DeleteTag" },
    request: async () => {
      const { id } = await owner.answer("registry.Registry.CreateRepo", {
        parentId: world.root,
        repo: { name: "tagged" },
      });
      return { repoId: id, tag: { name: "latest" } };
    },
  },
];

// Groups, identities and the like by version 1, of the same uids.
const deletesOfV1: Readonly<Record<string, string>> = {
  group: "iam.Groups.Delete",
  role: "iam.Roles.Delete",
  "role binding": "iam.RoleBindings.Delete",
  identity: "iam.Identities.Delete",
  "identity provider": "iam.IdentityProviders.Delete",
  "account association": "iam.GroupAccountAssociations.Delete",
  "group invite": "iam.GroupInvites.Delete",
};

describe("what was just created and just deleted", () => {
  for (const { name, list, filter = "id", create, request, named, delete: remove, idempotent } of kinds) {
    it(`${name}: is in the list by id at once, and not there once deleted`, async () => {
      const created = await owner.answer(create, await request());
      const uid = String(created[named]);
      const found = await items(list, { [filter]: uid });
      assert.deepEqual(
        found.map((item) => item[filter]),
        [uid],
      );
      await owner.answer(remove, { [named]: uid });
      assert.deepEqual(await owner.answer(list, { [filter]: uid }), { items: [] });
    });

    it(`${name}: ${idempotent ? "is deleted again without an error" : "cannot be deleted twice"}`, async () => {
      const uid = filter === "group" ? world.grandchild : randomIds.newUid(world.root);
      const expected = idempotent ? "OK" : "NOT_FOUND";
      assert.equal((await owner.call(remove, { [named]: uid })).code, expected);
      const byV1 = deletesOfV1[name];
      if (byV1 === undefined) return;
      assert.equal((await owner.call(byV1, { [filter]: uid })).code, expected);
    });
  }

  it("an organisation is in the list, usable with the token that made it, and deleted by its uid alone", async () => {
    const person = await world.harness.identity();
    const client = connectPublished(world.url, person.token);
    const { uid } = await client.answer(`${iam}.GroupsService.CreateGroup`, { group: { name: "new org" } });
    assert.deepEqual(
      (await items("iam.Groups.List", { id: uid }, client)).map(({ name }) => name),
      ["new org"],
    );
    const child = await client.answer(`${iam}.GroupsService.CreateGroup`, { parent: uid, group: { name: "team" } });
    assert.match(String(child.uid), new RegExp(`^${uid}/[0-9a-f]{16}$`));
    for (const gone of [child.uid, uid]) await client.answer(`${iam}.GroupsService.DeleteGroup`, { uid: gone });
    assert.deepEqual(await items("iam.Groups.List", { id: uid }, client), []);
    client.close();
  });
});

describe("data sources", () => {
  const lookups: readonly (readonly [what: string, method: string, request: object, field: string])[] = [
    ["v1, by name and place", "iam.Roles.List", { name: "viewer", parent: "/" }, "items"],
    ["v1, by name", "iam.Roles.List", { name: "viewer" }, "items"],
    ["v2beta1, by name", `${iam}.RolesService.ListRoles`, { name: "viewer" }, "roles"],
    ["v2, by name and place", "iam.v2.RolesService.ListRoles", { name: "viewer", uidp: { childrenOf: "/" } }, "roles"],
  ];
  for (const [what, method, request, field] of lookups) {
    it(`find exactly one role viewer: ${what}`, async () => {
      const found = (await owner.answer(method, request))[field] as readonly Plain[];
      assert.deepEqual(
        found.map(({ id, uid }) => id ?? uid),
        [viewer],
      );
    });
  }

  it("tell the uid of a person who never was here, who can be bound in advance", async () => {
    const person = { issuer: "https://accounts.example", subject: "somebody" };
    const { id } = await owner.answer("iam.Identities.Lookup", person);
    assert.equal(id, personUid(person.issuer, person.subject));
    const roleBinding = { identity: id, role: viewer };
    await owner.answer("iam.RoleBindings.Create", { parent: world.child, roleBinding });
    await owner.answer("iam.RoleBindings.Create", { parent: world.child, roleBinding });
  });

  it("see the group that the caller is bound in before those below it", async () => {
    const caller = await world.createBound("viewer", world.child);
    const client = connectPublished(world.url, caller.token);
    const ids = (await items("iam.Groups.List", {}, client)).map(({ id }) => id);
    client.close();
    assert.deepEqual(ids, [world.child, world.grandchild]);
  });

  it("go on in version 2 with a list begun in version 2beta1", async () => {
    const request = { uidp: { ids: [world.root, world.child] }, pageSize: 1 };
    const first = await owner.answer(`${iam}.GroupsService.ListGroups`, request);
    const sent = { ...request, pageToken: first.nextPageToken };
    const second = await owner.answer("iam.v2.GroupsService.ListGroups", sent);
    const groups = [first, second].flatMap(({ groups }) => groups as readonly Plain[]);
    assert.deepEqual(
      groups.map(({ uid }) => uid),
      [world.root, world.child],
    );
  });

  it("get a list of more than two thousand at once", async () => {
    const group = await world.group();
    const uids = Array.from({ length: 2_100 }, () => randomIds.newUid(group)).sort();
    await world.write(async (tx) => {
      for (const uid of uids) await tx.groups.insert(groupRow(uid));
    });
    const listed = await items("iam.Groups.List", { uidp: { descendantsOf: group } });
    assert.deepEqual(
      listed.map(({ id }) => id),
      uids,
    );
  });
});

describe("identities", () => {
  const create = (parentId: string, identity: object) => owner.answer("iam.Identities.Create", { parentId, identity });

  it("may have any text for keys", async () => {
    const keys = { issuer: "https://issuer.example", subject: "s", issuerKeys: "keys" };
    const { id } = await create(world.child, { name: "static", static: keys });
    const [identity] = (await items("iam.Identities.List", { id })) as readonly [{ readonly static: Plain }];
    assert.equal(identity.static.issuerKeys, "keys");
  });

  it("of two groups may have the issuer and subject in common", async () => {
    const match = claimMatch();
    const [one, other] = [world.child, world.grandchild].map((group) =>
      create(group, { name: "ci", claimMatch: match }),
    );
    assert.notEqual((await one)?.id, (await other)?.id);
  });
});

describe("times", () => {
  it("are RFC 3339 over REST, and the same instant over gRPC", async () => {
    const sent = { group: world.root, role: viewer, ttl: { seconds: 3_600 } };
    const invite = await owner.answer("iam.GroupInvites.Create", sent);
    assert.match(String(invite.code), /^[\w+/=-]+$/);
    const { seconds, nanos } = invite.expiration as { readonly seconds: string; readonly nanos: number };
    const instant = new Date(Number(seconds) * 1_000 + nanos / 1e6).toISOString();
    const paths = { v1: `/../v1/group_invites?id=${invite.id}`, v2beta1: `/groupInvites/${invite.id}` };
    const { json: list } = await world.owner.rest("GET", paths.v1);
    const { json: one } = await world.owner.rest("GET", paths.v2beta1);
    assert.equal((list as { readonly items: readonly Plain[] }).items[0]?.expiration, instant);
    assert.equal(one?.expirationTime, instant);
  });
});
