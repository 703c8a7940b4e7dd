import { ApiError, permissionDenied } from "../../kernel/errors.js";
import { refused } from "../upstream/token.js";

/**
 * Whether `name` is a name of this service: one of `ownUrls`, or one without its scheme. A trailing
 * slash more or less makes no difference.
 */
export function isOurName(name: string, ownUrls: readonly string[]): boolean {
  const asked = bare(name);
  return ownUrls.some((url) => asked === bare(url) || asked === bare(url).replace(/^https?:\/\//, ""));
}

/**
 * Requires that a token is meant for whom it should be; of several audiences one is enough.
 *
 * @param stated whether an audience is the one the identity states; undefined where it states none, so
 * that the token must be for this service
 * @throws ApiError PERMISSION_DENIED, as for any mismatch, when the identity states another audience;
 * UNAUTHENTICATED when it states none and the token is for somebody else: it is no credential here, for
 * this identity or any other, and most likely was taken from where it is one.
 */
export function requireAudience(
  audiences: readonly string[],
  stated: ((audience: string) => boolean) | undefined,
  ownUrls: readonly string[],
  identityUid: string,
): void {
  if (stated !== undefined) {
    if (!audiences.some(stated)) throw notAssumable(identityUid);
  } else if (!audiences.some((one) => isOurName(one, ownUrls))) {
    throw refused("is meant for somebody else");
  }
}

/**
 * Requires that a token was not issued by this service: one exchanged for the next would never end.
 *
 * @throws ApiError UNAUTHENTICATED
 */
export function requireForeignIssuer(issuer: string, ownUrls: readonly string[]): void {
  if (isOurName(issuer, ownUrls)) throw refused("is one of this service");
}

function bare(name: string): string {
  return name.endsWith("/") ? name.slice(0, -1) : name;
}

// What a caller is told who may not assume an identity: as little for one that
// does not match as for one that does not exist.

/**
 * PERMISSION_DENIED for an identity that is not there, that is assumed in another way, or that the
 * bearer does not match, its signature included. One text for all of them, so that nobody learns which
 * identities exist.
 *
 * @param identityUid the uid the caller named
 * @param isForOthers whether the audience of the token names none of this service. The token alone says
 * so, and it is the usual mistake.
 * @param cause for the log
 */
export function notAssumable(identityUid: string, isForOthers = false, cause?: unknown): ApiError {
  const hint = isForOthers ? " with a token whose aud names none of this service's audiences" : "";
  const { code, reason, message, details } = permissionDenied(`assuming ${identityUid}${hint}`);
  return new ApiError(code, reason, message, details, cause);
}

/** A custom claim differs or is absent; told only to a bearer whose signature and other claims match. */
export class InvalidClaim extends ApiError {}

/** PERMISSION_DENIED that names the claim. */
export function invalidClaim(name: string): InvalidClaim {
  const { code, reason, message, details } = permissionDenied(`invalid "${name}"`);
  return new InvalidClaim(code, reason, message, details);
}
