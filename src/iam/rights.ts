// The rules against privilege escalation (docs/security.md): callers grant only rights that they hold.
import { hasOption } from "@bufbuild/protobuf";
import { Capability, CapabilitySchema, internal_only } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { type CapabilitySet, hasBit, includesSet } from "../kernel/capability-set.js";
import { type ApiError, failedPrecondition, notPermitted, permissionDenied } from "../kernel/errors.js";
import { builtinRoleUid } from "../kernel/ids.js";
import { rootOf } from "../kernel/uidp.js";
import { bitOf } from "../pipeline/auth/authorize.js";
import type { Caller } from "../pipeline/auth/caller.js";
import type { UnaryCall } from "../pipeline/call.js";
import type { RoleRow, Tx } from "../store/port.js";
import { builtinRoles, isOperatorRole } from "./roles/builtin-roles.js";
import { buildCapabilitySet } from "./roles/capability-names.js";

const owner = builtinRoleUid("owner");
const ownerRights = buildCapabilitySet(builtinRoles.owner ?? []);
// Roles that owners may grant although the owner role lacks their capabilities.
const ownersMayGrant = new Set(
  Object.keys(builtinRoles)
    .filter((name) => name.startsWith("advisories."))
    .map(builtinRoleUid),
);
const internalBit = bitOf(Capability.CAP_INTERNAL);
const internalOnly = CapabilitySchema.values
  .filter((value) => hasOption(value, internal_only))
  .map((value) => bitOf(value.number));

/**
 * Makes sure that the caller holds all of `rights` at `group` and may pass them on. What it holds by operator roles
 * is for itself alone.
 *
 * @throws ApiError PERMISSION_DENIED
 */
export function requireRights(caller: Caller, rights: CapabilitySet, group: string): void {
  const callerRights = transferableRightsAt(caller, group);
  const reserved = internalOnly.some((bit) => hasBit(rights, bit));
  if (includesSet(callerRights, rights) && (!reserved || hasBit(callerRights, internalBit))) return;
  throw lacksRights(group);
}

function lacksRights(group: string): ApiError {
  return permissionDenied(`granting rights at ${group} that the caller lacks there`);
}

function transferableRightsAt(caller: Caller, group: string): CapabilitySet {
  return caller.rightsByRoles(group, (roleUid) => !isOperatorRole(roleUid));
}

/**
 * Makes sure that the caller may bind `role` at `group`: it holds all capabilities of the role, or it owns
 * the group and owners may grant the role. Nobody may bind an operator role.
 *
 * @throws ApiError PERMISSION_DENIED
 */
export function requireGrantable(caller: Caller, role: Pick<RoleRow, "uid" | "capabilities">, group: string): void {
  if (isOperatorRole(role.uid)) throw lacksRights(group);
  if (ownersMayGrant.has(role.uid) && includesSet(transferableRightsAt(caller, group), ownerRights)) return;
  requireRights(caller, role.capabilities, group);
}

/**
 * Makes sure that a role is not an operator role, whose bindings no caller of the API creates, changes or deletes.
 *
 * @param action what the caller does, as the error names it
 * @throws ApiError PERMISSION_DENIED
 */
export function requireNotOperatorRole(roleUid: string, action: string): void {
  if (isOperatorRole(roleUid)) throw notPermitted(`${action}, whose role is the operator's`);
}

/**
 * Makes sure that the caller holds the rights of an owner of `group`.
 *
 * @throws ApiError PERMISSION_DENIED
 */
export function requireOwnersRights(caller: Caller, group: string): void {
  requireRights(caller, ownerRights, group);
}

/**
 * Makes sure that the caller holds all rights of an identity, at each group where the identity holds them.
 * Somebody who changes how an identity is assumed could otherwise gain its rights.
 *
 * @throws ApiError PERMISSION_DENIED
 */
export async function requireRightsOf(call: UnaryCall, identityUid: string): Promise<void> {
  const { tx } = call;
  const bindings = await tx.roleBindings.findByIdentity(identityUid);
  if (bindings.length === 0) return;
  for (const { roleUid, groupUid } of bindings) {
    const role = await tx.roles.find(roleUid);
    if (role) requireGrantable(await call.callerAt(groupUid), role, groupUid);
  }
}

/**
 * Makes sure that the organisation of `uid` still has an owner that exists.
 *
 * @throws ApiError FAILED_PRECONDITION of type OWNER_REQUIRED
 */
export async function requireOwner(tx: Tx, uid: string): Promise<void> {
  if ((await tx.roleBindings.countHolders(rootOf(uid), owner)) > 0) return;
  throw failedPrecondition("OWNER_REQUIRED", "a root group must keep an owner");
}
