// The tokens by which directories call the endpoint for them: their form, their state and their verification. Only hashes of
// them are stored.
import { randomBytes, timingSafeEqual } from "node:crypto";
import { IdentityProvider_SCIM_CredentialState as State } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { sha256 } from "../../kernel/digest.js";
import type { ScimState } from "../../store/iam/identity-providers.js";

/** Which token of a provider a caller has: the newest one, or the one before it, which is valid for a while. */
export type ScimCredential = "current" | "previous";

/** Why a token is rejected. Callers learn none of it. */
export type ScimRejection = "unknown" | "expired" | "revoked";

/** Creates a token, with the hash that is stored of it. */
export function createScimToken(): { readonly token: string; readonly tokenHash: string } {
  const token = `cgscim_${randomBytes(32).toString("hex")}`;
  return { token, tokenHash: sha256(token).toString("hex") };
}

/** Finds the state of the tokens at a time, in epoch milliseconds. */
export function findCredentialState(scim: ScimState, nowMs: number): State {
  if (scim.revoked) return State.REVOKED;
  if (scim.tokenHash === "") return State.NOT_ISSUED;
  // The previous token may outlive the current one.
  if (isPreviousLive(scim, nowMs)) return State.ROTATING;
  return isCurrentLive(scim, nowMs) ? State.LIVE : State.EXPIRED;
}

/** Whether the newest token is valid at a time, in epoch milliseconds. */
export function isCurrentLive({ tokenHash, expireTimeMs }: ScimState, nowMs: number): boolean {
  return tokenHash !== "" && (expireTimeMs === undefined || expireTimeMs > nowMs);
}

function isPreviousLive({ previousHash, previousExpireTimeMs = 0 }: ScimState, nowMs: number): boolean {
  return previousHash !== "" && previousExpireTimeMs > nowMs;
}

/**
 * Verifies the token of a caller, in constant time.
 *
 * @param nowMs in epoch milliseconds
 * @returns undefined for a token that is not valid; {@link explainScimRejection} says why
 */
export function findScimCredential(scim: ScimState, token: string, nowMs: number): ScimCredential | undefined {
  const given = sha256(token);
  const isCurrent = isHash(given, scim.tokenHash);
  const isPrevious = isHash(given, scim.previousHash);
  if (isCurrent) return isCurrentLive(scim, nowMs) ? "current" : undefined;
  return isPrevious && isPreviousLive(scim, nowMs) ? "previous" : undefined;
}

/** Finds why a token is rejected, for the log. Which one was revoked is not known: nothing is stored of these. */
export function explainScimRejection(scim: ScimState, token: string): ScimRejection {
  if (scim.revoked) return "revoked";
  const given = sha256(token);
  return isHash(given, scim.tokenHash) || isHash(given, scim.previousHash) ? "expired" : "unknown";
}

const nothing = Buffer.alloc(32);

function isHash(given: Buffer, stored: string): boolean {
  const isEqual = timingSafeEqual(given, stored === "" ? nothing : Buffer.from(stored, "hex"));
  return isEqual && stored !== "";
}
