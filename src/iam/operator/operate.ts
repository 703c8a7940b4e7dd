// Operations of the operator on the host. No method of the API runs them.
import { OrgKindSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import type { RoleBinding } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { type Change, formatBody } from "../../kernel/audit-body.js";
import { failedPrecondition, invalidArgument } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import { parentOf, rootOf } from "../../kernel/uidp.js";
import { describeChange } from "../../pipeline/body.js";
import { getRow } from "../../pipeline/resource/read.js";
import { type GroupPatch, type GroupRow, groupKind } from "../../store/iam/groups.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import type { Tx } from "../../store/transaction.js";
import { groups, groupToProto } from "../groups/group.js";
import { groupView } from "../groups/group-v2beta1.js";
import { identities } from "../identities/identity.js";
import { describeIdentityUpdate, IDENTITY_UPDATED, revokeAllTokens } from "../identities/revocation.js";
import { requireOwner } from "../rights.js";
import { insertBinding } from "../role-bindings/create-binding.js";
import { roleBindings, roleBindingToProto, roleBindingView } from "../role-bindings/role-binding.js";
import { isOperatorRole } from "../roles/builtin-roles.js";
import { roles } from "../roles/role.js";

/** The time and the ids of an operation on the host. */
export interface HostContext {
  readonly ids: Ids;
  readonly nowMs: number;
}

const DOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$/;

/** How an organisation gets its name in paths of the registry. */
export interface RegistryNameOptions {
  /** Whether what was pushed under its uid is pulled there until it is moved. */
  readonly keepUidPulls?: boolean;
  /** Whether the name may have been that of an organisation that was deleted. */
  readonly reuseRegistryName?: boolean;
}

/**
 * Confirms that a root group is the organisation of its name, which is a domain. From then on no other
 * verified group has the name, and it cannot change. It is also the organisation's name in paths of the registry.
 *
 * @param kind name of an OrgKind, such as `ORG_KIND_CUSTOMER`; absent: unchanged
 * @returns the name in paths of the registry where it is new; undefined where it was recorded before
 * @throws ApiError NOT_FOUND, INVALID_ARGUMENT, or FAILED_PRECONDITION when the group is no root, is
 * not named like a domain, or another verified root has or had the name.
 */
export async function verifyGroup(
  tx: Tx,
  uid: string,
  kind: string | undefined,
  context: HostContext,
  options: RegistryNameOptions = {},
): Promise<string | undefined> {
  const row = await getRow(tx, groups, uid);
  const notVerifiable = (rule: string) => failedPrecondition("GROUP_NOT_VERIFIABLE", rule);
  if (row.parentUid !== null) throw notVerifiable("only a root group can be verified");
  if (!DOMAIN.test(row.name)) throw notVerifiable("a verified group must be named like a domain, such as example.org");
  const namesake = await tx.table(groupKind).findVerifiedRoot(row.name);
  if (namesake !== undefined && namesake.uid !== uid) throw notVerifiable("another verified group has this name");
  const patch: GroupPatch = { verified: true, ...(kind !== undefined && { kind: parseKind(kind) }) };
  const recorded = await tx.registry.findName(uid);
  if (recorded === undefined) await recordRegistryName(tx, row, options);
  const verified = (await tx.table(groupKind).update(uid, patch, context.nowMs)) ?? row;
  const change = describeChange(groupView, { before: groupToProto(row), after: groupToProto(verified) });
  await auditOnHost(tx, { type: "dev.chainguard.api.iam.group.updated.v1", subjectUid: uid, change }, context);
  return recorded === undefined ? row.name : undefined;
}

// The registry keeps images when an organisation is deleted. The next organisation with the name would serve them.
async function recordRegistryName(
  tx: Tx,
  { uid, name }: GroupRow,
  { keepUidPulls = false, reuseRegistryName = false }: RegistryNameOptions,
): Promise<void> {
  const holder = (await tx.registry.findByName(name))?.groupUid;
  if (holder !== undefined && (await tx.table(groupKind).find(holder)) !== undefined) {
    throw failedPrecondition("REGISTRY_NAME", `${name} is the name of the group ${holder} in the registry`);
  }
  if (holder !== undefined && !reuseRegistryName) {
    const rule = `delete what it left under ${name}/ there, then verify with --reuse-registry-name`;
    throw failedPrecondition("REGISTRY_NAME", `${name} was the name of a deleted group in the registry: ${rule}`);
  }
  await tx.registry.putName({ name, groupUid: uid, uidPath: keepUidPulls ? "pulls" : "closed" });
}

function parseKind(name: string): number {
  const value = OrgKindSchema.values.find((one) => one.name === name);
  if (value !== undefined) return value.number;
  const names = OrgKindSchema.values.map((one) => one.name).join(", ");
  throw invalidArgument({ field: "kind", rule: `must be one of ${names}` });
}

/**
 * Revokes every token and every login of an identity, as TokensService does. It can still get new ones.
 *
 * @throws ApiError NOT_FOUND
 */
export async function revokeTokens(tx: Tx, uid: string, { ids, nowMs }: HostContext): Promise<void> {
  const before = await getRow(tx, identities, uid);
  const { identity } = await revokeAllTokens(tx, before, nowMs);
  if (parentOf(uid) !== undefined) {
    const change = describeIdentityUpdate(before, identity);
    await auditOnHost(tx, { type: IDENTITY_UPDATED, subjectUid: uid, change }, { ids, nowMs });
  }
  await auditOnHost(tx, { type: "arbor.identity.revoked.v1", subjectUid: uid }, { ids, nowMs });
}

/** An identity, a role and the group to bind them at. */
export interface HostBinding {
  readonly identity: string;
  readonly role: string;
  readonly group: string;
  /** Whether the role is an operator role. It must be confirmed, because such roles exceed what organisations have. */
  readonly internal?: boolean;
}

/**
 * Binds an identity to a role at a group; returns the uid of the binding.
 *
 * @throws ApiError NOT_FOUND when the group, the identity or the role does not exist, FAILED_PRECONDITION for an
 * operator role without `internal` or another role with it, and for an operator role of somebody who logs in through
 * an organisation's own provider, because that organisation decides who they are.
 */
export async function bindIdentity(
  tx: Tx,
  { identity, role, group, internal = false }: HostBinding,
  { ids, nowMs }: HostContext,
): Promise<string> {
  await getRow(tx, groups, group);
  const { providerUid } = await getRow(tx, identities, identity);
  await getRow(tx, roles, role);
  if (isOperatorRole(role) !== internal) {
    const rule = internal
      ? "not an operator role: bind it without --internal"
      : "an operator role: bind it with --internal";
    throw failedPrecondition("ROLE_NOT_BINDABLE", `role ${role} is ${rule}`);
  }
  if (internal && providerUid !== null) {
    const rule = "logs in through an organisation's own provider, so no operator role can be bound to it";
    throw failedPrecondition("IDENTITY_NOT_BINDABLE", `identity ${identity} ${rule}`);
  }
  const { uid } = await insertBinding(tx, group, { identityUid: identity, roleUid: role }, { ids, nowMs });
  const change = describeChange(roleBindingView, { after: await showBinding(tx, uid) });
  await auditOnHost(
    tx,
    { type: "dev.chainguard.api.iam.rolebindings.created.v1", subjectUid: uid, change },
    { ids, nowMs },
  );
  return uid;
}

/**
 * Deletes a binding, of any role.
 *
 * @throws ApiError NOT_FOUND, or FAILED_PRECONDITION where an organisation would be left without an owner.
 */
export async function unbindIdentity(tx: Tx, uid: string, { ids, nowMs }: HostContext): Promise<void> {
  const row = await getRow(tx, roleBindings, uid);
  await tx.table(roleBindingKind).delete(uid);
  await requireOwner(tx, row.groupUid);
  const change = describeChange(roleBindingView, { before: roleBindingToProto(row) });
  await auditOnHost(
    tx,
    { type: "dev.chainguard.api.iam.rolebindings.deleted.v1", subjectUid: uid, change },
    { ids, nowMs },
  );
}

/** Reads a binding as bodies of the audit log show it. */
export async function showBinding(tx: Tx, uid: string): Promise<RoleBinding> {
  return roleBindingToProto(await getRow(tx, roleBindings, uid));
}

/**
 * Records an operation on the host in the audit log. No identity is its actor.
 *
 * @param change what it changed; without it there is nothing to say but that it was done
 */
export function auditOnHost(
  tx: Tx,
  { type, subjectUid, change }: { readonly type: string; readonly subjectUid: string; readonly change?: Change },
  { ids, nowMs: timeMs }: HostContext,
): Promise<void> {
  return tx.audit.append({
    ...(change && { body: formatBody(change, type) }),
    rootUid: rootOf(subjectUid),
    timeMs,
    type,
    method: "arbor",
    subjectUid,
    actorUid: "",
    tokenId: "",
    requestId: ids.newId(),
    remoteAddress: "",
  });
}
