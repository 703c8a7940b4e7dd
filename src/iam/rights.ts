// The rules against privilege escalation (docs/security.md): callers grant only rights that they hold, and for no longer than
// they hold them.
import { hasOption } from "@bufbuild/protobuf";
import { Capability, CapabilitySchema, internal_only } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { type CapabilitySet, hasBit, includesSet } from "../kernel/capability-set.js";
import { type ApiError, failedPrecondition, notPermitted, permissionDenied } from "../kernel/errors.js";
import { builtinRoleUid } from "../kernel/ids.js";
import { rootOf } from "../kernel/uidp.js";
import { bitOf } from "../pipeline/auth/authorize.js";
import type { Caller, Grant } from "../pipeline/auth/caller.js";
import type { UnaryCall } from "../pipeline/call.js";
import { roleBindingKind } from "../store/iam/role-bindings.js";
import type { RoleRow } from "../store/iam/roles.js";
import type { Tx } from "../store/transaction.js";
import { builtinRoles, findRightsToGrant, isOperatorRole, ownersRights } from "./roles/builtin-roles.js";

const owner = builtinRoleUid("owner");
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
 * Makes sure that the caller holds all of `rights` at `group` for ever and may pass them on. What it holds by operator
 * roles is for itself alone.
 *
 * @throws ApiError PERMISSION_DENIED
 */
export function requireRights(caller: Caller, rights: CapabilitySet, group: string): void {
  if (!mayPassOn(transferableRightsAt(caller, group), rights)) throw lacksRights(group);
}

function mayPassOn(callerRights: CapabilitySet, rights: CapabilitySet): boolean {
  const reserved = internalOnly.some((bit) => hasBit(rights, bit));
  return includesSet(callerRights, rights) && (!reserved || hasBit(callerRights, internalBit));
}

function lacksRights(group: string): ApiError {
  return permissionDenied(`granting rights at ${group} that the caller lacks there`);
}

// Rights that end do not count: what the caller does with them must not outlast them. A right that itself ends at `endMs`
// may rest on those that end no earlier.
function transferableRightsAt(caller: Caller, group: string, endMs: number | null = null): CapabilitySet {
  const lasts = ({ endTimeMs }: Grant) => endTimeMs === null || (endMs !== null && endMs <= endTimeMs);
  return caller.rightsBy(group, (grant) => !isOperatorRole(grant.roleUid) && lasts(grant));
}

/**
 * Makes sure that the caller may bind `role` at `group`: it holds all capabilities of the role, of a built-in one those
 * of {@link findRightsToGrant}, or it owns the group and owners may grant the role. Nobody may bind an operator role.
 *
 * @param endMs when what is granted ends, in epoch milliseconds: rights that the caller has until then count as well; null
 * for what does not end by itself
 * @throws ApiError PERMISSION_DENIED
 */
export function requireGrantable(caller: Caller, role: GrantedRole, group: string, endMs: number | null = null): void {
  if (!mayGrant(transferableRightsAt(caller, group, endMs), role)) throw lacksRights(group);
}

/** Whether {@link requireGrantable} lets the caller bind `role` at `group` for ever. */
export function mayGrantAt(caller: Caller, role: GrantedRole, group: string): boolean {
  return mayGrant(transferableRightsAt(caller, group), role);
}

type GrantedRole = Pick<RoleRow, "uid" | "capabilities">;

// Whether a caller with these rights at a group may bind the role there.
function mayGrant(callerRights: CapabilitySet, { uid, capabilities }: GrantedRole): boolean {
  if (isOperatorRole(uid)) return false;
  if (ownersMayGrant.has(uid) && includesSet(callerRights, ownersRights)) return true;
  return mayPassOn(callerRights, findRightsToGrant(uid) ?? capabilities);
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
 * Makes sure that the caller holds the rights of an owner of `group` for ever.
 *
 * @throws ApiError PERMISSION_DENIED
 */
export function requireOwnersRights(caller: Caller, group: string): void {
  requireRights(caller, ownersRights, group);
}

/**
 * The largest number of bindings that are compared one by one with what a caller holds. It bounds the time of the
 * check, because an identity may have more bindings than its quota allows now.
 */
const MAX_COMPARED = 1_000;

/**
 * Makes sure that the caller holds all rights of an identity for ever, at each group where the identity holds them, also
 * those that end: they may be extended. Somebody who changes how an identity is assumed could otherwise gain its rights.
 *
 * @throws ApiError PERMISSION_DENIED, FAILED_PRECONDITION for an identity with more bindings than can be compared,
 * where the caller does not hold its rights in the whole organisation.
 */
export async function requireRightsOf(call: UnaryCall, identityUid: string): Promise<void> {
  const { tx } = call;
  const roles = await tx.table(roleBindingKind).findRolesOf(identityUid);
  if (roles.length === 0) return;
  const root = rootOf(identityUid);
  const rights = transferableRightsAt(await call.callerAt(root), root);
  const isEverywhere = roles.every((role) => mayGrant(rights, role));
  if (isEverywhere && !(await tx.table(roleBindingKind).isBoundOutside(identityUid, root))) return;
  await requireRightsByGroup(call, identityUid, new Map(roles.map((role) => [role.uid, role])));
}

async function requireRightsByGroup(
  call: UnaryCall,
  identityUid: string,
  roles: ReadonlyMap<string, GrantedRole>,
): Promise<void> {
  const grants = await call.tx.table(roleBindingKind).findGrantsOf(identityUid, MAX_COMPARED + 1);
  if (grants.length > MAX_COMPARED) {
    const rule = `it has more than ${MAX_COMPARED} role bindings, so only a caller who holds its rights at the root group may`;
    throw failedPrecondition("TOO_MANY_BINDINGS", `changing how identity ${identityUid} is assumed: ${rule}`);
  }
  const rolesAt = new Map<string, GrantedRole[]>();
  for (const { groupUid, roleUid } of grants) {
    const role = roles.get(roleUid);
    if (role) rolesAt.set(groupUid, [...(rolesAt.get(groupUid) ?? []), role]);
  }
  const caller = await call.callerAtAll([...rolesAt.keys()]);
  for (const [group, some] of rolesAt) {
    const rights = transferableRightsAt(caller, group);
    if (!some.every((role) => mayGrant(rights, role))) throw lacksRights(group);
  }
}

/**
 * Makes sure that the organisation of `uid` still has an owner that exists, by a binding that does not end.
 *
 * @param exceptProvider a provider whose people do not count
 * @throws ApiError FAILED_PRECONDITION of type OWNER_REQUIRED
 */
export async function requireOwner(tx: Tx, uid: string, exceptProvider?: string): Promise<void> {
  if ((await tx.table(roleBindingKind).countHolders(rootOf(uid), owner, exceptProvider)) === 0) throw ownerRequired();
}

/**
 * Makes sure that every organisation keeps an owner without an identity.
 *
 * @throws ApiError FAILED_PRECONDITION of type OWNER_REQUIRED
 */
export async function requireNotSoleOwner(tx: Tx, identityUid: string): Promise<void> {
  if ((await tx.table(roleBindingKind).findSoleRoot(identityUid, owner)) !== undefined) throw ownerRequired();
}

function ownerRequired(): ApiError {
  return failedPrecondition("OWNER_REQUIRED", "a root group must keep an owner");
}
