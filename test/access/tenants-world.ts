// Two organisations that share people: A, the same every time, and B, which may be there or not. What callers of A see in
// lists does not depend on B.
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { builtinRoleUid, personUid } from "../../src/kernel/ids.js";
import type { Principal } from "../../src/kernel/principal.js";
import { buildRepo } from "../../src/registry/repos/repo.js";
import { groupInviteKind } from "../../src/store/iam/group-invites.js";
import { groupMappingKind } from "../../src/store/iam/group-mappings.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { repoKind } from "../../src/store/registry/repos.js";
import type { Tx } from "../../src/store/transaction.js";
import { principalOf } from "../support/in-process.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../support/rows.js";
import { type OpenedPlatform, openPlatform } from "./platform.js";

const [owner, viewer, editor] = ["owner", "viewer", "editor"].map(builtinRoleUid) as [string, string, string];
const TIMES = { createTimeMs: 1_000, updateTimeMs: 1_000 };

/** The uids of one organisation: of the groups, and of one or two of every other kind. */
function uidsOf(root: string) {
  const team = childUid(root, 1);
  const inner = childUid(team, 2);
  const provider = childUid(root, 0x10);
  return {
    root,
    team,
    inner,
    beside: childUid(root, 3),
    workload: childUid(team, 0x20),
    rootWorkload: childUid(root, 0x21),
    provider,
    mapping: childUid(provider, 0x30),
    invite: childUid(team, 0x40),
    rootInvite: childUid(root, 0x41),
    repo: childUid(team, 0x50),
    role: childUid(root, 0x60),
    teamRole: childUid(team, 0x61),
    binding: childUid(team, 0x7000),
  };
}

export const a = uidsOf(rootUid(0xa));
export const b = uidsOf(rootUid(0xb));

const person = (name: string) => personUid("https://login.example", name);

/** People whom A has bound, by what they are. */
export const people = {
  /** Registered in both worlds, and joined A. In B as well, where it is there. */
  joined: person("joined"),
  /** Of A's provider. */
  member: person("member"),
  /** Bound by A alone; registered only where B is. */
  plain: person("plain"),
  /** The same with bindings that are pending. */
  pending: person("pending"),
  /** Where B is: of B's provider. */
  foreign: person("foreign"),
  /** Where B is: its owner. */
  ownerOfB: person("owner of b"),
  /** Bound by A in the team, and by nobody above it. */
  inTeam: person("in team"),
} as const;

/** Nobody has heard of it. */
export const stranger = person("stranger");

/** Callers of A: their tokens, by what they may see. */
export const callers = {
  owner: principalOf(person("owner of a")),
  viewer: principalOf(person("viewer of a")),
  "viewer of the team": principalOf(person("viewer of the team")),
  "viewer of the team, pending": principalOf(person("pending viewer")),
  "one who sees bindings of the team alone": principalOf(childUid(a.team, 0x22)),
  "owner with a limited token": {
    ...principalOf(person("owner of a")),
    limit: { scope: [a.team], cap: buildCapabilitySet(["role_bindings.list", "groups.list", "identity.list"]) },
  },
  "person of the provider": { ...principalOf(people.member), mappings: [a.mapping, b.mapping] },
  nobody: principalOf(person("nobody")),
} as const satisfies Readonly<Record<string, Principal>>;

export type CallerName = keyof typeof callers;

/** Opens the services with A, and with B beside it if `hasB`. */
export async function openTenants(hasB: boolean): Promise<OpenedPlatform> {
  const platform = await openPlatform();
  await platform.store.write(async (tx) => {
    await fill(tx, a, "acme");
    await fillCallers(tx);
    if (hasB) await fillB(tx);
  });
  return platform;
}

function bindIn(tx: Tx, group: string, n: number) {
  let next = n;
  return (identity: string, role: string, values: object = {}, at = group) =>
    tx.table(roleBindingKind).insert(bindingRow(childUid(at, next++), identity, role, values));
}

// One of everything. Names begin alike in both organisations.
async function fill(tx: Tx, uids: typeof a, name: string): Promise<void> {
  const { root, team, inner, beside, provider } = uids;
  for (const [i, uid] of [root, team, inner, beside].entries())
    await tx.table(groupKind).insert(groupRow(uid, { name: `ac ${name} ${i}` }));
  const roleOf = (capabilities: readonly string[], groupUid: string) => ({
    ...{ groupUid, name: `ac ${name} role` },
    capabilities: buildCapabilitySet(capabilities),
  });
  await tx.table(roleKind).insert(roleRow(uids.role, roleOf(["groups.list", "repo.delete"], root)));
  await tx.table(roleKind).insert(roleRow(uids.teamRole, roleOf(["role_bindings.list"], team)));
  const workload = { name: `ac ${name} workload`, relation: 1 };
  const claimMatch = { issuer: "https://issuer.example", subject: name, audience: name };
  await tx.table(identityKind).insert(identityRow(uids.workload, { ...workload, relationship: { claimMatch } }));
  await tx.table(identityKind).insert(identityRow(uids.rootWorkload, { ...workload, relationship: { claimMatch } }));
  await tx.table(identityProviderKind).insert({
    ...{ uid: provider, groupUid: root, name: `ac ${name} provider`, description: "", defaultRole: uids.role },
    oidc: { issuer: `https://${name}.example`, clientId: name },
    lacksDefaultRole: false,
    sealedSecret: "",
    scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" },
    ...TIMES,
  });
  const mapping = { uid: uids.mapping, providerUid: provider, externalGroupId: `${name} directory`, scope: root };
  await tx.table(groupMappingKind).insert({ ...mapping, roleUid: viewer, createdBy: null, createTimeMs: 1_000 });
  for (const [uid, groupUid, roleUid] of [
    [uids.invite, team, uids.teamRole],
    [uids.rootInvite, root, owner],
  ] as const) {
    const invite = { uid, groupUid, roleUid, email: `${name}@example.com`, singleUse: true, createdBy: "" };
    const key = { keyId: root.slice(-8) + uid.slice(-8), codeHash: "", expireTimeMs: 4_000_000_000_000 };
    await tx.table(groupInviteKind).insert({ ...invite, ...key, ...TIMES });
  }
  await tx
    .table(repoKind)
    .insert(buildRepo(team, `ac-${name}`, { ids: { newUid: () => uids.repo, newId: () => "" }, nowMs: 1_000 }));
  const bind = bindIn(tx, team, 0x7000);
  await bind(uids.workload, uids.teamRole);
  await bind(uids.workload, editor, {}, root);
  await bind(uids.rootWorkload, uids.role, {}, root);
  // They are bound in B as well, and join there; but for the one who asks about itself.
  const isA = uids === a;
  const joins = isA ? {} : { accepted: true };
  for (const uid of Object.values(people).filter((one) => isA || one !== people.member)) {
    const at = uid === people.inTeam ? team : root;
    const own = uid === people.joined || uid === people.member ? { accepted: true } : joins;
    await bind(uid, uids.role, uid === people.pending && isA ? { pending: true } : own, at);
    await bind(uid, viewer, own, inner);
  }
}

async function fillCallers(tx: Tx): Promise<void> {
  const bind = bindIn(tx, a.root, 0x9000);
  for (const uid of new Set(Object.values(callers).map(({ identityUid }) => identityUid))) {
    if (uid === people.member) continue;
    await tx
      .table(identityKind)
      .insert(identityRow(uid, { name: "somebody", email: uid.includes("/") ? "" : "one@example.com" }));
  }
  await tx.table(identityKind).insert(identityRow(people.joined, { name: "joined", email: "joined@example.com" }));
  const member = { name: "member", email: "member@example.com", providerUid: a.provider };
  await tx.table(identityKind).insert(identityRow(people.member, member));
  await bind(callers.owner.identityUid, owner, { automatic: true });
  await bind(callers.viewer.identityUid, viewer, { accepted: true });
  await bind(callers["viewer of the team"].identityUid, viewer, { accepted: true }, a.team);
  await bind(callers["viewer of the team, pending"].identityUid, viewer, { pending: true }, a.team);
  await bind(callers["one who sees bindings of the team alone"].identityUid, a.teamRole, {}, a.team);
}

// B is full of what A must not see: of its own, and about the people whom both have bound.
async function fillB(tx: Tx): Promise<void> {
  for (const uid of [people.plain, people.pending, people.ownerOfB, people.inTeam]) {
    await tx.table(identityKind).insert(identityRow(uid, { name: "ac registered", email: "registered@example.com" }));
  }
  const foreign = { name: "ac foreign", email: "foreign@example.com", providerUid: b.provider };
  await tx.table(identityKind).insert(identityRow(people.foreign, foreign));
  await fill(tx, b, "bees");
  await bindIn(tx, b.root, 0x9000)(people.ownerOfB, owner, { automatic: true });
}
