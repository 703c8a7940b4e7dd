// Random changes of directories, by hand and by mappers, compared with a naive model: at every step nobody has a right that the
// model denies, and when no work is left everybody has what the model says. Work is stopped between units at random.
import {
  addMembers,
  continueWork,
  deleteGroup,
  followLink,
  followMappedId,
  followMapping,
  leaveGroups,
  MembersReplacedError,
  removeMembers,
  switchMembers,
  writeMembers,
} from "../../../src/iam/directories/work.js";
import { seedRoles } from "../../../src/iam/roles/builtin-roles.js";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { defaultLimits } from "../../../src/kernel/quotas.js";
import { lineageOf } from "../../../src/kernel/uidp.js";
import { createQuotas } from "../../../src/pipeline/resource/quota.js";
import { groupMappingKind } from "../../../src/store/iam/group-mappings.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { buildMappedId, scimGroupKind } from "../../../src/store/iam/scim-groups.js";
import { scimUserKind } from "../../../src/store/iam/scim-users.js";
import type { Store } from "../../../src/store/store.js";
import type { Tx } from "../../../src/store/transaction.js";
import { createRandom } from "../../support/openapi/random.js";
import { bindingRow, childUid, groupRow, identityRow, rootUid, scimGroupRow, scimUserRow } from "../../support/rows.js";
import { deleteScimUser, insertProvider, setScimUserActive } from "../../support/scim-people.js";
import { type ModelFault, type ModelMapping, RightsModel } from "./rights-model.js";

/** How the run may be wrong, to show that differences are found. */
export type RunFault = ModelFault | "forgets work" | "reads stored bindings";

export interface RightsRun {
  readonly steps: number;
  /** How often everybody was compared with no work left, and how many rights they had together. */
  readonly settled: number;
  readonly rights: number;
  /** How often work was left to do after a change. */
  readonly pending: number;
  readonly differences: readonly string[];
}

const PEOPLE = 6;
const GROUPS = 4;
/** With units of two, a few members are many. */
const MAX_UNIT = 2;
const [root, mapped] = [rootUid(1), childUid(rootUid(1), 1)];
const scopes = [root, mapped, childUid(mapped, 2)];
const roles = ["viewer", "editor"].map(builtinRoleUid);
const owner = builtinRoleUid("owner");
const mappers = [rootUid(0x101), rootUid(0x102)];
const identityOf = (person: string) => rootUid(0x200 + Number(person.slice(-2)));

/** Makes `steps` random changes. */
export async function runRights(store: Store, steps: number, seed: number, fault?: RunFault): Promise<RightsRun> {
  const random = createRandom(seed);
  const { chance, int, pick } = random;
  const isOfRun = fault === "forgets work" || fault === "reads stored bindings";
  const model = new RightsModel(isOfRun ? undefined : fault);
  const quotas = createQuotas(defaultLimits);
  const differences: string[] = [];
  let [settled, rights, pending, count, isUnsettled] = [0, 0, 0, 0, false];
  const context = { ids: randomIds, quotas, nowMs: 2_000, maxUnit: MAX_UNIT };
  let provider = "";
  const people = () => [...model.people.keys()];
  const present = () => people().filter((uid) => model.people.get(uid)?.present);

  await store.write(async (tx) => {
    await seedRoles(tx, 1_000);
    for (const scope of scopes) await tx.table(groupKind).insert(groupRow(scope));
    provider = await insertProvider(tx, root, { issuer: "https://login.example" });
    for (const mapper of mappers) await tx.table(identityKind).insert(identityRow(mapper));
    for (let n = 1; n <= PEOPLE; n++) {
      const uid = childUid(provider, n);
      await tx.table(identityKind).insert(identityRow(identityOf(uid), { providerUid: provider }));
      await tx.table(scimUserKind).insert(scimUserRow(uid, { externalId: `p${n}` }));
      model.people.set(uid, { linked: false, active: true, present: true });
    }
  });

  const findUsers = async (tx: Tx, uids: readonly string[]) => {
    const rows = await Promise.all(uids.map((uid) => tx.table(scimUserKind).find(uid)));
    return rows.flatMap((row) => row ?? []);
  };
  const findGroup = async (tx: Tx, uid: string) => {
    const row = await tx.table(scimGroupKind).find(uid);
    if (row === undefined) throw new Error(`there is no group ${uid}`);
    return row;
  };
  const pickSome = (all: readonly string[]) => all.filter(() => chance(0.5));

  /** Does what is left, or a few units of it. */
  const work = (units = Number.POSITIVE_INFINITY) => {
    let left = units;
    const run = { context: () => context, nowMs: () => 2_000, isStopped: () => left-- <= 0 };
    return continueWork(store, run);
  };

  const changes: Readonly<Record<string, () => Promise<unknown>>> = {
    async createMapping() {
      const right = `${pick(scopes)} ${pick(roles)}`;
      const mapping: ModelMapping = { id: pick(["a", "b", "c"]), right, mapper: pick(mappers) };
      const [scope = "", roleUid = ""] = right.split(" ");
      const isSame = (one: ModelMapping) => one.id === mapping.id && one.right === right;
      if (!model.mayGrant(mapping.mapper, right) || [...model.mappings.values()].some(isSame)) return;
      const row = {
        uid: randomIds.newUid(provider),
        providerUid: provider,
        externalGroupId: mapping.id,
        roleUid,
        scope,
      };
      model.mappings.set(row.uid, mapping);
      await store.write(async (tx) => {
        await tx.table(groupMappingKind).insert({ ...row, createdBy: mapping.mapper, createTimeMs: 1_000 });
        await followMapping(tx, row, "created", context);
      });
    },
    async deleteMapping() {
      if (model.mappings.size === 0) return;
      const [uid, { id }] = pick([...model.mappings]);
      model.deleteMapping(uid);
      await store.write(async (tx) => {
        await tx.table(groupMappingKind).delete(uid);
        await followMapping(tx, { providerUid: provider, externalGroupId: id }, "deleted", context);
      });
    },
    async createGroup() {
      if (model.groups.size >= GROUPS) return;
      const uid = randomIds.newUid(provider);
      const [id, members] = [findFreeId(), pickSome(present()).slice(0, MAX_UNIT)];
      const row = scimGroupRow(uid, { externalId: id });
      model.groups.set(uid, { id: row.mappedId, members: new Set(members) });
      await store.write(async (tx) => {
        await tx.table(scimGroupKind).insert(row);
        await addMembers(tx, row, await findUsers(tx, members), context);
      });
    },
    async deleteGroup() {
      if (model.groups.size === 0) return;
      const [uid] = pick([...model.groups]);
      model.groups.delete(uid);
      await store.write(async (tx) => deleteGroup(tx, await findGroup(tx, uid), context));
    },
    async renameGroup() {
      if (model.groups.size === 0) return;
      const [uid, group] = pick([...model.groups]);
      const externalId = findFreeId();
      group.id = buildMappedId({ uid, externalId });
      await store.write(async (tx) => {
        const row = { ...(await findGroup(tx, uid)), externalId, mappedId: group.id };
        await tx.table(scimGroupKind).replace(row);
        await followMappedId(tx, row, context);
      });
    },
    async changeMembers() {
      if (model.groups.size === 0) return;
      const [uid, group] = pick([...model.groups]);
      const isAdded = chance(0.6);
      const members = pickSome(present()).slice(0, MAX_UNIT);
      for (const one of members) isAdded ? group.members.add(one) : model.removeMember(uid, one);
      await store.write(async (tx) => {
        const change = isAdded ? addMembers : removeMembers;
        await change(tx, await findGroup(tx, uid), await findUsers(tx, members), context);
      });
    },
    async replaceMembers() {
      if (model.groups.size === 0) return;
      const [uid, group] = pick([...model.groups]);
      const members = pickSome(present());
      const before = await store.read((tx) => findGroup(tx, uid));
      const memberSet = await writeMembers(store, before, members, context);
      // A call that is killed here has changed nothing.
      if (chance(0.2)) return;
      for (const one of group.members) if (!members.includes(one)) model.removeMember(uid, one);
      for (const one of members) group.members.add(one);
      await store.write(async (tx) => switchMembers(tx, await findGroup(tx, uid), memberSet, context));
    },
    async bind() {
      const [person, right] = [pick(people()), `${pick(scopes)} ${pick(roles)}`];
      const own = model.manual.get(person) ?? new Set();
      model.manual.set(person, own);
      const [groupUid = "", roleUid = ""] = right.split(" ");
      await store.write(async (tx) => {
        const same = await tx.table(roleBindingKind).findSame(groupUid, identityOf(person), roleUid);
        if (same !== undefined) return tx.table(roleBindingKind).delete(same.uid);
        await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(groupUid), identityOf(person), roleUid));
      });
      own.has(right) ? own.delete(right) : own.add(right);
    },
    async activate() {
      const uid = pick(present());
      const person = model.people.get(uid);
      if (person === undefined) return;
      person.active = !person.active;
      await store.write((tx) => setScimUserActive(tx, uid, person.active));
    },
    async link() {
      const uid = pick(present());
      const person = model.people.get(uid);
      if (person === undefined || person.linked) return;
      person.linked = true;
      await store.write(async (tx) => {
        const [row] = await findUsers(tx, [uid]);
        if (row === undefined) throw new Error(`there is no person ${uid}`);
        await tx.table(scimUserKind).replace({ ...row, identityUid: identityOf(uid) });
        if (!person.active) await setScimUserActive(tx, uid, false);
        await followLink(tx, provider, identityOf(uid), context);
      });
    },
    async deletePerson() {
      if (present().length < 3) return;
      const uid = pick(present());
      model.deletePerson(uid);
      for (let isDone = false; !isDone; ) {
        isDone = await store.write(async (tx) => {
          const [row] = await findUsers(tx, [uid]);
          if (row === undefined) throw new Error(`there is no person ${uid}`);
          await setScimUserActive(tx, uid, false);
          if (!(await leaveGroups(tx, row, context))) return false;
          await deleteScimUser(tx, uid);
          return true;
        });
      }
    },
    async revive() {
      const uid = people().find((one) => !model.people.get(one)?.present);
      const person = uid && model.people.get(uid);
      if (!uid || !person) return;
      Object.assign(person, { present: true, active: true });
      await store.write(async (tx) => {
        const [externalId, identityUid] = [`p${Number(uid.slice(-2))}`, person.linked ? identityOf(uid) : null];
        await tx.table(scimUserKind).deleteFormer(provider, externalId);
        await tx.table(scimUserKind).insert(scimUserRow(uid, { externalId, identityUid, active: true }));
        await setScimUserActive(tx, uid, true);
      });
    },
    async changeMapper() {
      const [mapper, scope] = [pick(mappers), pick(scopes.slice(0, 2))];
      const owned = model.owned.get(mapper) ?? new Set();
      model.owned.set(mapper, owned);
      await store.write(async (tx) => {
        const same = await tx.table(roleBindingKind).findSame(scope, mapper, owner);
        if (same !== undefined) return tx.table(roleBindingKind).delete(same.uid);
        await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(scope), mapper, owner));
      });
      owned.has(scope) ? owned.delete(scope) : owned.add(scope);
      isUnsettled = true;
    },
  };

  // External ids are unique.
  function findFreeId(): string {
    const used = [...model.groups.values()].map(({ id }) => id);
    return pick(["a", "b", "c", ""].filter((id) => !used.includes(id)));
  }

  async function read(person: string): Promise<Set<string>> {
    const identity = identityOf(person);
    const state = model.people.get(person);
    if (state?.linked !== true || !state.present) return new Set();
    return store.read(async (tx) => {
      const deepest = scopes.at(-1) ?? "";
      const rows = await tx.access.findGrantsAt(identity, lineageOf(deepest));
      const found = new Set(
        rows.flatMap(({ groupUid, roleUid }) => (groupUid === null ? [] : `${groupUid} ${roleUid}`)),
      );
      const stored = await tx.table(roleBindingKind).findByIdentity(identity);
      if (fault === "reads stored bindings") return new Set(stored.map((row) => `${row.groupUid} ${row.roleUid}`));
      if (!state.active) return found;
      // The ways in which bindings are read agree with each other.
      const hydrated = await tx.table(roleBindingKind).findHydrated(stored.map(({ uid }) => uid));
      const single = await Promise.all(stored.map(({ uid }) => tx.table(roleBindingKind).find(uid)));
      for (const list of [hydrated, single.flatMap((row) => row ?? [])]) {
        const listed = new Set(list.map((row) => `${row.groupUid} ${row.roleUid}`));
        if (describe(listed) !== describe(found))
          differences.push(`lists: ${describe(listed)}, not ${describe(found)}`);
      }
      return found;
    });
  }

  const names = Object.keys(changes);
  for (let step = 0; step < steps; step++) {
    const name = pick(names);
    // Both mappers own the organisation at first.
    await (step < mappers.length ? changes.changeMapper : changes[name])?.().catch((error: unknown) => {
      if (!(error instanceof MembersReplacedError)) throw error;
    });
    const left = await store.read((tx) => tx.scimWork.list(1));
    if (left.length > 0) pending++;
    if (chance(0.3)) await work(int(3));
    const isSettled = chance(0.3);
    if (isSettled) await settle();
    for (const person of people()) {
      const found = await read(person);
      const denied = [...found].filter((right) => !model.allowed(person).has(right));
      if (denied.length > 0) differences.push(`step ${step}, ${name}: ${person} has ${denied.join(", ")}`);
      if (!isSettled) continue;
      const expected = model.expected(person);
      rights += expected.size;
      if (describe(found) !== describe(expected))
        differences.push(`step ${step}, ${name}: ${person} has ${describe(found)}, not ${describe(expected)}`);
    }
    if (isSettled) settled++;
    if (differences.length > 20) break;
    count = step + 1;
  }
  return { steps: count, settled, rights, pending, differences };

  // Nothing follows the rights of mappers, so everybody is looked at again where these have changed.
  async function settle(): Promise<void> {
    await store.write(async (tx) => {
      if (fault === "forgets work") for (const row of await tx.scimWork.list(100)) await tx.scimWork.delete(row);
      if (!isUnsettled || fault === "forgets work") return;
      for (const uid of people()) await tx.scimWork.add(provider, "person", identityOf(uid));
    });
    isUnsettled = false;
    await work();
  }
}

function describe(rights: ReadonlySet<string>): string {
  return [...rights].sort().join(", ");
}
