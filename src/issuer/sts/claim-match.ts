// Whether the claims of a token are those that an identity accepts, literally or by pattern.
import type { Identity_ClaimMatch } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import type { TokenClaims } from "../upstream/token.js";
import { InvalidClaim, notAssumable, requireAudience } from "./audience.js";
import {
  createIdentityBudget,
  createIssuerBudget,
  matchesPattern,
  matchesValue,
  type StepBudget,
} from "./claim-pattern.js";

/**
 * Whether the match accepts `issuer`, literally or by pattern. This is decided before the keys of the issuer are
 * fetched; the fetch validates the form of the issuer.
 */
export function matchesIssuer(match: Identity_ClaimMatch, issuer: string): boolean {
  return matchesValue(match.iss, issuer, createIssuerBudget());
}

/**
 * Requires that the claims of a token match. Issuer, subject, audience and custom claims are compared byte for byte, or
 * with patterns that must match the whole value. A boolean claim is compared as the text `true` or `false`. Other
 * claims that are not text, such as numbers, never match.
 *
 * @param ownAudiences what the `aud` of a token for this service may be
 * @param identityUid the uid of the identity to assume
 * @param budget what all patterns of the decision may cost together
 * @throws ApiError PERMISSION_DENIED: `invalid "<claim>"` for a custom claim that differs or is absent, and the text
 * of an unknown identity for every other difference; UNAUTHENTICATED when the match states no audience and the token
 * is not for this service
 */
export function requireClaimMatch(
  match: Identity_ClaimMatch,
  token: TokenClaims,
  ownAudiences: readonly string[],
  identityUid: string,
  budget: StepBudget = createIdentityBudget(),
): void {
  const { sub, aud, claims, claimPatterns } = match;
  if (!matchesIssuer(match, token.issuer)) throw notAssumable(identityUid, "match_issuer");
  if (!matchesValue(sub, token.subject, budget)) throw notAssumable(identityUid, "match_subject");
  const stated = aud.case === undefined ? undefined : (audience: string) => matchesValue(aud, audience, budget);
  requireAudience(token.audiences, stated, ownAudiences, identityUid);
  for (const [name, text] of Object.entries(claims)) {
    if (findClaimText(token.claims, name) !== text) throw new InvalidClaim(name, text);
  }
  for (const [name, pattern] of Object.entries(claimPatterns)) {
    const text = findClaimText(token.claims, name);
    if (text === undefined || !matchesPattern(pattern, text, budget)) throw new InvalidClaim(name, pattern);
  }
}

// Own properties only: every object inherits a `constructor`.
function findClaimText(claims: TokenClaims["claims"], name: string): string | undefined {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
  if (typeof value === "boolean") return String(value);
  return typeof value === "string" ? value : undefined;
}
