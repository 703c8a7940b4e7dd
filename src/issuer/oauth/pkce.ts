// Proof Key for Code Exchange (RFC 7636), of which only S256 is served.
import { createHash, timingSafeEqual } from "node:crypto";
import { invalidArgument } from "../../kernel/errors.js";

/** The base64url of 32 bytes: of the last digit two bits stand for nothing. */
const CHALLENGE = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;
/** RFC 7636, section 4.1. */
const VERIFIER = /^[A-Za-z0-9\-._~]{43,128}$/;

/**
 * Requires a challenge and its method.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireChallenge(challenge: string | undefined, method: string | undefined): string {
  if (challenge === undefined || !CHALLENGE.test(challenge)) {
    const rule = "code_challenge must be the base64url of a SHA-256, 43 characters";
    throw invalidArgument({ field: "code_challenge", description: rule });
  }
  // Absent means "plain" (section 4.3), which proves nothing to whoever saw the request.
  if (method !== "S256") {
    throw invalidArgument({ field: "code_challenge_method", description: "code_challenge_method must be S256" });
  }
  return challenge;
}

/** Whether `verifier` is well formed and the one that the challenge was made of. */
export function provesChallenge(verifier: string, challenge: string): boolean {
  if (!VERIFIER.test(verifier)) return false;
  const made = createHash("sha256").update(verifier).digest();
  const wanted = Buffer.from(challenge, "base64url");
  return made.length === wanted.length && timingSafeEqual(made, wanted);
}
