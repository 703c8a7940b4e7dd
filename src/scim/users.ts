// The people of a directory: what each operation of the endpoint does in its unit of work. A repeated request changes nothing
// and records nothing, because directories send all of their people again and again.
import { isDeepStrictEqual } from "node:util";
import { Code } from "@connectrpc/connect";
import { leaveGroups } from "../iam/directories/work.js";
import { setIdentityActive } from "../iam/identities/deactivation.js";
import { ApiError } from "../kernel/errors.js";
import type { Ids } from "../kernel/ids.js";
import { rootOf } from "../kernel/uidp.js";
import type { Quotas } from "../pipeline/resource/quota.js";
import { buildUserNameKey, type ScimUserOrder, type ScimUserRow, scimUserKind } from "../store/iam/scim-users.js";
import type { Tx } from "../store/transaction.js";
import { recordChange, recordRejection, toRequest } from "./changes.js";
import {
  type ChangeContext,
  type Collection,
  idOf,
  requireTarget,
  uidOf,
  type View,
  type Write,
} from "./collection.js";
import { type ListedResources, listRows } from "./list-rows.js";
import { equalityOf } from "./protocol/conditions.js";
import { ScimError } from "./protocol/error.js";
import type { Filter } from "./protocol/filter-tree.js";
import { applyPatch } from "./protocol/patch.js";
import type { Resource } from "./protocol/resource.js";
import { groupType, userType } from "./protocol/schemas.js";
import { toResource, toValues, type UserValues } from "./user-row.js";

const listedUsers: ListedResources<ScimUserRow, ScimUserOrder["by"]> = {
  type: userType,
  rows: (tx) => tx.table(scimUserKind),
  orders: { id: "uid", userName: "userNameKey", "meta.lastModified": "updateTimeMs" },
  findByIndex,
  toResource: (_tx, row) => toResource(row),
};

// At most one.
async function findByIndex(tx: Tx, providerUid: string, filter: Filter): Promise<ScimUserRow[] | undefined> {
  const users = tx.table(scimUserKind);
  const [userName, externalId, id] = ["userName", "externalId", "id"].map((name) => equalityOf(filter, name));
  let row: ScimUserRow | undefined;
  if (userName !== undefined) row = await users.findByUserName(providerUid, buildUserNameKey(userName));
  else if (externalId !== undefined) row = await users.findByExternalId(providerUid, externalId);
  else if (id !== undefined) row = await findById(tx, providerUid, id);
  else return undefined;
  return row === undefined ? [] : [row];
}

async function findById(tx: Tx, providerUid: string, id: string): Promise<ScimUserRow | undefined> {
  const uid = uidOf(providerUid, id);
  return uid === undefined ? undefined : tx.table(scimUserKind).find(uid);
}

interface UserDeps {
  readonly ids: Ids;
  readonly quotas: Quotas;
}

/** The people of directories. */
export function createUserCollection(deps: UserDeps): Collection<ScimUserRow> {
  const target = { find: findById, type: userType };
  return {
    ...target,
    list: (tx, providerUid, parameters) => listRows(listedUsers, tx, providerUid, parameters),
    create: (write, resource) => write((tx, context) => createUser(tx, resource, context, deps)),
    change: (write, { id, ifMatch }, change) =>
      noteRejected(write, async (tx, context) => {
        const before = await requireTarget(target, tx, context.providerUid, { id, ifMatch });
        return change.by === "replacement"
          ? replaceUser(tx, before, change.resource, context)
          : changeUser(tx, before, applyPatch(toResource(before), change.operations, userType), context);
      }),
    async delete(write, { id, ifMatch }) {
      const deletePart = () =>
        noteRejected(write, async (tx, context) => {
          const row = await requireTarget(target, tx, context.providerUid, { id, ifMatch });
          return deleteUser(tx, row, context, deps);
        });
      while (!(await deletePart()));
    },
    show: async (tx, row, view) => ({
      ...toResource(row),
      ...(view.isWanted("groups") && (await showGroups(tx, row, view))),
    }),
  };
}

/** How many groups of a person a response shows. */
const MAX_GROUPS = 100;

async function showGroups(tx: Tx, { uid }: ScimUserRow, { endpointUrl }: View): Promise<Resource> {
  const groups = await tx.scimMembers.findGroupsOf(uid, "", MAX_GROUPS);
  if (groups.length === 0) return {};
  const shown = groups.map((group) => ({
    value: idOf(group),
    $ref: `${endpointUrl}${groupType.endpoint}/${idOf(group)}`,
    display: group.displayName,
    type: "direct",
  }));
  return { groups: shown };
}

// Runs a unit of work. Where it would leave an organisation without an owner, that is noted.
async function noteRejected<T>(write: Write, unit: (tx: Tx, context: ChangeContext) => Promise<T>): Promise<T> {
  try {
    return await write(unit);
  } catch (error) {
    if (error instanceof LastOwnerError) await write((tx, context) => noteRejection(tx, error.row, context));
    throw error;
  }
}

/** A change that would leave an organisation without an active owner. */
class LastOwnerError extends ScimError {
  readonly row: ScimUserRow;

  constructor(row: ScimUserRow) {
    super(409, LAST_OWNER);
    this.row = row;
  }
}

const LAST_OWNER =
  "the person is the last owner of an organisation that may sign in: bind the role owner to somebody else there first, then send this again";

/**
 * Creates a person. One that the directory has deleted, by its external id, comes back with its uid and with the identity that it
 * is linked with.
 *
 * @throws ScimError 409 where there is a person with this user name or external id; ApiError RESOURCE_EXHAUSTED
 */
async function createUser(
  tx: Tx,
  resource: Resource,
  { providerUid, actor, nowMs }: ChangeContext,
  { ids, quotas }: UserDeps,
): Promise<ScimUserRow> {
  const users = tx.table(scimUserKind);
  const values = toValues({ active: true, ...resource }, true);
  await requireUnique(tx, providerUid, values);
  await quotas.requireRoom(tx, { kind: "scimUsers", ownerUid: rootOf(providerUid) });
  const former = values.externalId === "" ? undefined : await users.findFormer(providerUid, values.externalId);
  const row: ScimUserRow = {
    uid: former?.uid ?? ids.newUid(providerUid),
    providerUid,
    ...values,
    identityUid: former?.identityUid ?? null,
    // Not 1, so that no version of a person who was deleted comes again.
    revision: nowMs,
    rejectTimeMs: null,
    createTimeMs: former?.createTimeMs ?? nowMs,
    updateTimeMs: nowMs,
  };
  if (former !== undefined) await users.deleteFormer(providerUid, former.externalId);
  await users.insert(row);
  if (row.identityUid !== null && row.active) await setIdentityActive(tx, row.identityUid, true, nowMs);
  await recordChange(tx, actor, { after: row }, nowMs);
  return row;
}

/**
 * Replaces what a directory says of a person. What it does not say about `active` stays, and so does the external id of somebody
 * who has signed in.
 *
 * @throws ScimError 409, 412
 */
function replaceUser(tx: Tx, before: ScimUserRow, resource: Resource, context: ChangeContext): Promise<ScimUserRow> {
  const { active, externalId, identityUid } = before;
  const kept = { active, ...(identityUid !== null && { externalId }) };
  return changeUser(tx, before, { ...kept, ...resource }, context);
}

/**
 * Changes a person to `resource`.
 *
 * @throws ScimError 409 where another person has the user name or the external id, the external id of somebody who has signed in
 * would change, or {@link LastOwnerError}
 */
async function changeUser(
  tx: Tx,
  before: ScimUserRow,
  resource: Resource,
  { actor, nowMs }: ChangeContext,
): Promise<ScimUserRow> {
  const users = tx.table(scimUserKind);
  const values = toValues(resource, before.active);
  if (isDeepStrictEqual(toResource(values), toResource(before))) return forgetRejection(tx, before);
  if (before.identityUid !== null && values.externalId !== before.externalId) {
    throw new ScimError(409, "externalId: must not change, because the person has signed in by it", "mutability");
  }
  await requireUnique(tx, before.providerUid, values, before);
  const after: ScimUserRow = {
    ...before,
    ...values,
    revision: before.revision + 1,
    rejectTimeMs: null,
    updateTimeMs: Math.max(nowMs, before.updateTimeMs),
  };
  if (after.active !== before.active) await applyActive(tx, before, after.active, nowMs);
  await users.replace(after);
  await recordChange(tx, actor, { before, after }, nowMs);
  return after;
}

// The directory repeats what is stored, so it no longer wants what was rejected.
async function forgetRejection(tx: Tx, row: ScimUserRow): Promise<ScimUserRow> {
  if (row.rejectTimeMs === null) return row;
  const after = { ...row, rejectTimeMs: null };
  await tx.table(scimUserKind).replace(after);
  return after;
}

/**
 * Deletes a person. What has signed in as the person stays, deactivated, with what it is bound to by hand. Somebody who is in many
 * groups is deactivated first and leaves them in parts.
 *
 * @returns whether the person is deleted; otherwise it is called again
 * @throws LastOwnerError
 */
async function deleteUser(
  tx: Tx,
  row: ScimUserRow,
  { actor, nowMs }: ChangeContext,
  { ids, quotas }: UserDeps,
): Promise<boolean> {
  const users = tx.table(scimUserKind);
  await applyActive(tx, row, false, nowMs);
  if (!(await leaveGroups(tx, row, { ids, quotas, nowMs, request: toRequest(actor) }))) {
    await users.replace({ ...row, active: false });
    return false;
  }
  await users.delete(row.uid);
  if (row.externalId !== "") {
    const { providerUid, externalId, uid, identityUid, createTimeMs } = row;
    await users.putFormer({ providerUid, externalId, uid, identityUid, createTimeMs, deleteTimeMs: nowMs });
  }
  await recordChange(tx, actor, { before: row }, nowMs);
  return true;
}

/**
 * Notes that a change was rejected by {@link LastOwnerError}: once, however often the directory sends it.
 */
async function noteRejection(tx: Tx, { uid }: ScimUserRow, { actor, nowMs }: ChangeContext): Promise<void> {
  const users = tx.table(scimUserKind);
  const row = await users.find(uid);
  if (row === undefined || row.rejectTimeMs !== null) return;
  await users.replace({ ...row, rejectTimeMs: nowMs });
  await recordRejection(tx, actor, row, "OWNER_REQUIRED", nowMs);
}

async function applyActive(tx: Tx, row: ScimUserRow, active: boolean, nowMs: number): Promise<void> {
  if (row.identityUid === null) return;
  try {
    await setIdentityActive(tx, row.identityUid, active, nowMs);
  } catch (error) {
    if (error instanceof ApiError && error.code === Code.FailedPrecondition) throw new LastOwnerError(row);
    throw error;
  }
}

async function requireUnique(tx: Tx, providerUid: string, values: UserValues, before?: ScimUserRow): Promise<void> {
  const users = tx.table(scimUserKind);
  const { userNameKey, externalId } = values;
  if (userNameKey !== before?.userNameKey && (await users.findByUserName(providerUid, userNameKey)) !== undefined) {
    throw new ScimError(409, "userName: another person has it", "uniqueness");
  }
  if (externalId === "" || externalId === before?.externalId) return;
  if ((await users.findByExternalId(providerUid, externalId)) !== undefined) {
    throw new ScimError(409, "externalId: another person has it", "uniqueness");
  }
  if (before !== undefined && (await users.findFormer(providerUid, externalId)) !== undefined) {
    throw new ScimError(409, "externalId: a deleted person has it: create a person with it instead", "uniqueness");
  }
}
