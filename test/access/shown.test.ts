// What answers of AccessService show of people, groups and roles, in cases that random worlds seldom have.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { builtinRoleUid, personUid } from "../../src/kernel/ids.js";
import type { Principal } from "../../src/kernel/principal.js";
import { groupMappingKind } from "../../src/store/iam/group-mappings.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { principalOf } from "../support/in-process.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../support/rows.js";
import { type OpenedPlatform, openPlatform } from "./platform.js";

const [owner, viewer] = ["owner", "viewer"].map(builtinRoleUid) as [string, string];
const root = rootUid(0xa);
const team = childUid(root, 1);
const other = rootUid(0xb);
const provider = childUid(root, 0x10);
const asker = principalOf(personUid("https://l.example", "asker"));
const person = personUid("https://l.example", "person");
const member = personUid("https://l.example", "member");
const robot = childUid(root, 0x20);

let platform: OpenedPlatform;
// biome-ignore lint/suspicious/noExplicitAny: several messages
const ask = async (who: Principal, method: string, request: object): Promise<any> =>
  platform.call(`/${AccessService.typeName}/${method}`, who, request);

before(async () => {
  platform = await openPlatform();
  await platform.store.write(async (tx) => {
    for (const [uid, name] of [
      [root, "acme"],
      [team, "secret-team"],
      [other, "bees"],
    ] as const)
      await tx.table(groupKind).insert(groupRow(uid, { name }));
    for (const uid of [asker.identityUid, person])
      await tx.table(identityKind).insert(identityRow(uid, { name: "somebody" }));
    await tx.table(identityProviderKind).insert({
      ...{ uid: provider, groupUid: root, name: "provider", description: "", defaultRole: viewer },
      oidc: { issuer: "https://acme.example", clientId: "acme" },
      lacksDefaultRole: false,
      sealedSecret: "",
      scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" },
      createTimeMs: 1_000,
      updateTimeMs: 1_000,
    });
    await tx.table(identityKind).insert(identityRow(member, { name: "member", providerUid: provider }));
    const hidden = childUid(root, 0x60);
    await tx
      .table(roleKind)
      .insert(roleRow(hidden, { groupUid: root, name: "hidden", capabilities: buildCapabilitySet(["repo.delete"]) }));
    const repoOnly = childUid(root, 0x61);
    await tx
      .table(roleKind)
      .insert(roleRow(repoOnly, { groupUid: root, name: "repos", capabilities: buildCapabilitySet(["repo.list"]) }));
    const auditor = childUid(root, 0x62);
    const audits = ["role_bindings.list", "identity_providers.list"];
    await tx
      .table(roleKind)
      .insert(roleRow(auditor, { groupUid: root, name: "auditor", capabilities: buildCapabilitySet(audits) }));
    await tx.table(groupMappingKind).insert({
      uid: childUid(provider, 0x30),
      ...{ providerUid: provider, externalGroupId: "x", scope: root, roleUid: hidden },
      createdBy: null,
      createTimeMs: 1_000,
    });
    let n = 0x7000;
    const bind = (identity: string, role: string, at: string, values: object = {}) =>
      tx.table(roleBindingKind).insert(bindingRow(childUid(at, n++), identity, role, values));
    await bind(asker.identityUid, owner, root, { automatic: true });
    await bind(person, viewer, root, { accepted: true });
    await bind(person, viewer, team);
    await bind(member, viewer, root, { accepted: true });
    for (const [uid, role] of [
      [robot, repoOnly],
      [childUid(root, 0x21), auditor],
    ] as const) {
      await tx.table(identityKind).insert(identityRow(uid, { name: "robot" }));
      await bind(uid, role, root);
    }
  });
});
after(() => platform.close());

test("ListAccess of a group knows a person who has joined above it, as Check does there", async () => {
  const check = await ask(asker, "Check", { identity: person, actions: ["groups.list"], resource: team });
  const whole = await ask(asker, "ListAccess", { identity: person });
  const inTeam = await ask(asker, "ListAccess", { identity: person, group: team });
  assert.deepEqual([check.unconfirmed, whole.unconfirmed, inTeam.unconfirmed], [false, false, false]);
});

test("the caller does not learn the names of groups that it may not list by a limited token", async () => {
  const limited = { ...principalOf(robot), limit: { scope: [team] } };
  const own = await ask(limited, "ListAccess", {});
  const explained = await ask(limited, "Explain", { actions: ["repo.list"], resource: team });
  assert.deepEqual(
    [own, explained].map(({ grants }) => grants[0]?.group.name),
    ["", ""],
  );
});

test("Explain is partial where it leaves out a mapping because of its role", async () => {
  const auditor = principalOf(childUid(root, 0x21));
  const { grants, partial } = await ask(auditor, "Explain", {
    identity: member,
    actions: ["repo.delete"],
    resource: root,
  });
  assert.equal(grants.length, 0);
  assert.equal(partial, true);
});

test("SearchNames below a group does not find the group itself", async () => {
  const { resources } = await ask(asker, "SearchNames", { prefix: "acme", group: root });
  assert.deepEqual(
    resources.map((one: { uid: string }) => one.uid),
    [],
  );
});
