// Accepting an invite: a person presents its code and is bound to its role.
import { timingSafeEqual } from "node:crypto";
import { sha256 } from "../../kernel/digest.js";
import { ApiError, notPermitted, permissionDenied } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import { isUidp, lineageOf, rootOf } from "../../kernel/uidp.js";
import { Caller } from "../../pipeline/auth/caller.js";
import { type GroupInviteRow, groupInviteKind } from "../../store/iam/group-invites.js";
import { groupKind } from "../../store/iam/groups.js";
import { type IdentityRow, identityKind } from "../../store/iam/identities.js";
import { type RoleRow, roleKind } from "../../store/iam/roles.js";
import type { Tx } from "../../store/transaction.js";
import { isHostIdentity } from "../identities/identity.js";
import { isInviteRevoked } from "../identities/revocation.js";
import { requireGrantable } from "../rights.js";
import { ensureAccepted } from "../role-bindings/create-binding.js";
import { listCapabilityNames } from "../roles/capability-names.js";
import { acceptBindingsAt, isPerson } from "./pending-bindings.js";

/** The content of a code. None of it is trusted until the secret has been compared. */
export interface InviteCode {
  readonly group: string;
  readonly keyId: string;
  readonly secret: string;
}

/** Parses a code; undefined for any other text. */
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

/** How long the bearer of the code of a used invite learns that it was used, in milliseconds. */
const USED_MS = 30 * 24 * 60 * 60 * 1000;

/**
 * Reads the invite of a code. Wrong codes get one error, whatever is wrong. Whoever has the whole code of an invite learns
 * that it has expired or was used.
 *
 * @throws ApiError PERMISSION_DENIED
 */
export async function requireInvite(tx: Tx, code: string, nowMs: number): Promise<GroupInviteRow> {
  const parsed = parseInviteCode(code);
  if (parsed === undefined) throw inviteDenied();
  const [uid] = await tx.table(groupInviteKind).findUidsWhere("keyId", parsed.keyId, 1);
  const invite = uid === undefined ? undefined : await tx.table(groupInviteKind).find(uid);
  const hash = sha256(parsed.secret);
  // An absent invite is compared as well, so that the time of the response does not show whether it exists.
  const isRight = timingSafeEqual(hash, invite ? Buffer.from(invite.codeHash, "hex") : hash) && invite !== undefined;
  if (isRight && invite.groupUid === parsed.group) {
    if (invite.expireTimeMs <= nowMs) throw notPermitted("this invite has expired; ask for another one");
    return invite;
  }
  // Looked up for every wrong code, and found by the whole code alone.
  const used = await tx.tickets.find("used-invite", usedKey(parsed.group, hash.toString("hex")));
  if (used !== undefined && used.expireTimeMs > nowMs) {
    throw notPermitted("this invite was used already, and is valid once; ask for another one");
  }
  throw inviteDenied();
}

function usedKey(group: string, codeHash: string): string {
  return `used-invite ${group} ${codeHash}`;
}

/** The identity that accepts an invite. */
export type Invitee = Pick<IdentityRow, "uid" | "email" | "providerUid">;

/**
 * Makes sure that an identity may accept an invite, and that the inviter still holds the rights of its role.
 *
 * @returns the role of the invite
 * @throws ApiError PERMISSION_DENIED when the invite is for another e-mail address, the identity belongs to
 * another organisation, or the inviter has lost the rights, was revoked or is deactivated.
 */
export async function requireAcceptable(
  tx: Tx,
  invite: GroupInviteRow,
  identity: Invitee,
  nowMs: number,
): Promise<RoleRow> {
  // Identities of one organisation and people of its provider are never bound in another.
  const home = identity.uid.includes("/") ? identity.uid : identity.providerUid;
  if (home !== null && rootOf(home) !== rootOf(invite.groupUid)) throw inviteDenied();
  if (invite.email !== "" && !isSameAddress(invite.email, identity.email)) {
    throw notPermitted("this invite is for an e-mail address that your login provider has not confirmed to be yours");
  }
  const role = await tx.table(roleKind).find(invite.roleUid);
  if (role === undefined) throw inviteDenied();
  await requireInviterRights(tx, invite, role, nowMs);
  return role;
}

/** Whether {@link requireAcceptable} lets an identity accept an invite. */
export async function mayAccept(tx: Tx, invite: GroupInviteRow, identity: Invitee, nowMs: number): Promise<boolean> {
  try {
    await requireAcceptable(tx, invite, identity, nowMs);
    return true;
  } catch (error) {
    if (error instanceof ApiError) return false;
    throw error;
  }
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
  await ensureAccepted(tx, groupUid, { identityUid: identity.uid, roleUid }, context);
  if (isPerson(identity.uid)) await acceptBindingsAt(tx, identity.uid, groupUid, "consent");
  if (!invite.singleUse) return;
  await tx.table(groupInviteKind).delete(invite.uid);
  const hash = usedKey(groupUid, invite.codeHash);
  await tx.tickets.put({ hash, kind: "used-invite", data: {}, expireTimeMs: context.nowMs + USED_MS });
}

/** What a page shows of an invite before a person accepts it. */
export interface InvitePreview {
  readonly invitedBy: {
    readonly uid: string;
    /** The name of the identity; empty where it has none. */
    readonly name: string;
    /** The address that a login provider of the service has confirmed; empty where there is none. */
    readonly email: string;
    /** Whether it has tokens from the host of the service alone, as the owner that `arbor bootstrap` makes. */
    readonly isHost: boolean;
  };
  readonly organisation: {
    readonly name: string;
    /** Whether the operator has verified the name. */
    readonly verified: boolean;
  };
  /** The group of the binding; undefined where that is the whole organisation. */
  readonly groupName?: string;
  readonly role: {
    readonly name: string;
    readonly description: string;
    /** The dotted names of its capabilities. */
    readonly capabilities: readonly string[];
  };
}

/**
 * Reads what an invite would grant, without any change.
 *
 * @param nowMs the time in epoch milliseconds
 * @throws ApiError PERMISSION_DENIED as {@link requireAcceptable}.
 */
export async function previewInvite(
  tx: Tx,
  invite: GroupInviteRow,
  invitee: Invitee,
  nowMs: number,
): Promise<InvitePreview> {
  const role = await requireAcceptable(tx, invite, invitee, nowMs);
  const { name, description, capabilities } = role;
  const inviter = await tx.table(identityKind).find(invite.createdBy);
  const root = await tx.table(groupKind).find(rootOf(invite.groupUid));
  const group = await tx.table(groupKind).find(invite.groupUid);
  return {
    invitedBy: {
      uid: invite.createdBy,
      name: inviter?.name ?? "",
      email: inviter?.email ?? "",
      isHost: inviter !== undefined && isHostIdentity(inviter),
    },
    organisation: { name: root?.name ?? "", verified: root?.verified ?? false },
    ...(group !== undefined && group.uid !== root?.uid && { groupName: group.name }),
    role: { name, description, capabilities: listCapabilityNames(capabilities) },
  };
}

async function requireInviterRights(tx: Tx, invite: GroupInviteRow, role: RoleRow, nowMs: number): Promise<void> {
  const { createdBy, groupUid } = invite;
  const identity = await tx.table(identityKind).findActive(createdBy);
  // The revocation of an identity revokes its invites as well as its tokens.
  if (identity === undefined || isInviteRevoked(identity, invite.createTimeMs)) throw inviteDenied();
  const seconds = Math.floor(nowMs / 1000);
  const principal = { identityUid: createdBy, tokenId: "", issuedAt: seconds, expiresAt: seconds };
  const inviter = new Caller(principal, [], await tx.access.findGrantsAt(createdBy, lineageOf(groupUid)));
  requireGrantable(inviter, role, groupUid);
}

/** Whether two e-mail addresses are the same but for the case of letters. */
export function isSameAddress(a: string, b: string): boolean {
  return lowerCaseAscii(a) === lowerCaseAscii(b);
}

/** Converts ASCII alone to lower case: letters of other alphabets that map to the same letter are other addresses. */
export function lowerCaseAscii(address: string): string {
  return address.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function inviteDenied(): ApiError {
  return permissionDenied("accepting this invite");
}
