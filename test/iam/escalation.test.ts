// No caller may cause an identity to hold, or become able to assume, rights that the caller lacks.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { getOption, hasOption } from "@bufbuild/protobuf";
import {
  CapabilitySchema,
  name as capabilityName,
  internal_only,
} from "#gen/chainguard/capabilities/capabilities_pb.js";
import { builtinRoles } from "../../src/iam/roles/builtin-roles.js";
import { builtinIdentityUid, builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { permissionDenied } from "../contract/expectations.js";
import type { RestResponse } from "../contract/rest.js";
import { identityRow } from "../support/rows.js";
import { claimMatch, type IamWorld, type Somebody, startIamWorld } from "./iam-world.js";
import { rolesOf1_7 } from "./roles-of-1-7.js";

const [viewer, editor, owner] = ["viewer", "editor", "owner"].map(builtinRoleUid) as [string, string, string];
const advisor = builtinRoleUid("advisories.admin");
const availableRole = "roleUid: roleUid must be a built-in role or one of the group or above it";
const knownIdentity = "identityUid: identityUid must be a person or an identity of the organisation";
const servicePrincipal = { relation: 4, relationship: { servicePrincipal: "SERVICE_PRINCIPAL_INGESTER" } };

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const lacks = (group: string) => permissionDenied(`granting rights at ${group} that the caller lacks there`);
const uidFrom = async (response: Promise<RestResponse>): Promise<string> => {
  const { status, json, text } = await response;
  assert.equal(status, 200, text);
  return String(json?.uid);
};
const bindAs = (who: Somebody, group: string, roleUid: string, identityUid: string = personUid("i", "s")) =>
  who.rest("POST", `/roleBindings/${group}`, { identityUid, roleUid });
const provider = (defaultRole: string) => ({
  name: "login",
  defaultRole,
  oidc: { issuer: "https://login.example", clientId: "id", clientSecret: "secret" },
});
const binder = ["role_bindings.create", "role_bindings.update", "role_bindings.list", "groups.list"];

/** What a caller with some rights tries to give away; `deny` is what it lacks, `allow` what it has. */
interface Rule {
  readonly name: string;
  /** Who tries: the dotted names of what it holds at the root. */
  readonly holds: readonly string[];
  /** Sends the call with a role, an identity or a provider that gives more, or no more, than the caller holds. */
  readonly attempt: (who: Somebody, more: boolean) => Promise<RestResponse>;
}

// A role that holds what a binder holds, or what it lacks besides.
const roleOf = (more: boolean, holds: readonly string[] = binder) =>
  world.role(more ? [...holds, "repo.delete"] : [...holds]);

const rules: readonly Rule[] = [
  {
    name: "creating a binding",
    holds: binder,
    attempt: async (who, more) => bindAs(who, world.root, await roleOf(more)),
  },
  {
    name: "updating the role of a binding",
    holds: binder,
    attempt: async (who, more) => {
      const uid = await uidFrom(
        bindAs(world.owner, world.root, await roleOf(false), personUid("i", randomIds.newId())),
      );
      return who.rest("PATCH", `/roleBindings/${uid}`, { roleUid: await roleOf(more) });
    },
  },
  {
    name: "updating the identity of a binding",
    holds: binder,
    attempt: async (who, more) => {
      const uid = await uidFrom(bindAs(world.owner, world.root, await roleOf(more), personUid("i", randomIds.newId())));
      return who.rest("PATCH", `/roleBindings/${uid}`, { identityUid: who.uid });
    },
  },
  {
    name: "creating bindings in a batch",
    holds: binder,
    attempt: async (who, more) => {
      const items = [await roleOf(false), await roleOf(more)];
      const requests = items.map((roleUid) => ({ roleBinding: { identityUid: personUid("i", "s"), roleUid } }));
      return who.rest("POST", "/roleBindings:batchCreate", { parent: world.root, requests });
    },
  },
  {
    name: "creating a role",
    holds: ["roles.create", "groups.list"],
    attempt: (who, more) => {
      const capabilities = more ? ["CAP_IAM_GROUPS_LIST", "CAP_REPO_DELETE"] : ["CAP_IAM_GROUPS_LIST"];
      return who.rest("POST", `/roles/${world.root}`, { name: "custom", capabilities });
    },
  },
  {
    name: "updating a role",
    holds: ["roles.update", "groups.list"],
    attempt: async (who, more) => {
      const capabilities = more ? ["CAP_IAM_GROUPS_LIST", "CAP_REPO_DELETE"] : ["CAP_IAM_GROUPS_LIST"];
      return who.rest("PATCH", `/roles/${await world.role(["roles.list"])}`, { capabilities });
    },
  },
  {
    name: "creating an invite",
    holds: [...binder, "group_invites.create"],
    attempt: async (who, more) =>
      who.rest("POST", `/groupInvites/${world.root}`, { roleUid: await roleOf(more), ttl: "60s" }),
  },
  {
    name: "updating an invite",
    holds: [...binder, "group_invites.create"],
    attempt: async (who, more) => {
      const invite = { roleUid: await roleOf(more), ttl: "60s", email: "a@b.example" };
      // A caller with the right creates the invite first.
      const giver = await world.caller([...binder, "group_invites.create", "repo.delete"]);
      const uid = await uidFrom(giver.rest("POST", `/groupInvites/${world.root}`, invite));
      return who.rest("PATCH", `/groupInvites/${uid}`, { email: "mine@b.example" });
    },
  },
  {
    name: "creating a provider with a default role",
    holds: [...binder, "identity_providers.create"],
    attempt: async (who, more) => who.rest("POST", `/identityProviders/${world.root}`, provider(await roleOf(more))),
  },
  {
    name: "updating the default role of a provider",
    holds: [...binder, "identity_providers.update"],
    attempt: async (who, more) => {
      const uid = await uidFrom(world.owner.rest("POST", `/identityProviders/${world.root}`, provider(viewer)));
      return who.rest("PATCH", `/identityProviders/${uid}`, { defaultRole: await roleOf(more) });
    },
  },
  {
    name: "mapping a directory's group to a role",
    holds: [...binder, "identity_providers.create"],
    attempt: async (who, more) => {
      const uid = await uidFrom(world.owner.rest("POST", `/identityProviders/${world.root}`, provider(viewer)));
      const mapping = { externalGroupId: "x", roleUid: await roleOf(more), scope: world.root };
      return who.rest("POST", `/externalGroupRoleMappings/${uid}`, mapping);
    },
  },
  ...["claimMatch", "awsIdentity"].map((kind) => ({
    name: `changing an identity to be assumed by another ${kind}`,
    holds: ["identity.update", ...binder],
    attempt: async (who: Somebody, more: boolean) => {
      const identity = await world.identity();
      await uidFrom(
        bindAs(
          await world.createBound("owner"),
          world.root,
          await world.role(more ? ["repo.delete"] : ["groups.list"]),
          identity,
        ),
      );
      const awsIdentity = { awsAccount: "123456789012", arn: "arn:aws:iam::1:role/x", userId: "u" };
      const value = kind === "claimMatch" ? claimMatch() : awsIdentity;
      return who.rest("PATCH", `/identities/${identity}`, { [kind]: value });
    },
  })),
  {
    name: "replacing the keys of an identity",
    holds: ["identity.update", ...binder],
    attempt: async (who, more) => {
      const staticKeys = { issuer: "https://keys.example", subject: "s", issuerKeys: "keys" };
      const identity = await uidFrom(
        world.owner.rest("POST", `/identities/${world.root}`, { name: "keys", staticKeys }),
      );
      await uidFrom(
        bindAs(world.owner, world.root, await world.role(more ? ["repo.delete"] : ["groups.list"]), identity),
      );
      return who.rest("PATCH", `/identities/${identity}?updateMask=staticKeys.issuerKeys`, {
        staticKeys: { issuerKeys: "mine" },
      });
    },
  },
  {
    name: "changing who an identity with rights elsewhere is, by a part of its claims",
    holds: ["identity.update", ...binder],
    attempt: async (who, more) => {
      const identity = await world.identity();
      await uidFrom(
        bindAs(world.owner, world.grandchild, await world.role(more ? ["repo.delete"] : ["groups.list"]), identity),
      );
      return who.rest("PATCH", `/identities/${identity}?updateMask=claimMatch.subject`, {
        claimMatch: { subject: "mine" },
      });
    },
  },
  {
    name: "letting a component of the service act as an identity",
    holds: ["account_associations.create", "account_associations.update", ...binder],
    attempt: async (who, more) => {
      const group = await world.group();
      const principal = randomIds.newUid(group);
      await world.write((tx) => tx.table(identityKind).insert(identityRow(principal, servicePrincipal)));
      await uidFrom(
        bindAs(world.owner, world.root, await world.role(more ? ["repo.delete"] : ["groups.list"]), principal),
      );
      const body = { name: "accounts", chainguard: { serviceBindings: { INGESTER: principal } } };
      return who.rest("POST", `/accountAssociations/${group}`, body);
    },
  },
];

describe("callers grant only rights that they hold", () => {
  for (const { name, holds, attempt } of rules) {
    it(`${name} with no more than one's own rights works`, async () => {
      const response = await attempt(await world.caller(holds), false);
      assert.equal(response.status, 200, response.text);
    });

    it(`${name} with more is rejected, and changes nothing`, async () => {
      const who = await world.caller(holds);
      const { outcome } = await attempt(who, true);
      assert.equal(outcome.code, "PERMISSION_DENIED");
      assert.match("message" in outcome ? outcome.message : "", /^Permission denied: granting rights at /);
      const { rest } = world.owner;
      const mine = await rest("GET", `/roleBindings?identity=${who.uid}`);
      assert.equal(mine.json?.totalCount, "1", "the caller gained nothing");
    });
  }

  it("changing who logs in is for owners alone, whatever the default role", async () => {
    const uid = await uidFrom(world.owner.rest("POST", `/identityProviders/${world.root}`, provider(viewer)));
    const who = await world.caller([...binder, "identity_providers.update", "identity_providers.list"]);
    const changes = [
      { oidc: { issuer: "https://mine.example", clientId: "id", clientSecret: "s" } },
      { oidc: { issuer: "https://login.example", clientId: "mine", clientSecret: "s" } },
    ];
    for (const change of changes) {
      assert.deepEqual((await who.rest("PATCH", `/identityProviders/${uid}`, change)).outcome, lacks(world.root));
    }
    const masked = await who.rest("PATCH", `/identityProviders/${uid}?updateMask=oidc.clientSecret`, changes[0]);
    assert.deepEqual(masked.outcome, lacks(world.root));
    assert.equal((await who.rest("PATCH", `/identityProviders/${uid}`, { description: "new" })).status, 200);
    assert.equal((await world.owner.rest("PATCH", `/identityProviders/${uid}`, changes[0])).status, 200);
  });

  it("a role bound in one's own group is not a way to rights above it", async () => {
    const who = await world.caller(["roles.update", "roles.create", ...binder], world.child);
    const above = await world.role(["groups.list"]);
    const change = { capabilities: ["CAP_IAM_GROUPS_LIST"] };
    assert.deepEqual(
      (await who.rest("PATCH", `/roles/${above}`, change)).outcome,
      permissionDenied(`roles.update at ${above}`),
    );
    const own = await world.role(["groups.list"], world.child);
    await uidFrom(bindAs(world.owner, world.grandchild, own));
    const more = { capabilities: ["CAP_IAM_GROUPS_LIST", "CAP_REPO_DELETE"] };
    assert.deepEqual((await who.rest("PATCH", `/roles/${own}`, more)).outcome, lacks(world.child));
    assert.equal((await who.rest("PATCH", `/roles/${own}`, change)).status, 200);
  });

  it("rights in a group are no rights beside or above it", async () => {
    const who = await world.createBound("owner", world.child);
    const sibling = await world.group();
    for (const group of [world.root, sibling, world.foreign]) {
      assert.deepEqual(
        (await bindAs(who, group, viewer)).outcome,
        permissionDenied(`role_bindings.create at ${group}`),
      );
    }
    assert.equal((await bindAs(who, world.grandchild, owner)).status, 200);
  });

  it("built-in roles are given by rank alone", async () => {
    const limited = await world.createBound("limited_owner");
    const rows: readonly [Somebody, string, boolean][] = [
      [world.owner, owner, true],
      [world.owner, editor, true],
      [limited, editor, false],
      [limited, owner, false],
      [limited, builtinRoleUid("registry.pull"), true],
    ];
    for (const [who, role, allowed] of rows) {
      const { outcome } = await bindAs(who, world.child, role);
      assert.deepEqual(outcome.code === "OK" ? true : outcome, allowed ? true : lacks(world.child));
    }
  });
});

// Built-in roles gain capabilities with a new version. A custom role stays as it is, so its holders must not need what the
// built-in one has gained.
describe("custom roles with what built-in roles had in version 1.7", () => {
  it("have all of those and nothing that was added since", () => {
    for (const [name, capabilities] of Object.entries(rolesOf1_7)) {
      const gained = (builtinRoles[name] ?? []).filter((one) => !capabilities.includes(one));
      assert.deepEqual(
        capabilities.filter((one) => !builtinRoles[name]?.includes(one)),
        [],
      );
      const reserved = CapabilitySchema.values.filter((value) => hasOption(value, internal_only));
      assert.deepEqual(
        reserved.filter((value) => gained.includes(getOption(value, capabilityName))),
        [],
        "who grants the role need not hold what it has gained, so nothing of it is reserved",
      );
    }
    assert.equal(rolesOf1_7.owner?.length, 138);
    assert.equal(builtinRoles.owner?.length, 152);
  });

  it("make an owner: it grants every role that owners grant, in every way", async () => {
    const who = await world.caller(rolesOf1_7.owner ?? []);
    const grantable = Object.keys(rolesOf1_7);
    assert.ok(grantable.includes("owner") && grantable.includes("advisories.admin"));
    for (const name of grantable) {
      const roleUid = builtinRoleUid(name);
      await uidFrom(bindAs(who, world.root, roleUid, personUid("i", randomIds.newId())));
      await uidFrom(who.rest("POST", `/groupInvites/${world.root}`, { roleUid, ttl: "60s" }));
    }
    await uidFrom(who.rest("POST", `/identityProviders/${world.root}`, provider(owner)));
    const mapped = await uidFrom(who.rest("POST", `/identityProviders/${world.root}`, provider(viewer)));
    const mapping = { externalGroupId: "x", roleUid: owner, scope: world.root };
    await uidFrom(who.rest("POST", `/externalGroupRoleMappings/${mapped}`, mapping));
  });

  it("make an owner: it changes who logs in, and who assumes the identity of an owner", async () => {
    const who = await world.caller(rolesOf1_7.owner ?? []);
    const uid = await uidFrom(world.owner.rest("POST", `/identityProviders/${world.root}`, provider(owner)));
    const change = { oidc: { issuer: "https://mine.example", clientId: "id", clientSecret: "s" } };
    assert.equal((await who.rest("PATCH", `/identityProviders/${uid}`, change)).status, 200);
    const identity = await world.identity();
    await uidFrom(bindAs(world.owner, world.root, owner, identity));
    assert.equal((await who.rest("PATCH", `/identities/${identity}`, { claimMatch: claimMatch() })).status, 200);
  });

  it("grant the built-in role, with one capability less not", async () => {
    for (const name of ["owner", "editor", "viewer", "console_viewer", "limited_owner", "guardener.admin"]) {
      const [dropped = "", ...rest] = (rolesOf1_7[name] ?? []).filter((one) => !binder.includes(one));
      const [who, almost] = [
        await world.caller([...binder, dropped, ...rest]),
        await world.caller([...binder, ...rest]),
      ];
      const grant = (by: Somebody) => bindAs(by, world.root, builtinRoleUid(name), personUid("i", randomIds.newId()));
      assert.equal((await grant(who)).status, 200, name);
      assert.deepEqual((await grant(almost)).outcome, lacks(world.root), name);
    }
  });

  it("cannot be given what was added since by their holders", async () => {
    const who = await world.caller(rolesOf1_7.owner ?? []);
    const role = { name: "new", capabilities: ["CAP_BILLING_MANAGE"] };
    assert.deepEqual((await who.rest("POST", `/roles/${world.root}`, role)).outcome, lacks(world.root));
    assert.equal((await world.owner.rest("POST", `/roles/${world.root}`, role)).status, 200);
    const sandbox = await bindAs(who, world.root, builtinRoleUid("sandbox.identity.user"));
    assert.deepEqual(sandbox.outcome, lacks(world.root), "a role that did not exist");
  });
});

describe("what the owner role lacks", () => {
  it("advisories roles are for owners to hand out, on every way", async () => {
    const ways: readonly ((who: Somebody) => Promise<RestResponse>)[] = [
      (who) => bindAs(who, world.root, advisor, personUid("i", randomIds.newId())),
      (who) => who.rest("POST", `/groupInvites/${world.root}`, { roleUid: advisor, ttl: "60s" }),
      (who) => who.rest("POST", `/identityProviders/${world.root}`, provider(advisor)),
    ];
    const almost = await world.caller([...binder, "group_invites.create", "identity_providers.create"]);
    for (const way of ways) {
      assert.equal((await way(world.owner)).status, 200);
      assert.deepEqual((await way(almost)).outcome, lacks(world.root));
    }
  });

  it("a custom role with such rights is not", async () => {
    const role = { name: "adv", capabilities: ["CAP_ADVISORIES_CREATE", "CAP_IAM_GROUPS_LIST"] };
    assert.deepEqual((await world.owner.rest("POST", `/roles/${world.root}`, role)).outcome, lacks(world.root));
  });

  it("internal capabilities are for holders of internal alone", async () => {
    const internal = await world.caller(["roles.create", "internal", "groups.list"]);
    const outsider = await world.caller(["roles.create", "groups.list"]);
    const role = { name: "inside", capabilities: ["CAP_INTERNAL"] };
    assert.deepEqual((await world.owner.rest("POST", `/roles/${world.root}`, role)).outcome, lacks(world.root));
    assert.deepEqual((await outsider.rest("POST", `/roles/${world.root}`, role)).outcome, lacks(world.root));
    assert.equal((await internal.rest("POST", `/roles/${world.root}`, role)).status, 200);
  });

  it("what is reserved for the operator is granted by holders of internal alone, even where others hold it", async () => {
    const reserved = ["roles.create", "repo.internal.admin", "groups.list"];
    const [holder, internal] = [await world.caller(reserved), await world.caller([...reserved, "internal"])];
    const role = { name: "reserved", capabilities: ["CAP_REPO_INTERNAL_ADMIN"] };
    assert.deepEqual((await holder.rest("POST", `/roles/${world.root}`, role)).outcome, lacks(world.root));
    assert.equal((await internal.rest("POST", `/roles/${world.root}`, role)).status, 200);
  });
});

describe("what is of another organisation", () => {
  it("cannot be bound, with the same error as an unknown one", async () => {
    const [identity, role] = [await world.identity(world.foreign), await world.role(["groups.list"], world.foreign)];
    const [noIdentity, noRole] = [randomIds.newUid(world.foreign), randomIds.newUid(world.foreign)];
    const cases: readonly [path: string, body: (uid: string) => object, there: string, not: string, text: string][] = [
      [
        `/roleBindings/${world.root}`,
        (uid) => ({ identityUid: uid, roleUid: viewer }),
        identity,
        noIdentity,
        knownIdentity,
      ],
      [
        `/roleBindings/${world.root}`,
        (uid) => ({ identityUid: world.owner.uid, roleUid: uid }),
        role,
        noRole,
        availableRole,
      ],
      [`/groupInvites/${world.root}`, (uid) => ({ roleUid: uid, ttl: "60s" }), role, noRole, availableRole],
      [
        `/identityProviders/${world.root}`,
        (uid) => provider(uid),
        role,
        noRole,
        availableRole.replaceAll("roleUid", "defaultRole"),
      ],
    ];
    for (const [path, body, there, not, text] of cases) {
      const [one, other] = [
        await world.owner.rest("POST", path, body(there)),
        await world.owner.rest("POST", path, body(not)),
      ];
      assert.equal((one.json as { message: string }).message, `Invalid argument: ${text}`);
      assert.equal(one.text, other.text);
    }
  });

  it("nor can roles of a group beside or below be used", async () => {
    const below = await world.role(["groups.list"], world.grandchild);
    const { json } = await bindAs(world.owner, world.child, below);
    assert.equal(json?.message, `Invalid argument: ${availableRole}`);
    assert.equal((await bindAs(world.owner, world.grandchild, below)).status, 200);
  });

  it("people can be bound before they ever come, identities of groups above too", async () => {
    const person = personUid("https://issuer.example", "not yet here");
    assert.equal((await bindAs(world.owner, world.grandchild, viewer, person)).status, 200);
    assert.equal((await bindAs(world.owner, world.grandchild, viewer, await world.identity(world.root))).status, 200);
    const { json } = await bindAs(world.owner, world.root, viewer, randomIds.newUid(world.root));
    assert.equal(json?.message, `Invalid argument: ${knownIdentity}`);
  });

  it("the owner created on the host does not show its organisation to those who bind it", async () => {
    const { text, status } = await bindAs(
      world.owner,
      world.root,
      viewer,
      builtinIdentityUid(`owner@${world.foreign}`),
    );
    assert.deepEqual([status, text.includes("theirs")], [200, false]);
  });
});
