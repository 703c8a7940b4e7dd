// Wrong codes of invites, wherever they are given.
import { parseInviteCode } from "../iam/people/accept-invite.js";
import { addressKey } from "./sts/refusals.js";

/**
 * How many in how many seconds. A right code passes whatever was tried before: at 128 random bits nobody guesses one,
 * and addresses are shared.
 */
export const INVITE_FAILURES = { points: 10, seconds: 600, blocks: false };

/**
 * What wrong codes are counted by: one invite and one address. So nobody can use up another's tries, and a wrong
 * code for one invite leaves the others of the address alone.
 *
 * @param code as it was given; those that belong to no invite are counted together
 */
export function inviteFailureKey(remoteAddress: string | undefined, code: string): string {
  return `${addressKey(remoteAddress)} invite ${parseInviteCode(code)?.keyId ?? ""}`;
}
