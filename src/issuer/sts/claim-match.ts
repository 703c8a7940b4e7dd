import type { Identity_ClaimMatch } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import type { VerifiedToken } from "../upstream/token.js";
import { invalidClaim, notAssumable, requireAudience, requireForeignIssuer } from "./audience.js";
import { fits, identityBudget, issuerBudget, matchesPattern } from "./pattern.js";

/**
 * Whether a token of `issuer` may cause a look-up of that issuer's keys: the match names it literally
 * or by pattern. Decided before anything is fetched; that the issuer has the form of one is for the
 * look-up to make sure of.
 */
export function admitsIssuer(match: Identity_ClaimMatch, issuer: string): boolean {
  return fits(match.iss, issuer, issuerBudget());
}

/**
 * Requires that a verified token matches. Issuer, subject, audience and custom claims are compared
 * byte for byte or with patterns that must match the whole of them. A claim that is true or false is
 * compared as that word; one that is neither that nor text, numbers included, never matches.
 *
 * @param ownAudiences the URLs of this service: its issuer and its base URL
 * @param identityUid the uid of the identity that is to be assumed
 * @throws ApiError PERMISSION_DENIED: `invalid "<claim>"` for a custom claim that differs or is absent,
 * and the text of an unknown identity for everything else that differs; UNAUTHENTICATED when the match
 * states no audience and the token is not for this service, or is by this service.
 */
export function requireClaimMatch(
  match: Identity_ClaimMatch,
  token: VerifiedToken,
  ownAudiences: readonly string[],
  identityUid: string,
): void {
  const { sub, aud, claims, claimPatterns } = match;
  requireForeignIssuer(token.issuer, ownAudiences);
  const budget = identityBudget();
  if (!admitsIssuer(match, token.issuer) || !fits(sub, token.subject, budget)) throw notAssumable(identityUid);
  const stated = aud.case === undefined ? undefined : (audience: string) => fits(aud, audience, budget);
  requireAudience(token.audiences, stated, ownAudiences, identityUid);
  for (const [name, text] of Object.entries(claims)) {
    if (textOf(token.claims, name) !== text) throw invalidClaim(name);
  }
  for (const [name, pattern] of Object.entries(claimPatterns)) {
    const text = textOf(token.claims, name);
    if (text === undefined || !matchesPattern(pattern, text, budget)) throw invalidClaim(name);
  }
}

// Only what the token itself says: every object has a `constructor`.
function textOf(claims: VerifiedToken["claims"], name: string): string | undefined {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
  if (typeof value === "boolean") return String(value);
  return typeof value === "string" ? value : undefined;
}
