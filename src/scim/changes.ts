// What directories change in the audit log and in events: the provider of the credential is the actor.

import { ScimUserSchema, ScimUsersService } from "#gen/chainguard/platform/iam/v2beta1/scim_users_pb.js";
import { scimUserToProto } from "../iam/scim-users/scim-user.js";
import {
  formatBody,
  SCIM_GROUP_CREATED,
  SCIM_GROUP_DELETED,
  SCIM_GROUP_UPDATED,
  SCIM_USER_CREATED,
  SCIM_USER_DELETED,
  SCIM_USER_REJECTED,
  SCIM_USER_UPDATED,
} from "../kernel/audit-body.js";
import { rootOf } from "../kernel/uidp.js";
import { describeChange } from "../pipeline/body.js";
import type { ScimGroupRow } from "../store/iam/scim-groups.js";
import type { ScimUserRow } from "../store/iam/scim-users.js";
import type { Tx } from "../store/transaction.js";

/** How bodies of the audit log show the people whom directories send. */
export const scimUserView = { message: ScimUserSchema, readers: [ScimUsersService.method.listScimUsers] } as const;

/** Who calls, for the audit log. */
export interface Actor {
  readonly providerUid: string;
  readonly providerName: string;
  /** What tells the credentials of a provider apart, without being one. */
  readonly credentialId: string;
  readonly method: string;
  readonly requestId: string;
  readonly traceId: string;
  readonly remoteAddress: string;
}

/** The request of a directory, for the audit rows of what follows from it (iam/directories). */
export function toRequest({ credentialId, method, requestId, traceId, remoteAddress }: Actor) {
  return { method, requestId, traceId, remoteAddress, tokenId: credentialId };
}

interface ChangedUser {
  readonly before?: ScimUserRow | undefined;
  readonly after?: ScimUserRow | undefined;
}

/** Records the change of a person; the last thing that a unit of work does. */
export async function recordChange(tx: Tx, actor: Actor, { before, after }: ChangedUser, nowMs: number): Promise<void> {
  const type = before === undefined ? SCIM_USER_CREATED : after === undefined ? SCIM_USER_DELETED : SCIM_USER_UPDATED;
  const subjectUid = (after ?? before)?.uid ?? "";
  const change = describeChange(scimUserView, {
    before: before && scimUserToProto(before),
    after: after && scimUserToProto(after),
  });
  await append(tx, actor, { type, subjectUid, body: formatBody(change, type) }, nowMs);
}

/** Records that a change is rejected, because it would leave an organisation without an owner. */
export async function recordRejection(
  tx: Tx,
  actor: Actor,
  row: ScimUserRow,
  rule: string,
  nowMs: number,
): Promise<void> {
  const after = { uid: row.uid, userName: row.userName, rule };
  const body = formatBody({ type: SCIM_USER_REJECTED, after }, SCIM_USER_REJECTED);
  await append(tx, actor, { type: SCIM_USER_REJECTED, subjectUid: row.uid, body }, nowMs);
}

/** What changes in a group. */
interface ChangedGroup {
  readonly before?: ScimGroupRow | undefined;
  readonly after?: ScimGroupRow | undefined;
  /** The uids of people who became members, and of those who are no members any more. */
  readonly added?: readonly string[];
  readonly removed?: readonly string[];
}

/** How many people an entry names. */
const MAX_NAMED = 100;

/** Records the change of a group. */
export async function recordGroupChange(
  tx: Tx,
  actor: Actor,
  { before, after, added = [], removed = [] }: ChangedGroup,
  nowMs: number,
): Promise<void> {
  const type =
    before === undefined ? SCIM_GROUP_CREATED : after === undefined ? SCIM_GROUP_DELETED : SCIM_GROUP_UPDATED;
  const members = {
    ...(added.length > 0 && { membersAdded: added.slice(0, MAX_NAMED), membersAddedCount: added.length }),
    ...(removed.length > 0 && { membersRemoved: removed.slice(0, MAX_NAMED), membersRemovedCount: removed.length }),
  };
  const change = {
    type,
    ...(before && { before: describeGroup(before) }),
    ...(after && { after: { ...describeGroup(after), ...members } }),
  };
  await append(tx, actor, { type, subjectUid: (after ?? before)?.uid ?? "", body: formatBody(change, type) }, nowMs);
}

function describeGroup({ uid, providerUid, displayName, externalId }: ScimGroupRow) {
  return { uid, identityProviderUid: providerUid, displayName, externalId };
}

interface Entry {
  readonly type: string;
  readonly subjectUid: string;
  readonly body: string;
}

async function append(tx: Tx, actor: Actor, entry: Entry, timeMs: number): Promise<void> {
  const { providerUid, providerName, credentialId, ...request } = actor;
  await tx.audit.append({
    ...entry,
    ...request,
    rootUid: rootOf(entry.subjectUid),
    timeMs,
    actorUid: providerUid,
    actorName: providerName,
    tokenId: credentialId,
  });
}
