// What a login takes from the UserInfo endpoint of a provider (OpenID Connect Core 1.0, section 5.3): claims that the ID
// token lacks, never others. Providers may serve the claims of the scopes `email` and `profile` there alone (section 5.4).

/** Claims by their names. */
export type Claims = Readonly<Record<string, unknown>>;

/** What a login asks its provider for. */
export interface ClaimRequest {
  readonly scopes: readonly string[];
  /** The claim that has the groups of the person's directory; empty or absent for none. */
  readonly groupsClaim?: string;
}

/** The longest claims that are taken over, in characters of JSON. They are stored until the person decides. */
const MAX_LENGTH = 24 * 1024;

/** The claims that a login uses, by the scope that asks for them (section 5.4). */
const BY_SCOPE: Readonly<Record<string, readonly string[]>> = {
  email: ["email", "email_verified"],
  profile: ["name", "given_name", "family_name", "picture", "preferred_username"],
};
/** Those that every person may have: UserInfo is asked for one that is missing. */
const LOOKED_FOR: ReadonlySet<string> = new Set(["email", "email_verified", "name"]);

/** Whether a login would use claims that the ID token lacks. */
export function lacksClaims(request: ClaimRequest, claims: Claims): boolean {
  return listClaims(request).some(
    (name) => (LOOKED_FOR.has(name) || name === request.groupsClaim) && !isStated(claims, name),
  );
}

/**
 * Picks what UserInfo adds to an ID token. The subject of both must have been compared before (section 5.3.2).
 *
 * The ID token is signed, so none of its claims is replaced. An address counts as confirmed only if whoever stated it says
 * so and the other does not say otherwise: `email_verified` of UserInfo is about the address of UserInfo.
 *
 * @returns the claims to add; the ID token has none of them, but for an `email_verified` that becomes false
 * @throws TypeError when they are too long
 */
export function pickAddedClaims(request: ClaimRequest, claims: Claims, userInfo: Claims): Claims {
  const names = listClaims(request).filter((name) => name !== "email_verified");
  const added: Record<string, unknown> = {};
  for (const name of names) {
    if (!isStated(claims, name) && isStated(userInfo, name)) added[name] = userInfo[name];
  }
  const isConfirmed = userInfo.email_verified === true;
  if (Object.hasOwn(added, "email")) {
    added.email_verified = isConfirmed && (!isStated(claims, "email_verified") || claims.email_verified === true);
  } else if (!isStated(claims, "email_verified") && isStated(claims, "email") && userInfo.email === claims.email) {
    added.email_verified = isConfirmed;
  }
  if (JSON.stringify(added).length > MAX_LENGTH) throw new TypeError("the claims of UserInfo are too long");
  return added;
}

// The claims that a login with these scopes uses.
function listClaims({ scopes, groupsClaim = "" }: ClaimRequest): readonly string[] {
  const names = scopes.flatMap((scope) => (Object.hasOwn(BY_SCOPE, scope) ? (BY_SCOPE[scope] ?? []) : []));
  return groupsClaim === "" ? names : [...names, groupsClaim];
}

function isStated(claims: Claims, name: string): boolean {
  return Object.hasOwn(claims, name) && claims[name] !== null && claims[name] !== undefined;
}
