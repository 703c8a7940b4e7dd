// The creation of role bindings: who may create one, and its row. Every caller holds the rights of the identity
// `anonymous`, so it is bound only to roles that pull from a registry.
import { includesSet } from "../../kernel/capability-set.js";
import { type FieldViolation, failedPrecondition, invalidArgument } from "../../kernel/errors.js";
import { ANONYMOUS_UID, type Ids } from "../../kernel/ids.js";
import { rootOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { identityKind } from "../../store/iam/identities.js";
import { type RoleBindingRow, roleBindingKind } from "../../store/iam/role-bindings.js";
import { type RoleRow, roleKind } from "../../store/iam/roles.js";
import type { Tx } from "../../store/transaction.js";
import { findConsent } from "../people/pending-bindings.js";
import { requireGrantable } from "../rights.js";
import { builtinRoles } from "../roles/builtin-roles.js";
import { buildCapabilitySet } from "../roles/capability-names.js";
import { findAvailableRole } from "../roles/role.js";
import { deleteEnded } from "./ended-bindings.js";

/** An identity and the role that a binding grants it. */
export interface MembershipGrant {
  readonly identityUid: string;
  readonly roleUid: string;
}

/** How a binding was created, by a caller of the API unless one of these is set; and when it ends, which is never by default. */
export type BindingOrigin = Partial<
  Pick<RoleBindingRow, "automatic" | "accepted" | "pending" | "managedByUid" | "endTimeMs">
>;

/**
 * Makes sure that the caller may create a binding at `group`: the role is available there, the identity is a
 * person or lies in the same organisation, and the role grants nothing that the caller lacks. The uid of a
 * person is known before the person registers.
 *
 * @param path prefix of the field names in errors
 * @param endMs when the binding ends, in epoch milliseconds; null: never
 * @throws ApiError INVALID_ARGUMENT or PERMISSION_DENIED; neither tells whether something of another
 * organisation exists.
 */
export async function requireBindable(
  group: string,
  grant: MembershipGrant,
  call: UnaryCall,
  { path = "", endMs = null }: { readonly path?: string; readonly endMs?: number | null } = {},
): Promise<RoleRow> {
  const { tx, caller } = call;
  const violations: FieldViolation[] = [];
  const addViolation = (name: string, rule: string) => violations.push({ field: path + name, subject: name, rule });

  const available = await findAvailableRole(grant.roleUid, group, tx);
  if (available === undefined) addViolation("roleUid", "must be a built-in role or one of the group or above it");

  const { identityUid } = grant;
  const isPerson = !identityUid.includes("/");
  const known =
    isPerson ||
    (rootOf(identityUid) === rootOf(group) && (await tx.table(identityKind).find(identityUid)) !== undefined);
  if (!known) addViolation("identityUid", "must be a person or an identity of the organisation");

  if (available && identityUid === ANONYMOUS_UID && !isPullRole(available)) addViolation("roleUid", PULL_ROLE_RULE);

  if (available === undefined || violations.length > 0) throw invalidArgument(...violations);
  requireGrantable(caller, available, group, endMs);
  return available;
}

/** Creates a binding at `group` that does not end, or makes the one that exists such a binding. */
export async function ensureBinding(
  group: string,
  grant: MembershipGrant,
  call: UnaryCall,
  ids: Ids,
): Promise<RoleBindingRow> {
  const { tx, caller, startMs } = call;
  const existing = await tx.table(roleBindingKind).findSame(group, grant.identityUid, grant.roleUid);
  if (existing !== undefined) return makePermanent(tx, existing, startMs);
  const consent = await findConsent(tx, grant.identityUid, group, caller.uid);
  return insertBinding(tx, group, grant, { ids, nowMs: startMs }, consent);
}

/** Creates a binding that its person accepts, or makes the one that exists permanent. */
export async function ensureAccepted(
  tx: Tx,
  group: string,
  grant: MembershipGrant,
  context: { readonly ids: Ids; readonly nowMs: number },
): Promise<void> {
  const existing = await tx.table(roleBindingKind).findSame(group, grant.identityUid, grant.roleUid);
  if (existing === undefined) await insertBinding(tx, group, grant, context, { accepted: true });
  else await makePermanent(tx, existing, context.nowMs);
}

async function makePermanent(tx: Tx, row: RoleBindingRow, nowMs: number): Promise<RoleBindingRow> {
  if (row.endTimeMs === null) return row;
  await tx.table(roleBindingKind).setEnd(row.uid, null, nowMs);
  return { ...row, endTimeMs: null };
}

/** Deletes the binding of the same values at `group` that has ended, so that there is room for another. */
export async function removeEndedSame(
  tx: Tx,
  group: string,
  { identityUid, roleUid }: MembershipGrant,
  context: { readonly ids: Ids; readonly nowMs: number },
): Promise<void> {
  const ended = await tx.table(roleBindingKind).findEndedSame(group, identityUid, roleUid);
  if (ended !== undefined) await deleteEnded(tx, [ended], context);
}

/**
 * Stores a new binding at `group`. The caller of this function has checked the rules.
 *
 * @throws ApiError INVALID_ARGUMENT for `anonymous` with a role that does more than pull.
 */
export async function insertBinding(
  tx: Tx,
  group: string,
  { identityUid, roleUid }: MembershipGrant,
  { ids, nowMs }: { readonly ids: Ids; readonly nowMs: number },
  origin: BindingOrigin = {},
): Promise<RoleBindingRow> {
  if (identityUid === ANONYMOUS_UID) requirePullRole(await tx.table(roleKind).find(roleUid));
  await removeEndedSame(tx, group, { identityUid, roleUid }, { ids, nowMs });
  const row: RoleBindingRow = {
    uid: ids.newUid(group),
    groupUid: group,
    identityUid,
    roleUid,
    automatic: false,
    accepted: false,
    pending: false,
    managedByUid: null,
    endTimeMs: null,
    ...origin,
    createTimeMs: nowMs,
    updateTimeMs: nowMs,
  };
  await tx.table(roleBindingKind).insert(row);
  return row;
}

const pullRights = buildCapabilitySet(builtinRoles["registry.pull"] ?? []);

/** The rule for roles that are bound to `anonymous`. */
const PULL_ROLE_RULE = "must grant no more than registry.pull does where the identity is anonymous";

// Whether a role grants no more than the right to pull from a registry.
function isPullRole(role: Pick<RoleRow, "capabilities">): boolean {
  return includesSet(pullRights, role.capabilities);
}

function requirePullRole(role: Pick<RoleRow, "capabilities"> | undefined): void {
  if (role !== undefined && isPullRole(role)) return;
  throw invalidArgument({ field: "roleUid", rule: `${PULL_ROLE_RULE}` });
}

/**
 * Makes sure that a role that is bound to `anonymous` still grants no more than the right to pull.
 *
 * @throws ApiError FAILED_PRECONDITION
 */
export async function requireNotPublic(tx: Tx, role: Pick<RoleRow, "uid" | "capabilities">): Promise<void> {
  if (isPullRole(role) || !(await tx.table(roleBindingKind).hasRole(ANONYMOUS_UID, role.uid))) return;
  throw failedPrecondition("ROLE_IS_PUBLIC", "a role that is bound to anonymous can grant no more than registry.pull");
}
