// Puts one of every kind into a group, straight into the store.
import { createHash } from "node:crypto";
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { parentOf } from "../../src/kernel/uidp.js";
import { advisoryKind } from "../../src/store/advisories/advisories.js";
import { accountAssociationKind } from "../../src/store/iam/account-associations.js";
import { groupInviteKind } from "../../src/store/iam/group-invites.js";
import { groupMappingKind } from "../../src/store/iam/group-mappings.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { scimGroupKind } from "../../src/store/iam/scim-groups.js";
import { scimUserKind } from "../../src/store/iam/scim-users.js";
import { subscriptionKind } from "../../src/store/iam/subscriptions.js";
import { overlayBindingKind } from "../../src/store/registry/overlay-bindings.js";
import { overlayKind } from "../../src/store/registry/overlays.js";
import type { Tx } from "../../src/store/transaction.js";
import { createAdvisory, createRepo, createTag } from "../contract/registry-things.js";
import {
  bindingRow,
  groupRow,
  identityRow,
  overlayBindingRow,
  overlayRow,
  roleRow,
  scimGroupRow,
  scimUserRow,
} from "../support/rows.js";

/** The uids of one of every kind, all of one group. */
export interface Placed {
  readonly group: string;
  readonly identity: string;
  readonly role: string;
  readonly roleBinding: string;
  readonly identityProvider: string;
  readonly externalGroupRoleMapping: string;
  readonly scimUser: string;
  readonly scimGroup: string;
  readonly accountAssociation: string;
  readonly groupInvite: string;
  readonly repo: string;
  readonly tag: string;
  readonly overlay: string;
  readonly overlayBinding: string;
  readonly advisory: string;
  readonly advisoryEvent: string;
  readonly subscription: string;
}

/** What to write into the text fields. */
export interface Texts {
  /** For names, which allow few characters. */
  readonly name: string;
  /** For everything else. */
  readonly text: string;
  /** For the times, in epoch milliseconds. */
  readonly timeMs?: number;
}

const readGroups = buildCapabilitySet(["groups.list"]);

/** Adds one of every kind to a group that exists already. */
export async function populate(tx: Tx, group: string, { name, text, timeMs = 1_000 }: Texts): Promise<Placed> {
  const times = { createTimeMs: timeMs, updateTimeMs: timeMs };
  const labels = { name, description: text, ...times };
  const newUid = (parent = group) => randomIds.newUid(parent);
  const repo = await createRepo(tx, group, text, timeMs);
  const placed: Placed = {
    group,
    identity: newUid(),
    role: newUid(),
    roleBinding: newUid(),
    identityProvider: newUid(),
    externalGroupRoleMapping: "",
    scimUser: "",
    scimGroup: "",
    accountAssociation: group,
    groupInvite: newUid(),
    repo,
    tag: await createTag(tx, repo, text, timeMs),
    overlay: newUid(),
    overlayBinding: newUid(repo),
    advisory: await createAdvisory(tx, group, text, timeMs),
    advisoryEvent: "",
    subscription: newUid(),
  };
  const { identity, role, identityProvider } = placed;
  const externalGroupRoleMapping = newUid(identityProvider);
  const claimMatch = { issuer: "https://issuer.example", subject: text, audience: text, claims: { [text]: text } };
  await tx.table(identityKind).insert(
    identityRow(identity, {
      ...labels,
      company: text,
      relation: 1,
      relationship: { claimMatch },
      email: `${text}@x`,
    }),
  );
  await tx.table(roleKind).insert(roleRow(role, { ...labels, groupUid: group, capabilities: readGroups }));
  await tx.table(roleBindingKind).insert(bindingRow(placed.roleBinding, identity, role, times));
  await tx.table(identityProviderKind).insert({
    uid: identityProvider,
    groupUid: group,
    ...labels,
    defaultRole: role,
    oidc: { issuer: "https://login.example", clientId: text, groupsClaim: text, additionalScopes: [text] },
    lacksDefaultRole: false,
    sealedSecret: "",
    scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "e" },
  });
  await tx.table(groupMappingKind).insert({
    uid: externalGroupRoleMapping,
    providerUid: identityProvider,
    externalGroupId: text,
    roleUid: role,
    scope: group,
    createdBy: null,
    createTimeMs: timeMs,
  });
  const scimUser = newUid(identityProvider);
  const person = { userName: text, externalId: text, displayName: text, attributes: { nickName: text } };
  await tx.table(scimUserKind).insert(scimUserRow(scimUser, { ...person, rejectTimeMs: timeMs, ...times }));
  const scimGroup = newUid(identityProvider);
  await tx.table(scimGroupKind).insert(scimGroupRow(scimGroup, { displayName: text, externalId: text, ...times }));
  await tx.scimMembers.add({ groupUid: scimGroup, memberSet: 1, userUid: scimUser });
  await tx.scimWork.add(identityProvider, "group", scimGroup);
  await tx.table(accountAssociationKind).insert({
    uid: group,
    parentUid: parentOf(group) ?? null,
    ...labels,
    accounts: {
      google: { projectId: text, projectNumber: "1" },
      azure: { tenantId: text, clientIds: { [text]: text } },
    },
  });
  await tx.table(groupInviteKind).insert({
    uid: placed.groupInvite,
    groupUid: group,
    roleUid: role,
    email: `${text}@x.example`,
    singleUse: false,
    createdBy: "",
    keyId: createHash("sha256").update(placed.groupInvite).digest("hex").slice(0, 16),
    codeHash: "",
    expireTimeMs: timeMs + 1_000_000_000_000,
    ...times,
  });
  await tx.terms.accept({ groupUid: group, docId: text, acceptedBy: identity, createTimeMs: timeMs });
  await tx.table(subscriptionKind).insert({
    uid: placed.subscription,
    groupUid: group,
    sink: `https://sink.example/${encodeURIComponent(text)}`,
    ...times,
  });
  const config = { contents: { packages: [text] }, environment: { [text]: text } };
  await tx.table(overlayKind).insert(overlayRow(placed.overlay, { name, config, ...times }));
  const selector = { tags: [text], ...times };
  await tx.table(overlayBindingKind).insert(overlayBindingRow(placed.overlayBinding, placed.overlay, selector));
  await tx.registry.putDeployment({ repoUid: repo, charts: [{ repo: text }], ...times });
  const [event] = await tx.table(advisoryKind).listEvents([placed.advisory]);
  return { ...placed, externalGroupRoleMapping, scimUser, scimGroup, advisoryEvent: event?.uid ?? "" };
}

/** Adds a group and one of every kind to it. */
export async function insertGroup(tx: Tx, uid: string, texts: Texts): Promise<Placed> {
  const { name, text, timeMs = 1_000 } = texts;
  await tx
    .table(groupKind)
    .insert(groupRow(uid, { name, description: text, createTimeMs: timeMs, updateTimeMs: timeMs }));
  return populate(tx, uid, texts);
}

/** The uid of the built-in viewer. */
export const viewer = builtinRoleUid("viewer");
