// Proof Key for Code Exchange (RFC 7636), with the method S256 only.
import { timingSafeEqual } from "node:crypto";
import { sha256 } from "../../kernel/digest.js";
import { invalidArgument } from "../../kernel/errors.js";

/** The base64url of 32 bytes. The last two bits of the last digit are zero. */
const CHALLENGE = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;
/** RFC 7636, section 4.1. */
const VERIFIER = /^[A-Za-z0-9\-._~]{43,128}$/;

/**
 * Requires a well-formed challenge with the method S256.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireChallenge(challenge: string | undefined, method: string | undefined): string {
  if (challenge === undefined || !CHALLENGE.test(challenge)) {
    const rule = "must be the base64url of a SHA-256, 43 characters";
    throw invalidArgument({ field: "code_challenge", rule });
  }
  // An absent method means "plain" (section 4.3), which proves nothing to a party that saw the request.
  if (method !== "S256") {
    throw invalidArgument({ field: "code_challenge_method", rule: "must be S256" });
  }
  return challenge;
}

/** Whether `verifier` is well formed and matches the challenge. */
export function matchesChallenge(verifier: string, challenge: string): boolean {
  if (!VERIFIER.test(verifier)) return false;
  const computed = sha256(verifier);
  const expected = Buffer.from(challenge, "base64url");
  return computed.length === expected.length && timingSafeEqual(computed, expected);
}
