import { refused } from "../upstream/token.js";
import { notAssumable } from "./refusal.js";

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
