// Random worlds of organisations: in the store, and in the sets of the model. Each change is made in both.

import { builtinRoles } from "../../src/iam/roles/builtin-roles.js";
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { ANONYMOUS_UID, builtinRoleUid } from "../../src/kernel/ids.js";
import { buildRepo } from "../../src/registry/repos/repo.js";
import { groupInviteKind } from "../../src/store/iam/group-invites.js";
import { groupMappingKind } from "../../src/store/iam/group-mappings.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { repoKind } from "../../src/store/registry/repos.js";
import type { Store } from "../../src/store/store.js";
import type { Tx } from "../../src/store/transaction.js";
import type { Random } from "../support/openapi/random.js";
import { bindingRow, groupRow, identityRow, roleRow } from "../support/rows.js";
import type { ModelBinding, ModelIdentity, Token, World } from "./model.js";

/** Whose bindings the auditor of all organisations sees, and no one else does more. */
export interface RandomWorld extends World {
  readonly roots: readonly string[];
  /** An identity with the viewer's role at every root. */
  readonly auditor: Token;
  /** Changes something, in the store and in the model. */
  change(): Promise<void>;
  /** Registers a person who has only been bound, or takes such a person's registration away. */
  toggleRegistration(person: string): Promise<void>;
  /** All who may be asked about: workloads and people, registered or not, and one who was never bound. */
  everybody(): readonly string[];
  /** An identity of the model, and one that does not exist. */
  readonly nobody: string;
}

/** Sizes of a world; small, so that grants meet. */
const ROOTS = 3;
const DEPTH = 6;
const MAX_GROUPS = 60;
const MAX_BINDINGS = 110;
const DIGITS = "0123456789abcdef";
const START_MS = 1_000;
/** Before and after the time from which tokens of some identities are valid, in epoch seconds. */
const NOT_BEFORE = 1_000;

// Few names, so that several resources share one; wildcards of SQL are among their letters.
const NAMES = ["a", "ab", "abc", "a_b", "a.b", "b", "b-1", "b_1", "bb", "z"];

/**
 * Creates a world in an empty store.
 *
 * @param needed the capabilities that methods need, which custom roles draw from
 */
export async function createWorld(store: Store, random: Random, needed: readonly string[]): Promise<RandomWorld> {
  const { chance, pick, text } = random;
  const world: World = {
    groups: new Map(),
    roles: new Map(),
    identities: new Map(),
    bindings: new Map(),
    providers: new Map(),
    mappings: new Map(),
    invites: new Map(),
    repos: new Map(),
    anonymous: ANONYMOUS_UID,
  };
  const roots: string[] = [];
  const strangers: string[] = [];
  const newUid = (parent?: string) =>
    parent === undefined ? text(DIGITS, 40, 40) : `${parent}/${text(DIGITS, 16, 16)}`;
  const groupsOf = () => [...world.groups.keys()];
  const rootOf = (uid: string) => uid.slice(0, 40);
  const parentOf = (uid: string) => uid.slice(0, -17);
  const auditor: Token = { identity: newUid(), issuedAt: NOT_BEFORE };
  const nobody = newUid();

  async function addGroup(tx: Tx, parent?: string): Promise<string> {
    const [uid, name] = [newUid(parent), pick(NAMES)];
    if (parent === undefined) roots.push(uid);
    world.groups.set(uid, name);
    await tx.table(groupKind).insert(groupRow(uid, { name }));
    return uid;
  }

  async function addIdentity(tx: Tx, uid: string, values: Partial<ModelIdentity> = {}): Promise<string> {
    const identity = {
      name: pick(NAMES),
      email: uid.includes("/") || chance(0.3) ? "" : `${uid.slice(0, 6)}@example.com`,
      provider: undefined,
      isDeleting: false,
      notBefore: chance(0.1) ? NOT_BEFORE : 0,
      ...values,
    };
    world.identities.set(uid, identity);
    const { name, email, provider, isDeleting, notBefore } = identity;
    const rows = { name, email, providerUid: provider ?? null, notBefore, deleteTimeMs: isDeleting ? START_MS : null };
    await tx.table(identityKind).insert(identityRow(uid, rows));
    return uid;
  }

  async function addRole(tx: Tx, group: string | undefined): Promise<void> {
    const uid = newUid(group);
    const capabilities = drawCapabilities();
    const name = `role ${world.roles.size}`;
    world.roles.set(uid, { name, capabilities: new Set(capabilities) });
    const row = { name, groupUid: group ?? null, capabilities: buildCapabilitySet(capabilities) };
    await tx.table(roleKind).insert(roleRow(uid, row));
  }

  function drawCapabilities(): string[] {
    const share = pick([0.1, 0.5, 0.9]);
    const drawn = needed.filter(() => chance(share));
    return chance(0.5) ? [...new Set([...drawn, "role_bindings.list"])] : drawn;
  }

  // A role that can be bound at a group: built in, of the operator, or of the group or one above it.
  function pickRole(group: string): string {
    const available = [...world.roles.keys()].filter((uid) => !uid.includes("/") || isIn(group, parentOf(uid)));
    return pick(available);
  }

  const isIn = (uid: string, group: string) => uid === group || uid.startsWith(`${group}/`);

  async function addBinding(tx: Tx): Promise<void> {
    const identity = pick([...world.identities.keys(), ...strangers]);
    const home = identity.includes("/") ? rootOf(identity) : undefined;
    const group = pick(groupsOf().filter((one) => home === undefined || rootOf(one) === home));
    if (identity === ANONYMOUS_UID) {
      await bind(tx, { identity, role: builtinRoleUid("registry.pull"), group, origin: "bound", pending: false });
      return;
    }
    const isPerson = home === undefined;
    const origin =
      isPerson && chance(0.4) && world.identities.has(identity) ? pick(["created", "joined"] as const) : "bound";
    const pending = isPerson && origin === "bound" && chance(0.5);
    await bind(tx, { identity, role: pickRole(group), group, origin, pending });
  }

  async function bind(tx: Tx, binding: ModelBinding): Promise<void> {
    const { identity, role, group, origin, pending } = binding;
    if (await tx.table(roleBindingKind).findStoredSame(group, identity, role)) return;
    const uid = newUid(group);
    // Those that have ended are nothing to the model, and those that will end are as all others.
    const endTimeMs = identity !== auditor.identity && chance(0.2) ? pick([1, 9_000_000_000_000]) : null;
    if (endTimeMs !== 1) world.bindings.set(uid, binding);
    const values = { automatic: origin === "created", accepted: origin === "joined", pending, endTimeMs };
    await tx.table(roleBindingKind).insert(bindingRow(uid, identity, role, values));
  }

  async function dropBinding(tx: Tx, uid: string): Promise<void> {
    world.bindings.delete(uid);
    await tx.table(roleBindingKind).delete(uid);
  }

  async function addProvider(tx: Tx, root: string): Promise<string> {
    const uid = newUid(root);
    const provider = { name: pick(NAMES), role: pickRole(root) };
    world.providers.set(uid, provider);
    await tx.table(identityProviderKind).insert({
      ...{ uid, groupUid: root, name: provider.name, description: "", defaultRole: provider.role },
      oidc: { issuer: "https://login.example", clientId: "id" },
      lacksDefaultRole: false,
      sealedSecret: "",
      scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" },
      ...{ createTimeMs: START_MS, updateTimeMs: START_MS },
    });
    return uid;
  }

  async function addMapping(tx: Tx, provider: string): Promise<void> {
    const [uid, scope] = [newUid(provider), rootOf(provider)];
    const mapping = { provider, externalGroup: text("abc", 12, 12), role: pickRole(scope), scope };
    world.mappings.set(uid, mapping);
    const { externalGroup, role } = mapping;
    const row = { uid, providerUid: provider, externalGroupId: externalGroup, roleUid: role, scope };
    await tx.table(groupMappingKind).insert({ ...row, createdBy: null, createTimeMs: START_MS });
  }

  async function addInvite(tx: Tx, group: string): Promise<void> {
    const [uid, role, isLive] = [newUid(group), pickRole(group), chance(0.7)];
    const email = chance(0.5) ? "somebody@example.com" : "";
    world.invites.set(uid, { role, email, isLive });
    await tx.table(groupInviteKind).insert({
      ...{ uid, groupUid: group, roleUid: role, email, singleUse: chance(0.5), createdBy: "" },
      ...{ keyId: text(DIGITS, 16, 16), codeHash: "" },
      expireTimeMs: isLive ? Number.MAX_SAFE_INTEGER : START_MS,
      ...{ createTimeMs: START_MS, updateTimeMs: START_MS },
    });
  }

  async function addRepo(tx: Tx, group: string): Promise<void> {
    const name = pick(NAMES);
    if ([...world.repos].some(([uid, other]) => other === name && parentOf(uid) === group)) return;
    const row = { ...buildRepo(group, name, { ids: { newUid, newId: () => "" }, nowMs: START_MS }) };
    world.repos.set(row.uid, name);
    await tx.table(repoKind).insert(row);
  }

  const removeIdentity = async (tx: Tx, uid: string) => {
    world.identities.delete(uid);
    await tx.table(identityKind).delete(uid);
  };

  const changes: readonly ((tx: Tx) => Promise<void>)[] = [
    (tx) => addBinding(tx),
    (tx) => addBinding(tx),
    async (tx) => {
      if (world.bindings.size > MAX_BINDINGS / 2) await dropBinding(tx, pick(droppable()));
    },
    (tx) => (world.bindings.size < MAX_BINDINGS ? addBinding(tx) : dropBinding(tx, pick(droppable()))),
    async (tx) => {
      if (world.groups.size < MAX_GROUPS) await addGroup(tx, pick(groupsOf()));
    },
    async (tx) => {
      const uid = pick([...world.roles.keys()].filter((one) => !builtinUids.has(one)));
      const capabilities = drawCapabilities();
      const before = world.roles.get(uid);
      if (before === undefined) return;
      world.roles.set(uid, { ...before, capabilities: new Set(capabilities) });
      await tx.table(roleKind).update(uid, { capabilities: buildCapabilitySet(capabilities) }, START_MS);
    },
    // Somebody is being deleted, or an identity comes in the place of one.
    async (tx) => {
      const deleting = [...world.identities].filter(([, { isDeleting }]) => isDeleting);
      const [last] = deleting.at(0) ?? [];
      if (deleting.length >= 3 && last !== undefined) {
        for (const [uid, { identity }] of [...world.bindings]) if (identity === last) await dropBinding(tx, uid);
        await removeIdentity(tx, last);
        await addIdentity(tx, newUid(last.includes("/") ? pick(groupsOf()) : undefined));
        return;
      }
      const uid = pick([...world.identities.keys()].filter((one) => one !== auditor.identity && one !== ANONYMOUS_UID));
      const before = world.identities.get(uid);
      if (before === undefined) return;
      world.identities.set(uid, { ...before, isDeleting: true, provider: undefined });
      await tx.table(identityKind).markDeleted(uid, START_MS);
    },
    async (tx) => {
      const uid = pick([...world.mappings.keys()]);
      world.mappings.delete(uid);
      await tx.table(groupMappingKind).delete(uid);
      await addMapping(tx, pick([...world.providers.keys()]));
    },
    async (tx) => {
      const uid = pick([...world.invites.keys()]);
      world.invites.delete(uid);
      await tx.table(groupInviteKind).delete(uid);
      await addInvite(tx, pick(groupsOf()));
    },
    // A pending binding is accepted.
    async (tx) => {
      const [uid, binding] = [...world.bindings].find(([, { pending }]) => pending) ?? [];
      if (uid === undefined || binding === undefined) return;
      world.bindings.set(uid, { ...binding, pending: false });
      await tx.table(roleBindingKind).acceptOne(uid, "use");
    },
  ];
  const droppable = () =>
    [...world.bindings].filter(([, { identity }]) => identity !== auditor.identity).map(([uid]) => uid);

  for (const [name, capabilities] of Object.entries(builtinRoles)) {
    world.roles.set(builtinRoleUid(name), { name, capabilities: new Set(capabilities), isBuiltIn: true });
  }
  const builtinUids = new Set(world.roles.keys());
  const anonymous = { name: "anonymous", email: "", provider: undefined, isDeleting: false, notBefore: 0 };
  world.identities.set(ANONYMOUS_UID, anonymous);
  await store.write(async (tx) => {
    for (let i = 0; i < ROOTS; i++) await addGroup(tx);
    for (const root of roots) {
      let last = root;
      for (let level = 1; level < DEPTH; level++) last = await addGroup(tx, last);
    }
    for (let i = 0; i < 15; i++) await addGroup(tx, pick(groupsOf()));
    for (let i = 0; i < 6; i++) await addRole(tx, pick(groupsOf()));
    for (const root of roots) await addRole(tx, root);
    for (let i = 0; i < 2; i++) await addRole(tx, undefined);
    for (let i = 0; i < 10; i++) await addIdentity(tx, newUid(pick(groupsOf())));
    for (let i = 0; i < 7; i++) await addIdentity(tx, newUid());
    const providers = [await addProvider(tx, roots[0] ?? ""), await addProvider(tx, roots[1] ?? "")];
    await addProvider(tx, roots[0] ?? "");
    for (let i = 0; i < 6; i++) await addIdentity(tx, newUid(), { provider: pick(providers) });
    for (let i = 0; i < 4; i++) strangers.push(newUid());
    for (let i = 0; i < 9; i++) await addMapping(tx, pick([...world.providers.keys()]));
    for (let i = 0; i < 10; i++) await addInvite(tx, pick(groupsOf()));
    for (let i = 0; i < 25; i++) await addRepo(tx, pick(groupsOf()));
    for (let i = 0; i < 90; i++) await addBinding(tx);
    await addIdentity(tx, auditor.identity, { notBefore: 0 });
    for (const group of roots) {
      const role = builtinRoleUid("viewer");
      await bind(tx, { identity: auditor.identity, role, group, origin: "joined", pending: false });
    }
  });
  return {
    ...world,
    roots,
    auditor,
    nobody,
    change: () => store.write((tx) => pick(changes)(tx)),
    async toggleRegistration(person) {
      await store.write(async (tx) => {
        if (world.identities.has(person)) {
          await removeIdentity(tx, person);
          strangers.push(person);
        } else {
          strangers.splice(strangers.indexOf(person), 1);
          const provider = chance(0.4) ? pick([...world.providers.keys()]) : undefined;
          await addIdentity(tx, person, { provider });
        }
      });
    },
    everybody: () => [...world.identities.keys(), ...strangers, nobody],
  };
}

/** A random token of an identity: mostly without a limit. */
export function drawToken(world: RandomWorld, random: Random, identity: string, needed: readonly string[]): Token {
  const { chance, pick } = random;
  const issuedAt = chance(0.03) ? NOT_BEFORE - 1 : NOT_BEFORE;
  const own = [...world.bindings.values()].filter((one) => one.identity === identity).map(({ group }) => group);
  const groups = [...world.groups.keys()];
  const drawGroup = () => (own.length > 0 && chance(0.7) ? extend(pick(own), groups, random) : pick(groups));
  const limited = {
    ...(chance(0.15) && { groups: [...new Set(Array.from({ length: 1 + random.int(3) }, drawGroup))] }),
    ...(chance(0.15) && { capabilities: new Set(needed.filter(() => chance(0.5))) }),
  };
  const isLimited = Object.keys(limited).length > 0;
  const mappings = chance(0.6) ? [...world.mappings.keys()].filter(() => chance(0.4)) : undefined;
  return { identity, issuedAt, ...(isLimited && { limit: limited }), ...(mappings && { mappings }) };
}

/** The group or one at or below it. */
export function extend(group: string, groups: readonly string[], { pick }: Random): string {
  const below = groups.filter((one) => one === group || one.startsWith(`${group}/`));
  return below.length === 0 ? group : pick(below);
}
