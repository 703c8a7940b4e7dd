// Whether an organisation has room for whoever is about to join it. Read before
// the unit of work in which they do; see src/pipeline/quotas.ts.
import { ApiError } from "../../kernel/errors.js";
import { rootOf } from "../../kernel/uidp.js";
import type { Quotas } from "../../pipeline/quotas.js";
import type { GroupInviteRow, Tx } from "../../store/port.js";
import { type Invitee, requireAcceptable, requireInvite } from "./accept-invite.js";
import { emailOf, uidOf } from "./registration.js";
import { assertedBy, type SignIn } from "./sign-in.js";

/** When it is asked, and what knows the quotas. */
export interface RoomContext {
  readonly quotas: Quotas;
  readonly nowMs: number;
}

/**
 * Makes sure that there is room for what a login creates: a person of the organisation's provider with
 * the binding of its default role, and the binding of an invite.
 *
 * @throws ApiError RESOURCE_EXHAUSTED with QuotaFailure, UNAUTHENTICATED when the provider is gone
 */
export async function requireRoomForLogin(tx: Tx, login: SignIn, context: RoomContext): Promise<void> {
  const asserted = await assertedBy(tx, login);
  const { provider } = asserted;
  const uid = uidOf(asserted);
  const known = await tx.identities.get(uid);
  const isNew = known === undefined && provider !== undefined;
  if (isNew) {
    const ownerUid = rootOf(provider.uid);
    await context.quotas.requireRoom(tx, { kind: "identities", ownerUid });
    await context.quotas.requireRoom(tx, { kind: "bindings", ownerUid });
  }
  if (login.invite === undefined) return;
  const person = { uid, providerUid: provider?.uid ?? null, ...emailOf(asserted) };
  await requireRoomForInvite(tx, login.invite, { person, besides: isNew ? 1 : 0 }, context);
}

/**
 * Makes sure that there is room for the binding of an invite. Of an invite that is not good for who
 * brings it nothing is said here: the unit of work refuses and counts it.
 *
 * @param besides how many bindings are created in the same organisation at the same time
 * @throws ApiError RESOURCE_EXHAUSTED with QuotaFailure
 */
export async function requireRoomForInvite(
  tx: Tx,
  code: string,
  { person, besides = 0 }: { readonly person: Invitee; readonly besides?: number },
  { quotas, nowMs }: RoomContext,
): Promise<void> {
  const invite = await acceptableInvite(tx, code, person, nowMs);
  if (invite === undefined) return;
  if (await tx.roleBindings.same(invite.groupUid, person.uid, invite.roleUid)) return;
  await quotas.requireRoom(tx, { kind: "bindings", ownerUid: rootOf(invite.groupUid), most: besides + 1 });
}

async function acceptableInvite(
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
