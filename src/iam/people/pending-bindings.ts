// Bindings that others made for a person, until the person accepts them: who
// knows a person's uid may bind it, and must not fill that person's lists and
// tokens with groups they never heard of (docs/adr/0010-pending-bindings.md).
import { permissionDenied } from "../../kernel/errors.js";
import { ANONYMOUS_UID, builtinRoleUid } from "../../kernel/ids.js";
import { parentOf, rootOf } from "../../kernel/uidp.js";
import type { HydratedBinding, Tx } from "../../store/port.js";
import { requireOwner } from "../rights.js";

/** How many bindings are accepted in one unit of work; others of the organisation follow with the next call there. */
export const MAX_ACCEPTED = 200;

const owner = builtinRoleUid("owner");

/** Whether an identity is a person: those that lie in a group are assumed by workloads. */
export function isPerson(identityUid: string): boolean {
  return !identityUid.includes("/") && identityUid !== ANONYMOUS_UID;
}

/**
 * Whether a new binding of the identity at `group` is pending: it is for a person, somebody else makes it,
 * and the person has accepted none in that organisation.
 *
 * @param madeBy the uid of the identity that makes it
 */
export async function isPendingFor(tx: Tx, identityUid: string, group: string, madeBy: string): Promise<boolean> {
  if (!isPerson(identityUid) || identityUid === madeBy) return false;
  return !(await tx.roleBindings.anyAccepted(identityUid, rootOf(group)));
}

/** A binding as the person it is for sees it. */
export interface OwnBinding extends HydratedBinding {
  /** The organisation that its group belongs to. */
  readonly organization: { readonly uid: string; readonly name: string; readonly verified: boolean };
}

/**
 * The bindings of a person that are pending, or those that are not, in the order of their uids.
 *
 * @param after the uid of the last binding of the page before; empty for the first page
 * @param limit how many at most
 */
export async function listBindingsOf(
  tx: Tx,
  identityUid: string,
  { pending, after = "", limit }: { readonly pending: boolean; readonly after?: string; readonly limit: number },
): Promise<OwnBinding[]> {
  const found: OwnBinding[] = [];
  for (const row of await tx.roleBindings.byPending(identityUid, pending, after, limit)) {
    found.push(await withOrganization(tx, row));
  }
  return found;
}

async function withOrganization(tx: Tx, row: HydratedBinding): Promise<OwnBinding> {
  const uid = rootOf(row.groupUid);
  const root = await tx.groups.get(uid);
  return { ...row, organization: { uid, name: root?.name ?? "", verified: root?.verified ?? false } };
}

/**
 * Accepts pending bindings of a person in the organisation that `place` lies in.
 *
 * @param place the uid of the organisation or of anything in it, such as a binding
 * @param limit how many at most
 * @returns the uids of the bindings; none where there was nothing to accept
 */
export async function acceptBindingsAt(
  tx: Tx,
  identityUid: string,
  place: string,
  limit = MAX_ACCEPTED,
): Promise<string[]> {
  return tx.roleBindings.accept(identityUid, rootOf(place), limit);
}

/**
 * Accepts a binding of the identity, and with it all that are pending in the same organisation.
 *
 * @returns the binding as it is then
 * @throws ApiError PERMISSION_DENIED for a binding that is not there or is somebody else's.
 */
export async function acceptBinding(tx: Tx, identityUid: string, uid: string): Promise<OwnBinding> {
  const row = await ownBinding(tx, identityUid, uid, "accepting");
  // This one first: there may be more than are accepted at a time.
  if (row.pending) await tx.roleBindings.acceptOne(uid);
  await acceptBindingsAt(tx, identityUid, uid);
  return { ...(await withOrganization(tx, row)), pending: false };
}

/**
 * Deletes a binding of the person.
 *
 * @throws ApiError PERMISSION_DENIED for a binding that is not there or is somebody else's,
 * FAILED_PRECONDITION where an organisation would be left without an owner.
 */
export async function dropBinding(tx: Tx, identityUid: string, uid: string): Promise<void> {
  const row = await ownBinding(tx, identityUid, uid, "dropping");
  await tx.roleBindings.delete(uid);
  if (row.roleUid === owner && parentOf(row.groupUid) === undefined) await requireOwner(tx, row.groupUid);
}

async function ownBinding(tx: Tx, identityUid: string, uid: string, doing: string): Promise<HydratedBinding> {
  const [row] = await tx.roleBindings.hydrated([uid]);
  if (row === undefined || row.identityUid !== identityUid || !isPerson(identityUid)) {
    throw permissionDenied(`${doing} ${uid}`);
  }
  return row;
}
