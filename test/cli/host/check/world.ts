// A database with rows of every kind, all of them as the service writes them.
import { join } from "node:path";
import { createSealer } from "../../../../src/audit/sealer.js";
import { formatSecretContext, noScim } from "../../../../src/iam/identity-providers/identity-provider.js";
import { openKeyRing } from "../../../../src/issuer/keys/key-ring.js";
import { type MasterKey, readMasterKey } from "../../../../src/issuer/keys/master-key.js";
import { createTickets } from "../../../../src/issuer/oauth/tickets.js";
import { createJobs } from "../../../../src/jobs/jobs.js";
import { type AdvisoryRow, advisoryKind } from "../../../../src/store/advisories/advisories.js";
import { accountAssociationKind } from "../../../../src/store/iam/account-associations.js";
import { groupInviteKind } from "../../../../src/store/iam/group-invites.js";
import { groupMappingKind } from "../../../../src/store/iam/group-mappings.js";
import { groupKind } from "../../../../src/store/iam/groups.js";
import { identityKind } from "../../../../src/store/iam/identities.js";
import { identityProviderKind } from "../../../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../../../src/store/iam/role-bindings.js";
import { roleKind } from "../../../../src/store/iam/roles.js";
import { scimGroupKind } from "../../../../src/store/iam/scim-groups.js";
import { scimUserKind } from "../../../../src/store/iam/scim-users.js";
import { subscriptionKind } from "../../../../src/store/iam/subscriptions.js";
import { overlayBindingKind } from "../../../../src/store/registry/overlay-bindings.js";
import { overlayKind } from "../../../../src/store/registry/overlays.js";
import { repoKind } from "../../../../src/store/registry/repos.js";
import { tagKind } from "../../../../src/store/registry/tags.js";
import type { Store } from "../../../../src/store/store.js";
import type { Tx } from "../../../../src/store/transaction.js";
import { auditRow } from "../../../audit/log-kit.js";
import { repoRow, tagRow } from "../../../store/registry-suite.js";
import {
  bindingRow,
  childUid,
  groupRow,
  identityRow,
  overlayBindingRow,
  overlayRow,
  roleRow,
  rootUid,
  scimGroupRow,
  scimUserRow,
} from "../../../support/rows.js";

const [root, other] = [rootUid(1), rootUid(2)];
const team = childUid(root, 0x10);
const squad = childUid(team, 0x11);
const repo = childUid(squad, 0x60);
const provider = childUid(root, 0x50);
const advisory = childUid(team, 0x70);
const role = childUid(root, 0x40);

/** The uids that faults name. */
export const uids = {
  ...{ root, other, team, squad, repo, provider, advisory, role },
  /** Of a person of the provider, and of a workload of the squad. */
  person: rootUid(0x31),
  /** Of people of the provider whom its directory has deactivated and deleted. */
  inactive: rootUid(0x33),
  former: rootUid(0x34),
  workload: childUid(squad, 0x32),
  binding: childUid(team, 0x41),
  mapping: childUid(provider, 0x51),
  /** The person of the directory that is linked with the person of the provider. */
  scimUser: childUid(provider, 0x52),
  /** A group of the directory, whose member this person is. */
  scimGroup: childUid(provider, 0x56),
  tag: childUid(repo, 0),
  overlay: childUid(team, 0x80),
  overlayBinding: childUid(repo, 0x81),
  /** In the form of a uid; no row has it. */
  gone: rootUid(0xdead),
} as const;

/** Fills an empty store. The master key is created in `directory`. */
export async function fillWorld(store: Store, directory: string): Promise<void> {
  const masterKey = readMasterKey(join(directory, "master.key"), true);
  const keys = await openKeyRing({ store, masterKey, clock: Date.now, tokenAlgorithm: "ES256" });
  await store.write(async (tx) => {
    await addGroups(tx);
    await addPeople(tx, masterKey);
    await addRegistry(tx);
    await addAdvisory(tx);
    await addSecrets(tx, masterKey);
    for (const uid of [root, root, other, ""]) await tx.audit.append(auditRow(uid));
  });
  const jobs = createJobs({ store, holder: "test", onProblem: () => {} });
  jobs.add(createSealer({ store, keys, clock: Date.now, onProblem: () => {} }));
  await jobs.runNow("audit-sealer");
}

async function addGroups(tx: Tx): Promise<void> {
  for (const uid of [root, other, team, squad])
    await tx.table(groupKind).insert(groupRow(uid, { name: `group ${uid.length}` }));
  const times = { createTimeMs: 1_000, updateTimeMs: 1_000 };
  const association = { name: "accounts", description: "", accounts: {}, ...times };
  await tx.table(accountAssociationKind).insert({ uid: root, parentUid: null, ...association });
  await tx.table(accountAssociationKind).insert({ uid: team, parentUid: root, ...association });
  await tx
    .table(subscriptionKind)
    .insert({ uid: childUid(team, 0x20), groupUid: team, sink: "https://sink.example", ...times });
  await tx.terms.accept({ groupUid: root, docId: "terms", acceptedBy: uids.gone, createTimeMs: 1_000 });
  await tx.accessRequests.put(team, uids.gone, 1_000);
}

async function addPeople(tx: Tx, masterKey: MasterKey): Promise<void> {
  const times = { createTimeMs: 1_000, updateTimeMs: 1_000 };
  await tx.table(roleKind).insert(roleRow(role, { groupUid: root }));
  await tx.table(roleKind).insert(roleRow(rootUid(0x42)));
  await tx.table(identityProviderKind).insert({
    ...{ uid: provider, groupUid: root, name: "idp", description: "", defaultRole: role, oidc: {} },
    lacksDefaultRole: false,
    sealedSecret: masterKey.seal(Buffer.from("secret"), formatSecretContext(provider)),
    ...{ scim: noScim, ...times },
  });
  await tx.table(identityKind).insert(identityRow(uids.person, { providerUid: provider }));
  await tx.table(identityKind).insert(identityRow(uids.workload));
  const deactivated = { providerUid: provider, deactivateTimeMs: 2_000 };
  await tx.table(identityKind).insert(identityRow(uids.inactive, deactivated));
  await tx.table(identityKind).insert(identityRow(uids.former, deactivated));
  const people = tx.table(scimUserKind);
  await people.insert(scimUserRow(uids.scimUser, { externalId: "a", identityUid: uids.person }));
  await people.insert(
    scimUserRow(childUid(provider, 0x53), { externalId: "b", identityUid: uids.inactive, active: false }),
  );
  await people.insert(scimUserRow(childUid(provider, 0x54), { externalId: "c", active: false }));
  await people.putFormer({
    ...{ providerUid: provider, externalId: "d", uid: childUid(provider, 0x55), identityUid: uids.former },
    ...{ createTimeMs: 1_000, deleteTimeMs: 2_000 },
  });
  await tx.table(scimGroupKind).insert(scimGroupRow(uids.scimGroup, { displayName: "devs", externalId: "devs" }));
  await tx.scimMembers.add({ groupUid: uids.scimGroup, memberSet: 1, userUid: uids.scimUser });
  await tx.scimWork.add(provider, "group", uids.scimGroup);
  await tx.table(roleBindingKind).insert(bindingRow(uids.binding, uids.workload, role, { managedByUid: provider }));
  // A person may be bound before they register.
  await tx.table(roleBindingKind).insert(bindingRow(childUid(root, 0x43), uids.gone, role));
  await tx.table(groupMappingKind).insert({
    ...{ uid: uids.mapping, providerUid: provider, externalGroupId: "devs", roleUid: role, scope: root },
    createdBy: null,
    createTimeMs: 1_000,
  });
  await tx.table(groupInviteKind).insert({
    ...{ uid: childUid(team, 0x44), groupUid: team, roleUid: role, email: "", singleUse: false, keyId: "k" },
    ...{ codeHash: "h", createdBy: uids.gone, expireTimeMs: 2_000, ...times },
  });
}

async function addRegistry(tx: Tx): Promise<void> {
  const times = { createTimeMs: 1_000, updateTimeMs: 1_000 };
  await tx.table(repoKind).insert(repoRow(repo));
  for (let n = 0; n < 8; n++) await tx.table(tagKind).insert(tagRow(n, { repoUid: repo }));
  await tx.table(tagKind).recordMove({ tagUid: uids.tag, timeMs: 1_000, digest: "sha256:a" });
  // The mark of a deleted tag stays.
  for (const name of ["tag-00", "deleted"]) await tx.table(tagKind).putMark(repo, name, 1_000);
  await tx.table(overlayKind).insert(overlayRow(uids.overlay));
  await tx.table(overlayBindingKind).insert(overlayBindingRow(uids.overlayBinding, uids.overlay, { tags: ["a", "b"] }));
  await tx.registry.putManifest({ repoUid: repo, digest: "sha256:a", images: { amd64: 1 } });
  await tx.registry.putDeployment({ repoUid: repo, charts: {}, ...times });
  await tx.registry.putSettings({ groupUid: team, uniqueTags: true, eolGracePeriod: false });
  await tx.registry.recordEvent("event", 1_000);
  await tx.table(groupKind).update(other, { name: "other.example", verified: true }, 2_000);
  await tx.registry.putName({ name: "other.example", groupUid: other, uidPath: "closed" });
  // That of a deleted organisation stays.
  await tx.registry.putName({ name: "gone.example", groupUid: uids.gone, uidPath: "closed" });
}

async function addAdvisory(tx: Tx): Promise<void> {
  const row: AdvisoryRow = {
    ...{ uid: advisory, groupUid: team, advisoryId: "A-1", legacyAdvisoryId: "", author: "", artifactName: "a" },
    ...{ artifactType: "apk", artifactArchitecture: "", componentName: "c", componentLocation: "", componentType: "" },
    ...{
      aliases: ["CVE-1", "GHSA-1"],
      severities: {},
      searched: "a\nc\ncve-1\nghsa-1",
      latestEventType: 0,
      sourceKey: "",
    },
    ...{ sourceHash: "", deleteTimeMs: null, createTimeMs: 1_000, updateTimeMs: 1_000 },
  };
  await tx.table(advisoryKind).insert(row);
  await tx.table(advisoryKind).putEvent({
    ...{ uid: childUid(advisory, 1), advisoryUid: advisory, type: 1, author: "", reviewer: "", reviewState: 0 },
    ...{ data: {}, createTimeMs: 1_000, updateTimeMs: 1_000 },
  });
}

async function addSecrets(tx: Tx, masterKey: MasterKey): Promise<void> {
  const tickets = createTickets(masterKey);
  await tickets.put(tx, "user-code", "secret", { deviceCode: "code" }, Date.now() + 3_600_000);
  // Of an identity that was deleted since.
  await tx.refreshTokens.insert({
    ...{ hash: "h", family: "f", identityUid: childUid(root, 0xdead), grant: {}, used: false },
    ...{ createTimeMs: 1_000, expireTimeMs: Date.now() + 3_600_000 },
  });
}
