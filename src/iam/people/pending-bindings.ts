// Bindings that others create for a person are pending until the person accepts them. Anybody who knows the uid
// of a person can bind it, and must not fill that person's lists and tokens with unknown groups
// (docs/adr/0010-pending-bindings.md).
import { ListRoleBindingsResponseSchema } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import type { Change } from "../../kernel/audit-body.js";
import { permissionDenied } from "../../kernel/errors.js";
import { ANONYMOUS_UID, builtinRoleUid } from "../../kernel/ids.js";
import { parentOf, rootOf } from "../../kernel/uidp.js";
import { describeChange } from "../../pipeline/body.js";
import { groupKind } from "../../store/iam/groups.js";
import { identityKind } from "../../store/iam/identities.js";
import { type Acceptance, type HydratedBinding, roleBindingKind } from "../../store/iam/role-bindings.js";
import type { Tx } from "../../store/transaction.js";
import { requireNotOperatorRole, requireOwner } from "../rights.js";
import { requireManual, roleBindingToProto, roleBindingView } from "../role-bindings/role-binding.js";

/** The largest number of bindings that one unit of work accepts; the next call accepts others. */
export const MAX_ACCEPTED = 200;

const owner = builtinRoleUid("owner");

/** Whether an identity is a person. Identities of a group are assumed by workloads. */
export function isPerson(identityUid: string): boolean {
  return !identityUid.includes("/") && identityUid !== ANONYMOUS_UID;
}

/**
 * Whether a new binding of the identity at `group` is accepted or pending. It is accepted if the person has signed in
 * through a provider of that organisation. It is pending if it is for another person, another identity creates it, and the
 * person has accepted no binding in that organisation.
 *
 * @param createdBy the uid of the identity that creates it
 */
export async function findConsent(
  tx: Tx,
  identityUid: string,
  group: string,
  createdBy: string,
): Promise<Pick<HydratedBinding, "accepted" | "pending">> {
  if (!isPerson(identityUid)) return { accepted: false, pending: false };
  const { providerUid = null } = (await tx.table(identityKind).find(identityUid)) ?? {};
  const accepted = providerUid !== null && rootOf(providerUid) === rootOf(group);
  const joined = accepted || identityUid === createdBy;
  return { accepted, pending: !joined && !(await tx.table(roleBindingKind).hasAccepted(identityUid, rootOf(group))) };
}

/** A binding as its own person sees it. */
export interface OwnBinding extends HydratedBinding {
  /** The organisation of its group. */
  readonly organisation: { readonly uid: string; readonly name: string; readonly verified: boolean };
}

/** Adds the organisation of its group to a binding. */
export async function addOrganisation(tx: Tx, row: HydratedBinding): Promise<OwnBinding> {
  const uid = rootOf(row.groupUid);
  const root = await tx.table(groupKind).find(uid);
  return { ...row, organisation: { uid, name: root?.name ?? "", verified: root?.verified ?? false } };
}

/**
 * Accepts pending bindings of a person in the organisation of `memberUid`.
 *
 * @param memberUid the uid of the organisation or of any resource in it, such as a binding
 * @param how whether the person said so, which shows their name and address to those who list the bindings
 * @param limit the largest number of bindings
 * @returns the uids of the accepted bindings
 */
export async function acceptBindingsAt(
  tx: Tx,
  identityUid: string,
  memberUid: string,
  how: Acceptance,
  limit = MAX_ACCEPTED,
): Promise<string[]> {
  return tx.table(roleBindingKind).accept(identityUid, rootOf(memberUid), limit, how);
}

/** The types of the audit rows of acceptances, and of bindings that their person deletes. */
export const BINDING_ACCEPTED = "dev.arbor.bindings.binding.accepted.v1";
export const BINDING_DELETED = "dev.chainguard.api.iam.rolebindings.deleted.v1";

/** How bodies of the audit log show several role bindings. */
export const roleBindingsView = { message: ListRoleBindingsResponseSchema, readers: roleBindingView.readers } as const;

/** Describes bindings that were accepted, or those that were deleted before they are. */
export async function describeBindings(tx: Tx, part: "before" | "after", uids: readonly string[]): Promise<Change> {
  const rows = await tx.table(roleBindingKind).findHydrated(uids);
  return describeChange(roleBindingsView, { [part]: { roleBindings: rows.map(roleBindingToProto) } });
}

/**
 * Accepts a binding of the identity together with all that are pending in the same organisation.
 *
 * @returns the accepted binding
 * @throws ApiError PERMISSION_DENIED for a binding that does not exist or belongs to another identity.
 */
export async function acceptBinding(tx: Tx, identityUid: string, uid: string): Promise<OwnBinding> {
  const row = await getOwnBinding(tx, identityUid, uid, "accepting");
  // The named binding comes first, because there may be more than one unit of work accepts.
  if (row.pending || !row.accepted) await tx.table(roleBindingKind).acceptOne(uid, "consent");
  await acceptBindingsAt(tx, identityUid, uid, "consent");
  return { ...(await addOrganisation(tx, row)), pending: false };
}

/**
 * Deletes a binding of the person.
 *
 * @throws ApiError PERMISSION_DENIED for a binding that does not exist, belongs to another identity or was created by
 * the operator with an operator role, FAILED_PRECONDITION for one that a directory manages, or where an organisation would
 * be left without an owner.
 */
export async function dropBinding(tx: Tx, identityUid: string, uid: string): Promise<void> {
  const row = await getOwnBinding(tx, identityUid, uid, "dropping");
  requireManual(row);
  requireNotOperatorRole(row.roleUid, `dropping binding ${uid}`);
  await tx.table(roleBindingKind).delete(uid);
  if (row.roleUid === owner && parentOf(row.groupUid) === undefined) await requireOwner(tx, row.groupUid);
}

async function getOwnBinding(tx: Tx, identityUid: string, uid: string, action: string): Promise<HydratedBinding> {
  const [row] = await tx.table(roleBindingKind).findHydrated([uid]);
  if (row === undefined || row.identityUid !== identityUid || !isPerson(identityUid)) {
    throw permissionDenied(`${action} ${uid}`);
  }
  return row;
}
