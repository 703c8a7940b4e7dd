// The groups of a directory: what each operation of the endpoint does. The name of a group is one row, and each member another;
// which rights follow from them is decided in iam/directories.
//
// A request that changes at most a hundred members is one unit of work. Of more, those that are added come in several units. Where
// many are taken away, or the list is replaced, the new set of members is written beside the one that counts, and one unit
// switches to it: so nobody who stays loses anything meanwhile, and whoever goes loses everything at once.

import { isDeepStrictEqual } from "node:util";
import { type DirectoryContext, MAX_UNIT } from "../iam/directories/rights.js";
import {
  addMembers,
  continueWork,
  deleteGroup,
  followMappedId,
  MembersReplacedError,
  removeMembers,
  switchMembers,
  UnknownMemberError,
  writeMembers,
} from "../iam/directories/work.js";
import { unavailable } from "../kernel/errors.js";
import type { Ids } from "../kernel/ids.js";
import type { Clock } from "../kernel/time.js";
import { rootOf } from "../kernel/uidp.js";
import { requireContracted } from "../pipeline/resource/contracted.js";
import type { Quotas } from "../pipeline/resource/quota.js";
import {
  buildDisplayNameKey,
  buildMappedId,
  type ScimGroupOrder,
  type ScimGroupRow,
  scimGroupKind,
} from "../store/iam/scim-groups.js";
import { type ScimUserRow, scimUserKind } from "../store/iam/scim-users.js";
import type { Store } from "../store/store.js";
import type { Tx } from "../store/transaction.js";
import { recordGroupChange, toRequest } from "./changes.js";
import {
  type Change,
  type ChangeContext,
  type Collection,
  idOf,
  requireTarget,
  type Target,
  uidOf,
  type View,
  type Write,
} from "./collection.js";
import { toGroupResource, toGroupValues } from "./group-row.js";
import { type ListedResources, listRows } from "./list-rows.js";
import { findComparedMembers, MEMBERS, type MemberChange, readMemberChange, readMembers } from "./member-changes.js";
import { equalityOf } from "./protocol/conditions.js";
import { badRequest, ScimError } from "./protocol/error.js";
import type { Filter } from "./protocol/filter-tree.js";
import { applyPatch } from "./protocol/patch.js";
import type { Resource } from "./protocol/resource.js";
import { groupType, userType } from "./protocol/schemas.js";

export interface GroupDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly quotas: Quotas;
}

/** How long a call goes on with what its change has left to do, in milliseconds; the job does the rest. */
const MAX_WORK_MS = 5_000;
/** How often a large change begins again because others have changed the members meanwhile. */
const MAX_TRIES = 5;
const RETRY_MS = 2_000;
/** How many members are read at a time. */
const SLICE = 500;
/** How many groups of one name, or of one person, a filter finds by an index. */
const MAX_FOUND = 1_000;

/** The groups of directories. */
export function createGroupCollection(deps: GroupDeps): Collection<ScimGroupRow> {
  const groups = new GroupChanges(deps);
  return {
    ...collection,
    list: (tx, providerUid, parameters) => listRows(listedGroups, tx, providerUid, parameters),
    create: (write, resource) => groups.create(write, resource),
    change: (write, target, change) => groups.change(write, target, change),
    delete: (write, target) => groups.delete(write, target),
    show: async (tx, row, view) => ({
      ...toGroupResource(row),
      ...(view.isWanted(MEMBERS) && (await showMembers(tx, row, view))),
    }),
  };
}

async function findById(tx: Tx, providerUid: string, id: string): Promise<ScimGroupRow | undefined> {
  const uid = uidOf(providerUid, id);
  return uid === undefined ? undefined : tx.table(scimGroupKind).find(uid);
}

async function showMembers(tx: Tx, row: ScimGroupRow, { endpointUrl }: View): Promise<Resource> {
  const members: Resource[] = [];
  for (let after = ""; ; ) {
    const slice = await tx.scimMembers.list({ groupUid: row.uid, memberSet: row.memberSet }, after, SLICE);
    for (const { uid } of slice) {
      const value = idOf({ uid });
      members.push({ value, $ref: `${endpointUrl}${userType.endpoint}/${value}`, type: userType.name });
    }
    const last = slice.at(-1);
    if (last === undefined || slice.length < SLICE) return members.length === 0 ? {} : { [MEMBERS]: members };
    after = last.uid;
  }
}

const listedGroups: ListedResources<ScimGroupRow, ScimGroupOrder["by"]> = {
  type: groupType,
  rows: (tx) => tx.table(scimGroupKind),
  orders: { id: "uid", displayName: "displayNameKey", "meta.lastModified": "updateTimeMs" },
  findByIndex,
  async toResource(tx, row, filter) {
    const ids = filter && findComparedMembers(filter);
    if (filter !== undefined && ids === undefined) {
      throw badRequest("invalidFilter", "members can be compared with an id by eq, and by nothing else");
    }
    const members: Resource[] = [];
    for (const id of new Set(ids)) {
      const userUid = uidOf(row.providerUid, id);
      const { uid: groupUid, memberSet } = row;
      if (userUid !== undefined && (await tx.scimMembers.isMember({ groupUid, memberSet, userUid })))
        members.push({ value: id });
    }
    return { ...toGroupResource(row), ...(members.length > 0 && { [MEMBERS]: members }) };
  },
};

async function findByIndex(tx: Tx, providerUid: string, filter: Filter): Promise<readonly ScimGroupRow[] | undefined> {
  const groups = tx.table(scimGroupKind);
  const [id, externalId, displayName, member] = ["id", "externalId", "displayName", "members.value"].map((name) =>
    equalityOf(filter, name),
  );
  if (id !== undefined) return listOf(await findById(tx, providerUid, id));
  if (externalId !== undefined) {
    return externalId === "" ? [] : listOf(await groups.findByExternalId(providerUid, externalId));
  }
  if (displayName !== undefined) {
    return groups.findByDisplayName(providerUid, buildDisplayNameKey(displayName), "", MAX_FOUND);
  }
  const userUid = member === undefined ? undefined : uidOf(providerUid, member);
  if (userUid !== undefined) return tx.scimMembers.findGroupsOf(userUid, "", MAX_FOUND);
  return member === undefined ? undefined : [];
}

function listOf<T>(row: T | undefined): readonly T[] {
  return row === undefined ? [] : [row];
}

/** The uids of the people whom a change adds and takes away, as far as that changes anything. */
interface MemberDifference {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

const NO_MEMBERS: MemberDifference = { added: [], removed: [] };

/** A change of a group. */
interface GroupChange {
  readonly before: ScimGroupRow;
  readonly changed: ScimGroupRow;
  readonly difference: MemberDifference;
}

/** How a group is found that a request changes. */
const collection = { find: findById, type: groupType };

class GroupChanges {
  readonly #deps: GroupDeps;

  constructor(deps: GroupDeps) {
    this.#deps = deps;
  }

  /** @throws ScimError 409, ApiError RESOURCE_EXHAUSTED */
  async create(write: Write, resource: Resource): Promise<ScimGroupRow> {
    const { ids, quotas } = this.#deps;
    const change = readMembers(resource);
    const values = toGroupValues(resource);
    const isSmall = change.members.size <= MAX_UNIT;
    const row = await write(async (tx, context) => {
      const { providerUid, actor, nowMs } = context;
      await requireContracted(tx, "a group of a directory", "1.16.0");
      await requireUniqueId(tx, providerUid, values.externalId);
      await quotas.requireRoom(tx, { kind: "scimGroups", ownerUid: rootOf(providerUid) });
      const uid = ids.newUid(providerUid);
      const stored: ScimGroupRow = {
        ...{ uid, providerUid, ...values, mappedId: buildMappedId({ uid, externalId: values.externalId }) },
        // Not 1, so that no version of a group that was deleted comes again.
        ...{ memberSet: 1, revision: nowMs, createTimeMs: nowMs, updateTimeMs: nowMs },
      };
      await tx.table(scimGroupKind).insert(stored);
      const added = isSmall ? [...readUids(stored, change)].map(([one]) => one) : [];
      await addMembers(tx, stored, await findPeople(tx, providerUid, added), this.#contextOf(context));
      await recordGroupChange(tx, actor, { after: stored, added }, nowMs);
      return stored;
    });
    if (isSmall) return row;
    try {
      return await this.#replaceMembers(write, { id: idOf(row), ifMatch: undefined }, change, (before) => before);
    } catch (error) {
      // A group without the members with which it was sent would look as if it had none.
      await this.delete(write, { id: idOf(row), ifMatch: undefined });
      throw error;
    }
  }

  /** @throws ScimError 404, 409, 412, ApiError RESOURCE_EXHAUSTED, UNAVAILABLE */
  async change(write: Write, target: Target, change: Change): Promise<ScimGroupRow> {
    const { members, apply } = readGroupChange(change);
    if (members !== undefined && (members.isWhole || members.members.size > MAX_UNIT)) {
      return this.#replaceMembers(write, target, members, apply);
    }
    const row = await write(async (tx, context) => {
      const before = await requireTarget(collection, tx, context.providerUid, target);
      const difference = members === undefined ? NO_MEMBERS : await compareSome(tx, before, members);
      return this.#apply(tx, { before, changed: apply(before), difference }, context);
    });
    await this.#continueWork(row.providerUid);
    return row;
  }

  async delete(write: Write, target: Target): Promise<void> {
    const { providerUid } = await write(async (tx, context) => {
      const before = await requireTarget(collection, tx, context.providerUid, target);
      await deleteGroup(tx, before, this.#contextOf(context));
      await recordGroupChange(tx, context.actor, { before }, context.nowMs);
      return before;
    });
    await this.#continueWork(providerUid);
  }

  // Replaces the members by what a read says that they become. It begins again where others came in between.
  async #replaceMembers(
    write: Write,
    target: Target,
    change: MemberChange,
    apply: (before: ScimGroupRow) => ScimGroupRow,
  ): Promise<ScimGroupRow> {
    for (let tries = 1; ; tries++) {
      try {
        const row = await this.#tryReplacement(write, target, change, apply);
        await this.#continueWork(row.providerUid);
        return row;
      } catch (error) {
        if (error instanceof UnknownMemberError) throw unknownMember(error.uid);
        if (!(error instanceof MembersReplacedError)) throw error;
        if (tries === MAX_TRIES) throw unavailable("others change the members of this group all the time", RETRY_MS);
      }
    }
  }

  async #tryReplacement(
    write: Write,
    target: Target,
    change: MemberChange,
    apply: (before: ScimGroupRow) => ScimGroupRow,
  ): Promise<ScimGroupRow> {
    const group = await write((tx, { providerUid }) => requireTarget(collection, tx, providerUid, target));
    // Thousands of members are read in a unit that keeps no other waiting.
    const { wanted, difference } = await this.#deps.store.read((tx) => compareAll(tx, group, change));
    const isSmall = difference.added.length + difference.removed.length <= MAX_UNIT;
    const written = isSmall
      ? undefined
      : await writeMembers({ write: (unit) => write((tx) => unit(tx)) }, group, wanted);
    return write(async (tx, context) => {
      const before = await requireTarget(collection, tx, context.providerUid, target);
      if (before.revision !== group.revision) throw new MembersReplacedError();
      if (isSmall) return this.#apply(tx, { before, changed: apply(before), difference }, context);
      const stored = await this.#store(tx, before, apply(before), context);
      const after = await switchMembers(tx, stored, written, this.#contextOf(context));
      await recordGroupChange(tx, context.actor, { before, after, ...difference }, context.nowMs);
      return after;
    });
  }

  // Changes a group with at most as many members as one unit of work takes. What changes nothing stores nothing.
  async #apply(tx: Tx, { before, changed, difference }: GroupChange, context: ChangeContext): Promise<ScimGroupRow> {
    const { added, removed } = difference;
    const isSame = isDeepStrictEqual(toGroupResource(before), toGroupResource(changed));
    if (isSame && added.length + removed.length === 0) return before;
    const people = {
      added: await findPeople(tx, before.providerUid, added),
      removed: await findPeople(tx, before.providerUid, removed),
    };
    const after = await this.#store(tx, before, changed, context);
    const directory = this.#contextOf(context);
    await removeMembers(tx, after, people.removed, directory);
    await addMembers(tx, after, people.added, directory);
    await recordGroupChange(tx, context.actor, { before, after, added, removed }, context.nowMs);
    return after;
  }

  async #store(tx: Tx, before: ScimGroupRow, changed: ScimGroupRow, context: ChangeContext): Promise<ScimGroupRow> {
    if (changed.externalId !== before.externalId) await requireUniqueId(tx, before.providerUid, changed.externalId);
    const after: ScimGroupRow = {
      ...changed,
      mappedId: buildMappedId(changed),
      revision: before.revision + 1,
      updateTimeMs: Math.max(context.nowMs, before.updateTimeMs),
    };
    await tx.table(scimGroupKind).replace(after);
    if (after.mappedId !== before.mappedId) await followMappedId(tx, after, this.#contextOf(context));
    return after;
  }

  async #continueWork(providerUid: string): Promise<void> {
    const { store, clock, ids, quotas } = this.#deps;
    const untilMs = performance.now() + MAX_WORK_MS;
    await continueWork(store, {
      context: (nowMs) => ({ ids, quotas, nowMs }),
      nowMs: clock,
      isStopped: () => performance.now() >= untilMs,
      providerUid,
    });
  }

  #contextOf({ actor, nowMs }: ChangeContext): DirectoryContext {
    const { ids, quotas } = this.#deps;
    return { ids, quotas, nowMs, request: toRequest(actor) };
  }
}

// What a request changes: the members, and the other attributes as a function of the stored row.
function readGroupChange(change: Change): {
  readonly members: MemberChange | undefined;
  readonly apply: (before: ScimGroupRow) => ScimGroupRow;
} {
  if (change.by === "replacement") {
    const values = toGroupValues(change.resource);
    return { members: readMembers(change.resource), apply: (before) => ({ ...before, ...values }) };
  }
  const { change: members, others } = readMemberChange(change.operations);
  const apply = (before: ScimGroupRow) =>
    others.length === 0
      ? before
      : { ...before, ...toGroupValues(applyPatch(toGroupResource(before), others, groupType)) };
  return { members, apply };
}

// The people with these uids, of whom each must be there.
async function findPeople(tx: Tx, providerUid: string, uids: readonly string[]): Promise<ScimUserRow[]> {
  const people: ScimUserRow[] = [];
  for (const uid of uids) {
    const person = await tx.table(scimUserKind).find(uid);
    if (person?.providerUid !== providerUid) throw unknownMember(uid);
    people.push(person);
  }
  return people;
}

function unknownMember(uid: string): ScimError {
  return badRequest("invalidValue", `members: there is no person with the id ${idOf({ uid })}`);
}

// The uids of the people that a change names. Whoever cannot be one is no member, so nothing is to be taken away.
function* readUids({ providerUid }: ScimGroupRow, { members }: MemberChange): Generator<[string, boolean]> {
  for (const [id, isMember] of members) {
    const uid = uidOf(providerUid, id);
    if (uid !== undefined) yield [uid, isMember];
    else if (isMember) throw unknownMember(id);
  }
}

// What a change of some members changes; reads no others.
async function compareSome(tx: Tx, group: ScimGroupRow, change: MemberChange): Promise<MemberDifference> {
  const { uid: groupUid, memberSet } = group;
  const [added, removed]: [string[], string[]] = [[], []];
  for (const [userUid, isMember] of readUids(group, change)) {
    if ((await tx.scimMembers.isMember({ groupUid, memberSet, userUid })) === isMember) continue;
    (isMember ? added : removed).push(userUid);
  }
  return { added, removed };
}

// All members after a change, and what that changes.
async function compareAll(tx: Tx, group: ScimGroupRow, change: MemberChange) {
  const before = await listMembers(tx, group);
  const wanted = new Set(change.isWhole ? [] : before);
  for (const [uid, isMember] of readUids(group, change)) {
    if (isMember) wanted.add(uid);
    else wanted.delete(uid);
  }
  const known = new Set(before);
  const difference: MemberDifference = {
    added: [...wanted].filter((uid) => !known.has(uid)),
    removed: before.filter((uid) => !wanted.has(uid)),
  };
  return { wanted: [...wanted], difference };
}

async function listMembers(tx: Tx, { uid: groupUid, memberSet }: ScimGroupRow): Promise<string[]> {
  const uids: string[] = [];
  for (let after = ""; ; ) {
    const slice = await tx.scimMembers.list({ groupUid, memberSet }, after, SLICE);
    for (const { uid } of slice) uids.push(uid);
    const last = slice.at(-1);
    if (last === undefined || slice.length < SLICE) return uids;
    after = last.uid;
  }
}

async function requireUniqueId(tx: Tx, providerUid: string, externalId: string): Promise<void> {
  if (externalId === "") return;
  if ((await tx.table(scimGroupKind).findByExternalId(providerUid, externalId)) === undefined) return;
  throw new ScimError(409, "externalId: another group has it", "uniqueness");
}
