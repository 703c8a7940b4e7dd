// Checks the quotas of an organisation before a person joins it: before the unit of work that writes, and where a limit
// is near in it again; src/pipeline/resource/quota.ts says why.
import { ApiError } from "../../kernel/errors.js";
import { rootOf } from "../../kernel/uidp.js";
import type { Quotas } from "../../pipeline/resource/quota.js";
import type { Reservation } from "../../pipeline/resource/reservation.js";
import type { GroupInviteRow } from "../../store/iam/group-invites.js";
import { identityKind } from "../../store/iam/identities.js";
import { findDefaultRole } from "../../store/iam/identity-providers.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import type { Tx } from "../../store/transaction.js";
import { type Invitee, requireAcceptable, requireInvite } from "./accept-invite.js";
import { derivePersonUid, parseEmail } from "./registration.js";
import { getAssertedIdentity, type SignIn } from "./sign-in.js";

/** The time of the check, and the quotas. */
export interface RoomContext {
  readonly quotas: Quotas;
  readonly nowMs: number;
  /** What the login is about to create; absent in the unit of work that creates it. */
  readonly reservation?: Reservation | undefined;
}

/**
 * Makes sure that the quotas allow what a login creates: a person of the organisation's provider with
 * the binding of its default role if it has one, and the binding of an invite.
 *
 * @throws ApiError RESOURCE_EXHAUSTED with QuotaFailure, UNAUTHENTICATED when the provider is gone
 */
export async function requireRoomForLogin(tx: Tx, login: SignIn, context: RoomContext): Promise<void> {
  const asserted = await getAssertedIdentity(tx, login);
  const { provider } = asserted;
  const uid = derivePersonUid(asserted);
  const known = await tx.table(identityKind).find(uid);
  const joined = known === undefined ? provider : undefined;
  const getsRole = joined !== undefined && findDefaultRole(joined) !== undefined;
  if (joined !== undefined) {
    const ownerUid = rootOf(joined.uid);
    await context.quotas.requireRoom(tx, { kind: "identities", ownerUid }, context.reservation);
    if (getsRole) await context.quotas.requireRoom(tx, { kind: "bindings", ownerUid }, context.reservation);
  }
  if (login.invite === undefined) return;
  const person = { uid, providerUid: provider?.uid ?? null, ...parseEmail(asserted) };
  await requireRoomForInvite(tx, login.invite, { person, besides: getsRole ? 1 : 0 }, context);
}

/**
 * Makes sure that the quotas allow the binding of an invite. An invite that the person may not accept passes,
 * because the unit of work rejects and counts it.
 *
 * @param besides how many other bindings the same unit of work creates in the organisation
 * @throws ApiError RESOURCE_EXHAUSTED with QuotaFailure
 */
export async function requireRoomForInvite(
  tx: Tx,
  code: string,
  { person, besides = 0 }: { readonly person: Invitee; readonly besides?: number },
  { quotas, nowMs, reservation }: RoomContext,
): Promise<void> {
  const invite = await findAcceptableInvite(tx, code, person, nowMs);
  if (invite === undefined) return;
  if (await tx.table(roleBindingKind).findStoredSame(invite.groupUid, person.uid, invite.roleUid)) return;
  const rootUid = rootOf(invite.groupUid);
  await quotas.requireRoom(tx, { kind: "bindings", ownerUid: rootUid, most: besides + 1 }, reservation);
  await quotas.requireRoom(
    tx,
    { kind: "identityBindings", ownerUid: person.uid, rootUid, most: besides + 1 },
    reservation,
  );
}

async function findAcceptableInvite(
  tx: Tx,
  code: string,
  person: Invitee,
  nowMs: number,
): Promise<GroupInviteRow | undefined> {
  try {
    const invite = await requireInvite(tx, code, nowMs);
    await requireAcceptable(tx, invite, person, nowMs);
    return invite;
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}
