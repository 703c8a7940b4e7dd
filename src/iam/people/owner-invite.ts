// The owner of a new organisation whom `arbor bootstrap` knows by e-mail address alone. It is an invite with the role of the
// owner, for that address and one use, whose code nobody gets: who signs in with the address accepts it. Only an address
// that a login provider of the service has confirmed counts, never one that the provider of an organisation states.
import { failedPrecondition, invalidArgument } from "../../kernel/errors.js";
import { builtinRoleUid, type Ids } from "../../kernel/ids.js";
import { type GroupInviteRow, groupInviteKind } from "../../store/iam/group-invites.js";
import { groupKind } from "../../store/iam/groups.js";
import type { Tx } from "../../store/transaction.js";
import { createInviteCode, isEmail } from "../group-invites/group-invite.js";
import { type Invitee, isSameAddress, lowerCaseAscii, mayAccept } from "./accept-invite.js";

/** How long the person may take to sign in, in milliseconds. */
const LIFE_MS = 7 * 24 * 60 * 60 * 1000;

/** The person who is to own an organisation. */
export interface AwaitedOwner {
  readonly email: string;
  /** The issuer of the only login provider that may confirm the address; any of the service unless set. */
  readonly issuer?: string | undefined;
}

interface Awaited {
  readonly invite: string;
  readonly issuer?: string;
}

/**
 * Invites the owner of a new organisation.
 *
 * @param createdBy the identity that owns the organisation now
 * @throws ApiError INVALID_ARGUMENT for an address that is none, FAILED_PRECONDITION while another organisation waits for
 * the person.
 */
export async function inviteOwner(
  tx: Tx,
  { email, issuer }: AwaitedOwner,
  { group, createdBy }: { readonly group: string; readonly createdBy: string },
  { ids, nowMs }: { readonly ids: Ids; readonly nowMs: number },
): Promise<GroupInviteRow> {
  const broken = email === "" ? { subject: "owner-email", rule: "is required" } : isEmail(email, "owner-email");
  if (broken !== undefined) throw invalidArgument({ ...broken, field: "owner-email" });
  const hash = keyOf(email);
  const other = await findAwaited(tx, email, nowMs);
  if (other !== undefined) {
    const { groupUid } = other.invite;
    const name = (await tx.table(groupKind).find(groupUid))?.name ?? "";
    const rule = `${email} is awaited as the owner of ${name} (${groupUid}): sign in first`;
    throw failedPrecondition("OWNER_AWAITED", rule);
  }
  const { code: _code, ...key } = createInviteCode(group);
  const invite: GroupInviteRow = {
    uid: ids.newUid(group),
    groupUid: group,
    roleUid: builtinRoleUid("owner"),
    email,
    singleUse: true,
    ...key,
    createdBy,
    expireTimeMs: nowMs + LIFE_MS,
    createTimeMs: nowMs,
    updateTimeMs: nowMs,
  };
  await tx.table(groupInviteKind).insert(invite);
  const data: Awaited = { invite: invite.uid, ...(issuer !== undefined && { issuer }) };
  await tx.tickets.put({ hash, kind: "owner-invite", data, expireTimeMs: invite.expireTimeMs });
  return invite;
}

/**
 * Finds the invite of a person who is awaited as the owner of an organisation, and may accept it.
 *
 * @param person with the address that a login provider of the service has confirmed, which may be empty
 * @param issuer the issuer of that provider
 */
export async function findOwnerInvite(
  tx: Tx,
  person: Invitee,
  issuer: string,
  nowMs: number,
): Promise<GroupInviteRow | undefined> {
  if (person.email === "" || person.providerUid !== null) return undefined;
  const found = await findAwaited(tx, person.email, nowMs);
  if (found === undefined || (found.issuer !== undefined && found.issuer !== issuer)) return undefined;
  // An invite that has become void must not keep the person from signing in.
  return (await mayAccept(tx, found.invite, person, nowMs)) ? found.invite : undefined;
}

async function findAwaited(tx: Tx, email: string, nowMs: number) {
  const ticket = await tx.tickets.find("owner-invite", keyOf(email));
  if (ticket === undefined || ticket.expireTimeMs <= nowMs) return undefined;
  const { invite: uid, issuer } = ticket.data as Awaited;
  const invite = await tx.table(groupInviteKind).find(uid);
  if (invite === undefined || invite.expireTimeMs <= nowMs || !isSameAddress(invite.email, email)) return undefined;
  return { invite, issuer };
}

function keyOf(email: string): string {
  return `owner-invite ${lowerCaseAscii(email)}`;
}
