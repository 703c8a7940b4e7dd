// What a change of a directory's groups, members, mappings or people leaves to do. A change takes effect in one unit of work,
// whatever its size, because a managed binding counts only while its members and mappings are there. The bindings themselves
// follow: at once for few people, else in units of at most 100, which scim_work remembers.
//
//   group    reconciles the members of a group from a position on: a mapping came or went, or the group has another id
//   members  reconciles people whose rows count no more, and deletes these: a group is gone, or has another set of members
//   person   reconciles one identity: it has more bindings than one unit changes, the person is gone, or a quota was full
//
// Each function below belongs to the unit of work of its change, and does the first unit of what follows there. `continueWork`
// does the rest, in the call until its deadline and in the job: a call that is killed leaves rows of scim_work, never wrong rights.
import { isQuotaExceeded } from "../../kernel/errors.js";
import type { GroupMappingRow } from "../../store/iam/group-mappings.js";
import { type ScimGroupRow, scimGroupKind } from "../../store/iam/scim-groups.js";
import { type ScimUserRow, scimUserKind } from "../../store/iam/scim-users.js";
import type { ScimWorkKey } from "../../store/iam/scim-work.js";
import type { Store } from "../../store/store.js";
import type { ScimWorkRow } from "../../store/tables/scim.js";
import type { Tx } from "../../store/transaction.js";
import { type DirectoryContext, DirectoryRights, MAX_UNIT } from "./rights.js";

/** How many rows of work are read at a time. */
const MAX_READ = 100;

type SomeUser = Pick<ScimUserRow, "uid" | "identityUid">;

/**
 * Adds people to the members of a group.
 *
 * @param users at most {@link MAX_UNIT}, of the provider of the group
 */
export async function addMembers(
  tx: Tx,
  group: ScimGroupRow,
  users: readonly SomeUser[],
  context: DirectoryContext,
): Promise<void> {
  for (const { uid } of users) {
    await tx.scimMembers.add({ groupUid: group.uid, memberSet: group.memberSet, userUid: uid });
  }
  await reconcileAll(tx, group.providerUid, users, context);
}

/** Removes people from the members of a group; as {@link addMembers}. */
export async function removeMembers(
  tx: Tx,
  group: ScimGroupRow,
  users: readonly SomeUser[],
  context: DirectoryContext,
): Promise<void> {
  for (const { uid } of users) {
    await tx.scimMembers.remove({ groupUid: group.uid, memberSet: group.memberSet, userUid: uid });
  }
  await reconcileAll(tx, group.providerUid, users, context, true);
}

/** A person whom a new set of members names and who is not there. */
export class UnknownMemberError extends Error {
  readonly uid: string;

  constructor(uid: string) {
    super(`there is no person ${uid}`);
    this.uid = uid;
  }
}

/** Another call has replaced the members of a group, or deleted the group, while a set was being written. */
export class MembersReplacedError extends Error {
  constructor() {
    super("the members of the group have been replaced meanwhile");
  }
}

/**
 * Writes a new set of members of a group, in units of work. It has no effect before {@link switchMembers}.
 *
 * @returns the number of the set; undefined for one without members, which takes no writing
 * @throws UnknownMemberError, MembersReplacedError
 */
export async function writeMembers(
  { write }: Pick<Store, "write">,
  { uid: groupUid, providerUid }: ScimGroupRow,
  userUids: readonly string[],
  { maxUnit = MAX_UNIT }: Pick<DirectoryContext, "maxUnit"> = {},
): Promise<number | undefined> {
  let memberSet: number | undefined;
  for (let start = 0; start < userUids.length; start += maxUnit) {
    const known: number | undefined = memberSet;
    memberSet = await write(async (tx) => {
      const group = await tx.table(scimGroupKind).find(groupUid);
      // Rows of a lower set would never be deleted.
      if (group === undefined || (known ?? Number.MAX_SAFE_INTEGER) <= group.memberSet)
        throw new MembersReplacedError();
      const next = known ?? (await findNextSet(tx, group));
      for (const userUid of userUids.slice(start, start + maxUnit)) {
        const user = await tx.table(scimUserKind).find(userUid);
        if (user?.providerUid !== providerUid) throw new UnknownMemberError(userUid);
        await tx.scimMembers.add({ groupUid, memberSet: next, userUid });
      }
      return next;
    });
  }
  return memberSet;
}

// A set that another call is writing has a row, so that its number is known.
async function findNextSet(tx: Tx, { uid, memberSet }: ScimGroupRow): Promise<number> {
  return Math.max(memberSet, await tx.scimMembers.findLastSet(uid)) + 1;
}

/**
 * Makes a set that {@link writeMembers} has written that of the group. Its former members lose at once what they had by it.
 *
 * @param written what {@link writeMembers} returned
 * @returns the stored row
 * @throws MembersReplacedError
 */
export async function switchMembers(
  tx: Tx,
  group: ScimGroupRow,
  written: number | undefined,
  context: DirectoryContext,
): Promise<ScimGroupRow> {
  const memberSet = written ?? (await findNextSet(tx, group));
  if (memberSet <= group.memberSet) throw new MembersReplacedError();
  const after = { ...group, memberSet };
  await tx.table(scimGroupKind).replace(after);
  await tx.scimWork.add(group.providerUid, "group", group.uid);
  await begin(tx, { providerUid: group.providerUid, kind: "members", uid: group.uid }, context);
  return after;
}

/** Deletes a group. Its members lose at once what they had by it. */
export async function deleteGroup(
  tx: Tx,
  { uid, providerUid }: ScimGroupRow,
  context: DirectoryContext,
): Promise<void> {
  await tx.table(scimGroupKind).delete(uid);
  await tx.scimWork.delete({ providerUid, kind: "group", uid });
  await begin(tx, { providerUid, kind: "members", uid }, context);
}

/** Follows the change of what mappings name a group by, after its row has changed. */
export async function followMappedId(
  tx: Tx,
  { uid, providerUid }: ScimGroupRow,
  context: DirectoryContext,
): Promise<void> {
  await begin(tx, { providerUid, kind: "group", uid }, context);
}

/**
 * Follows the creation or the deletion of a mapping, after its row is there or gone.
 *
 * @param change what became of the mapping
 */
export async function followMapping(
  tx: Tx,
  { providerUid, externalGroupId }: Pick<GroupMappingRow, "providerUid" | "externalGroupId">,
  change: "created" | "deleted",
  context: DirectoryContext,
): Promise<void> {
  const groups = await tx.table(scimGroupKind).findByMappedId(providerUid, externalGroupId);
  for (const { uid } of groups) await begin(tx, { providerUid, kind: "group", uid }, context, change === "deleted");
}

/** Gives somebody whom the directory knows, and who signs in for the first time, what the groups of the directory grant. */
export async function followLink(
  tx: Tx,
  providerUid: string,
  identityUid: string,
  context: DirectoryContext,
): Promise<void> {
  try {
    await reconcileAll(tx, providerUid, [{ identityUid }], context);
  } catch (error) {
    if (!isQuotaExceeded(error)) throw error;
    // A quota keeps nobody from signing in. The job says which one is full until there is room.
    await tx.scimWork.add(providerUid, "person", identityUid);
  }
}

/**
 * Takes somebody out of groups, before the person is deleted.
 *
 * @returns whether the person is in no group any more; otherwise it is called again
 */
export async function leaveGroups(tx: Tx, user: ScimUserRow, context: DirectoryContext): Promise<boolean> {
  const { maxUnit = MAX_UNIT } = context;
  const rows = await tx.scimMembers.findRowsOf(user.uid, maxUnit);
  for (const row of rows) await tx.scimMembers.remove(row);
  if (rows.length > 0) await reconcileAll(tx, user.providerUid, [user], context, true);
  return rows.length < maxUnit;
}

/**
 * Deletes some of the groups, members and work of a provider that is about to be deleted, after its bindings.
 *
 * @returns how many rows; 0 where none are left
 */
export async function deleteSomeGroups(tx: Tx, providerUid: string, limit: number): Promise<number> {
  const [group] = await tx.table(scimGroupKind).findAfter(providerUid, "", 1);
  if (group !== undefined) return (await deleteSomeMembers(tx, group.uid, limit)) || deleteRow(tx, group);
  const [work] = await tx.scimWork.list(1, providerUid);
  if (work === undefined) return 0;
  const deleted = work.kind === "members" ? await deleteSomeMembers(tx, work.uid, limit) : 0;
  if (deleted === 0) await tx.scimWork.delete(work);
  return deleted || 1;
}

async function deleteRow(tx: Tx, { uid }: ScimGroupRow): Promise<number> {
  await tx.table(scimGroupKind).delete(uid);
  return 1;
}

async function deleteSomeMembers(tx: Tx, groupUid: string, limit: number): Promise<number> {
  const rows = await tx.scimMembers.findStale(groupUid, undefined, limit);
  for (const row of rows) await tx.scimMembers.remove(row);
  return rows.length;
}

// Those of whom more is left than one unit changes are done later. People who have not signed in have no bindings.
async function reconcileAll(
  tx: Tx,
  providerUid: string,
  users: readonly Pick<ScimUserRow, "identityUid">[],
  context: DirectoryContext,
  takesOnly = false,
): Promise<void> {
  const rights = new DirectoryRights(tx, providerUid, context);
  for (const { identityUid } of users) {
    if (identityUid === null || (await rights.reconcile(identityUid, takesOnly))) continue;
    await tx.scimWork.add(providerUid, "person", identityUid);
  }
}

// Notes work, and does the first unit of it. What is only taken is not kept back by a full quota.
async function begin(tx: Tx, key: ScimWorkKey, context: DirectoryContext, takesOnly = false): Promise<void> {
  const pending = await tx.scimWork.find(key);
  const position = await workOn(tx, { ...key, position: "" }, context, takesOnly);
  // What was to be given before is to be given still.
  if (takesOnly && pending !== undefined) await tx.scimWork.put({ ...key, position: "" });
  else if (position !== undefined) await tx.scimWork.put({ ...key, position });
  else if (pending !== undefined) await tx.scimWork.delete(key);
}

/** Does one unit of work; returns the position after it, undefined after the last one. */
async function workOn(
  tx: Tx,
  { providerUid, kind, uid, position }: ScimWorkRow,
  context: DirectoryContext,
  takesOnly = false,
): Promise<string | undefined> {
  const { maxUnit = MAX_UNIT } = context;
  if (kind === "person") {
    return (await new DirectoryRights(tx, providerUid, context).reconcile(uid, takesOnly)) ? undefined : "";
  }
  const group = await tx.table(scimGroupKind).find(uid);
  if (kind === "group") {
    if (group === undefined) return undefined;
    const members = await tx.scimMembers.list({ groupUid: uid, memberSet: group.memberSet }, position, maxUnit);
    await reconcileAll(tx, providerUid, members, context, takesOnly);
    return members.length < maxUnit ? undefined : members.at(-1)?.uid;
  }
  const rows = await tx.scimMembers.findStale(uid, group?.memberSet, maxUnit);
  const users: SomeUser[] = [];
  for (const row of rows) {
    await tx.scimMembers.remove(row);
    const user = await tx.table(scimUserKind).find(row.userUid);
    if (user !== undefined) users.push(user);
  }
  // They are not given anything by losing a group.
  await reconcileAll(tx, providerUid, users, context, true);
  return rows.length < maxUnit ? undefined : "";
}

/** What {@link continueWork} needs of its caller. */
export interface WorkRun {
  readonly context: (nowMs: number) => DirectoryContext;
  readonly nowMs: () => number;
  /** Checked before each unit of work. */
  readonly isStopped: () => boolean;
  /** Of this provider alone; of all unless set. */
  readonly providerUid?: string;
}

/**
 * Does what changes have left to do, in units of work. Where a quota is full, the rest is done all the same.
 *
 * @returns how many units it did
 * @throws ApiError RESOURCE_EXHAUSTED with the name of the quota, after everything else
 */
export async function continueWork(
  { read, write }: Pick<Store, "read" | "write">,
  { context, nowMs, isStopped, providerUid }: WorkRun,
): Promise<number> {
  let units = 0;
  let full: unknown;
  // What a full quota leaves is not tried again in this run.
  const left = new Set<string>();
  let after: ScimWorkKey | undefined;
  for (;;) {
    const rows = await read((tx) => tx.scimWork.list(MAX_READ, providerUid, after));
    const todo = rows.filter((row) => !left.has(formatKey(row)));
    for (const row of todo) {
      let position: string | undefined = row.position;
      let takesOnly = false;
      while (position !== undefined) {
        if (isStopped()) return units;
        const unit: Unit = { key: row, position, takesOnly };
        try {
          position = await write((tx) => doUnit(tx, unit, context(nowMs())));
          units++;
        } catch (error) {
          if (!isQuotaExceeded(error) || takesOnly) throw error;
          full ??= error;
          takesOnly = true;
          left.add(formatKey(row));
        }
      }
    }
    // What is done is gone, and may have left more to do before it.
    after = todo.length > 0 ? undefined : rows.at(-1);
    if (todo.length === 0 && rows.length < MAX_READ) break;
  }
  if (full !== undefined) throw full;
  return units;
}

function formatKey({ providerUid, kind, uid }: ScimWorkKey): string {
  return `${providerUid} ${kind} ${uid}`;
}

interface Unit {
  readonly key: ScimWorkRow;
  readonly position: string;
  readonly takesOnly: boolean;
}

// Goes on from the stored position, which another process may have moved. What is only taken leaves it where it is.
async function doUnit(
  tx: Tx,
  { key, position, takesOnly }: Unit,
  context: DirectoryContext,
): Promise<string | undefined> {
  const stored = await tx.scimWork.find(key);
  if (stored === undefined) return undefined;
  const next = await workOn(tx, takesOnly ? { ...stored, position } : stored, context, takesOnly);
  if (takesOnly) return next;
  if (next === undefined) await tx.scimWork.delete(stored);
  else await tx.scimWork.put({ ...stored, position: next });
  return next;
}

/** How long a call waits for the units after its own, in milliseconds; the job does the rest. */
const MAX_WAIT_MS = 5_000;

/** Does what a change has left to do, for some seconds. It does not throw, because the job continues. */
export async function finishWork(store: Pick<Store, "read" | "write">, run: Omit<WorkRun, "isStopped">): Promise<void> {
  const untilMs = performance.now() + MAX_WAIT_MS;
  try {
    await continueWork(store, { ...run, isStopped: () => performance.now() >= untilMs });
  } catch {
    // What was taken is gone, and the job says why something is not given.
  }
}
