// Updates as the Terraform provider sends them: in version 2beta1 by the mask `*`,
// with only those fields that its configuration knows. What the service or its
// operator sets must outlive that.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { type IamWorld, startIamWorld } from "../iam/iam-world.js";
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

const iam = "iam.v2beta1";
const viewer = builtinRoleUid("viewer");
const claimMatch = { issuer: "https://issuer.example", subject: "build" };
const oidc = { issuer: "https://login.example", clientId: "platform", clientSecret: "hush" };

describe("updates by the mask *", () => {
  const all = { updateMask: { paths: ["*"] } };

  it("leave a group verified, of its kind and in its status, and keep its times", async () => {
    const { group } = await world.harness.organisation("verified.example");
    const context = { ids: randomIds, nowMs: Date.now() };
    await world.write((tx) => verifyGroup(tx, group, "ORG_KIND_CUSTOMER", context));
    const person = await world.createBound("owner", group);
    const client = connectPublished(world.url, person.token);
    const { updateTime, ...before } = await client.answer(`${iam}.GroupsService.GetGroup`, { uid: group });
    assert.deepEqual([before.verified, before.kind], [true, "ORG_KIND_CUSTOMER"]);
    const change = { group: { uid: group, name: before.name, description: "changed" }, ...all };
    const { updateTime: later, ...changed } = await client.answer(`${iam}.GroupsService.UpdateGroup`, change);
    client.close();
    assert.deepEqual(changed, { ...before, description: "changed" });
    assert.notDeepEqual(later, updateTime);
  });

  it("turn a claim match into an AWS identity", async () => {
    const request = { parent: world.root, identity: { name: "ci", description: "d", claimMatch } };
    const created = await owner.answer(`${iam}.IdentitiesService.CreateIdentity`, request);
    const awsIdentity = {
      awsAccount: "123456789012",
      arn: "arn:aws:iam::123456789012:role/ci",
      userIdPattern: "AROA.*",
    };
    const identity = { uid: created.uid, name: "ci2", awsIdentity };
    const changed = await owner.answer(`${iam}.IdentitiesService.UpdateIdentity`, { identity, ...all });
    assert.deepEqual([changed.name, changed.description ?? ""], ["ci2", ""]);
    assert.deepEqual([changed.claimMatch ?? null, changed.awsIdentity], [null, awsIdentity]);
    assert.deepEqual(changed.createTime, created.createTime);
  });

  it("replace the accounts of an account association as a whole", async () => {
    const associations = `${iam}.AccountAssociationsService`;
    const service = {
      parent: world.child,
      identity: { name: "ingester", servicePrincipal: "SERVICE_PRINCIPAL_INGESTER" },
    };
    const { uid } = await owner.answer(`${iam}.IdentitiesService.CreateIdentity`, service);
    const chainguard = { serviceBindings: { INGESTER: uid } };
    const first = { name: "cloud", description: "d", amazon: { account: "123456789012" }, chainguard };
    await owner.answer(`${associations}.CreateAccountAssociation`, { parent: world.child, accountAssociation: first });
    const accountAssociation = { uid: world.child, name: "cloud", google: { projectId: "p", projectNumber: "7" } };
    await owner.answer(`${associations}.UpdateAccountAssociation`, { accountAssociation, ...all });
    const { items } = await owner.answer("iam.GroupAccountAssociations.List", { group: world.child });
    const [{ group, createdAt, updatedAt, ...rest }] = items as readonly [Plain];
    assert.deepEqual(rest, { name: "cloud", google: accountAssociation.google });
    assert.equal(group, world.child);
  });

  it("keep the secret of an identity provider, and take a description away", async () => {
    const readSealed = (uid: unknown) =>
      world.write(async (tx) => (await tx.identityProviders.find(String(uid)))?.sealedSecret ?? "");
    const organisation = await world.harness.organisation("idp.example");
    const client = connectPublished(world.url, organisation.token);
    const identityProvider = { name: "login", description: "d", defaultRole: viewer, oidc };
    const service = `${iam}.IdentityProvidersService`;
    const made = await client.answer(`${service}.CreateIdentityProvider`, {
      parent: organisation.group,
      identityProvider,
    });
    const before = await readSealed(made.uid);
    const next = { uid: made.uid, name: "login2", defaultRole: viewer, oidc: { ...oidc, clientSecret: "" } };
    const changed = await client.answer(`${service}.UpdateIdentityProvider`, { identityProvider: next, ...all });
    client.close();
    assert.deepEqual(
      [changed.name, changed.description ?? "", (changed.oidc as Plain).clientSecret ?? ""],
      ["login2", "", ""],
    );
    assert.notEqual(await readSealed(made.uid), "");
    assert.equal(await readSealed(made.uid), before);
  });

  it("change identity and role of a binding, and the capabilities of a role", async () => {
    const [first, second] = [await world.identity(), await world.identity()];
    const bindings = `${iam}.RoleBindingsService`;
    const sent = { parent: world.root, roleBinding: { identityUid: first, roleUid: viewer } };
    const { uid } = await owner.answer(`${bindings}.CreateRoleBinding`, sent);
    const roleBinding = { uid, identityUid: second, roleUid: builtinRoleUid("editor") };
    const bound = await owner.answer(`${bindings}.UpdateRoleBinding`, { roleBinding, ...all });
    assert.deepEqual([(bound.identity as Plain).uid, (bound.role as Plain).name], [second, "editor"]);
    const made = await owner.answer("iam.Roles.Create", {
      ...{ parentId: world.root, role: { name: "r", description: "d", capabilities: ["groups.list"] } },
    });
    const role = { uid: made.id, name: "r", capabilities: ["CAP_IAM_ROLES_LIST", "CAP_IAM_GROUPS_LIST"] };
    await owner.answer(`${iam}.RolesService.UpdateRole`, { role, ...all });
    const { items } = await owner.answer("iam.Roles.List", { id: made.id });
    const [stored] = items as readonly Plain[];
    assert.deepEqual([stored?.description ?? "", stored?.capabilities], ["", ["groups.list", "roles.list"]]);
  });
});
