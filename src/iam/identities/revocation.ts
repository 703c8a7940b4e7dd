// The revocation of tokens: of all that an identity has, or of one API token. The rows that it changes are read by every
// call (pipeline/auth/authorize.ts), exchange and login (issuer/tokens.ts), so it works from the next one on.

import type { Change } from "../../kernel/audit-body.js";
import { failedPrecondition } from "../../kernel/errors.js";
import { LEEWAY_S, MAX_TOKEN_LIFE_S } from "../../pipeline/auth/api-token.js";
import { describeChange } from "../../pipeline/body.js";
import { type IdentityRow, identityKind } from "../../store/iam/identities.js";
import type { Tx } from "../../store/transaction.js";
import { identityToProto, identityView } from "./identity.js";

/** How many tokens of an identity may be revoked one by one before the first of them has expired. */
export const MAX_REVOKED_TOKENS = 100;
/** How long a token of any node may be accepted after this node has revoked it, in milliseconds. */
const KEPT_MS = (MAX_TOKEN_LIFE_S + 10 * LEEWAY_S) * 1000;

/**
 * The type of the event that subscriptions get of a revocation: receivers check types, and there is none for it. The audit
 * log has a row of it besides the one that says what was revoked.
 */
export const IDENTITY_UPDATED = "dev.chainguard.api.iam.identity.updated.v1";

/** Describes the change of the identity for that event. */
export function describeIdentityUpdate(before: IdentityRow, after: IdentityRow): Change {
  return describeChange(identityView, { before: identityToProto(before), after: identityToProto(after) });
}

/** What the revocation of all tokens has done. */
export interface TokensRevocation {
  readonly identity: IdentityRow;
  /** How many sessions it has ended. */
  readonly endedSessions: number;
}

/**
 * Revokes all tokens of an identity: API tokens, sessions, logins in progress, and the tokens of other issuers that were
 * issued before.
 *
 * @param nowMs epoch milliseconds
 */
export async function revokeAllTokens(tx: Tx, before: IdentityRow, nowMs: number): Promise<TokensRevocation> {
  // By the clock of the database: that of this node may be ahead, and would refuse what is issued later, or behind.
  // Later than the last one also where the clock was set back: tokens name the revocation before which they were issued.
  const revokeTimeMs = Math.max(await tx.jobs.nowMs(), before.revokeTimeMs + 1);
  // Servers of versions before compare whole seconds alone.
  const notBefore = Math.max(before.notBefore, Math.floor(revokeTimeMs / 1000) + 1);
  const identity = await tx.table(identityKind).update(before.uid, { revokeTimeMs, notBefore }, nowMs);
  return { identity: identity ?? before, endedSessions: await tx.refreshTokens.deleteOf(before.uid) };
}

/**
 * Dates an invite of an identity, in epoch milliseconds: by the clock of the database, as revocations are, so that those of
 * nodes do not decide which was first.
 */
export async function readInviteTimeMs(tx: Tx, identityUid: string): Promise<number> {
  const revokeTimeMs = (await tx.table(identityKind).find(identityUid))?.revokeTimeMs ?? 0;
  return Math.max(await tx.jobs.nowMs(), revokeTimeMs + 1);
}

/** Whether an invite of an identity was made before all tokens of the identity were revoked. */
export function isInviteRevoked(
  { revokeTimeMs, notBefore }: Pick<IdentityRow, "revokeTimeMs" | "notBefore">,
  createTimeMs: number,
): boolean {
  if (createTimeMs <= revokeTimeMs) return true;
  // Set by something else, such as a version before, to whole seconds.
  return notBefore > Math.floor(revokeTimeMs / 1000) + 1 && Math.floor(createTimeMs / 1000) < notBefore;
}

/**
 * Revokes an API token. One that was revoked before stays so, and nothing changes.
 *
 * @param tokenId its `jti`. Whether there is such a token is not known.
 * @returns the identity, changed; undefined where the token was revoked before
 * @throws ApiError FAILED_PRECONDITION of type TOO_MANY_REVOKED_TOKENS
 */
export async function revokeOneToken(
  tx: Tx,
  before: IdentityRow,
  tokenId: string,
  nowMs: number,
): Promise<IdentityRow | undefined> {
  const { uid: identityUid } = before;
  if (await tx.revokedTokens.isRevoked(identityUid, tokenId)) return undefined;
  if ((await tx.revokedTokens.count(identityUid, nowMs, MAX_REVOKED_TOKENS)) === MAX_REVOKED_TOKENS) {
    const rule = `${MAX_REVOKED_TOKENS} tokens of this identity were revoked one by one within the last hour: revoke all`;
    throw failedPrecondition("TOO_MANY_REVOKED_TOKENS", rule);
  }
  const expireTimeMs = Math.max(nowMs, await tx.jobs.nowMs()) + KEPT_MS;
  await tx.revokedTokens.insert({ identityUid, tokenId, expireTimeMs });
  return tx.table(identityKind).update(identityUid, {}, nowMs);
}
