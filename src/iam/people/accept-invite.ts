// Accepting an invite: its code for the role it promises.
import { createHash, timingSafeEqual } from "node:crypto";
import { permissionDenied } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import { isUidp, lineageOf, rootOf } from "../../kernel/uidp.js";
import { Caller } from "../../pipeline/auth/caller.js";
import type { GroupInviteRow, IdentityRow, RoleRow, Tx } from "../../store/port.js";
import { requireGrantable } from "../rights.js";
import { insertBinding } from "../role-bindings/new-binding.js";
import { acceptBindingsAt, isPerson } from "./pending-bindings.js";

/** What a code says; nothing of it is to be believed before the secret was compared. */
export interface InviteCode {
  readonly group: string;
  readonly keyId: string;
  readonly secret: string;
}

/** Reads a code; undefined where it is none. */
export function parseInviteCode(code: string): InviteCode | undefined {
  if (code.length > 1_024 || !/^[A-Za-z0-9_-]+$/.test(code)) return undefined;
  try {
    const { grp, kid, sec } = JSON.parse(Buffer.from(code, "base64url").toString()) as Record<string, unknown>;
    if (typeof grp !== "string" || typeof kid !== "string" || typeof sec !== "string") return undefined;
    return isUidp(grp) && /^[0-9a-f]{16}$/.test(kid) ? { group: grp, keyId: kid, secret: sec } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The invite that a code belongs to. Wrong, expired and used codes look alike.
 *
 * @throws ApiError PERMISSION_DENIED
 */
export async function requireInvite(tx: Tx, code: string, nowMs: number): Promise<GroupInviteRow> {
  const parsed = parseInviteCode(code);
  if (parsed === undefined) throw refused();
  const [uid] = await tx.groupInvites.uidsWhere("keyId", parsed.keyId, 1);
  const invite = uid === undefined ? undefined : await tx.groupInvites.get(uid);
  const hash = createHash("sha256").update(parsed.secret).digest();
  // Compared even where there is nothing to compare with, so that the time tells nothing.
  const right = timingSafeEqual(hash, invite ? Buffer.from(invite.codeHash, "hex") : hash) && invite !== undefined;
  if (!right || invite.groupUid !== parsed.group || invite.expireTimeMs <= nowMs) throw refused();
  return invite;
}

/** Somebody who accepts an invite. */
export type Invitee = Pick<IdentityRow, "uid" | "email" | "providerUid">;

/**
 * Requires that somebody may accept an invite, and that whoever made it still holds what it gives.
 *
 * @returns the role that the invite gives
 * @throws ApiError PERMISSION_DENIED when the invite is for somebody else's e-mail address, the identity
 * is another organisation's, or the maker has lost the rights or was revoked since.
 */
export async function requireAcceptable(
  tx: Tx,
  invite: GroupInviteRow,
  identity: Invitee,
  nowMs: number,
): Promise<RoleRow> {
  // As everywhere, identities of one organisation, and people of its provider, are never bound in another.
  const home = identity.uid.includes("/") ? identity.uid : identity.providerUid;
  if (home !== null && rootOf(home) !== rootOf(invite.groupUid)) throw refused();
  if (invite.email !== "" && lowerCase(invite.email) !== lowerCase(identity.email)) throw refused();
  const role = await tx.roles.get(invite.roleUid);
  if (role === undefined) throw refused();
  await requireMakersRights(tx, invite, role, nowMs);
  return role;
}

/**
 * Binds the role of an invite to an identity.
 *
 * @throws ApiError PERMISSION_DENIED as {@link requireAcceptable}.
 */
export async function acceptInvite(
  tx: Tx,
  invite: GroupInviteRow,
  identity: Invitee,
  context: { readonly ids: Ids; readonly nowMs: number },
): Promise<void> {
  await requireAcceptable(tx, invite, identity, context.nowMs);
  const { groupUid, roleUid } = invite;
  if ((await tx.roleBindings.same(groupUid, identity.uid, roleUid)) === undefined) {
    await insertBinding(tx, groupUid, { identityUid: identity.uid, roleUid }, context, { accepted: true });
  }
  if (isPerson(identity.uid)) await acceptBindingsAt(tx, identity.uid, groupUid);
  if (invite.singleUse) await tx.groupInvites.delete(invite.uid);
}

async function requireMakersRights(tx: Tx, invite: GroupInviteRow, role: RoleRow, nowMs: number): Promise<void> {
  const { createdBy, groupUid } = invite;
  const identity = await tx.identities.get(createdBy);
  // To revoke an identity is to void what was made in its name before, tokens and invites alike.
  if (identity === undefined || Math.floor(invite.createTimeMs / 1000) < identity.notBefore) throw refused();
  const seconds = Math.floor(nowMs / 1000);
  const principal = { identityUid: createdBy, tokenId: "", issuedAt: seconds, expiresAt: seconds };
  const maker = new Caller(principal, [], await tx.access.at(createdBy, lineageOf(groupUid)));
  requireGrantable(maker, role, groupUid);
}

// Of ASCII alone: some letters of other alphabets become the same ones, and are another's address.
function lowerCase(address: string): string {
  return address.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function refused() {
  return permissionDenied("accepting this invite");
}
