import { Code } from "@connectrpc/connect";
import { ApiError, permissionDenied } from "../../kernel/errors.js";
import type { RejectReason } from "../../kernel/reject-reason.js";
import { invalidToken } from "../upstream/token.js";

/** Whether `name` is one of `ownUrls`, with or without its scheme and a trailing slash. */
export function isOwnUrl(name: string, ownUrls: readonly string[]): boolean {
  const trimmed = trimSlash(name);
  return ownUrls.some((url) => trimmed === trimSlash(url) || trimmed === trimSlash(url).replace(/^https?:\/\//, ""));
}

/**
 * Requires that one of a token's audiences is accepted.
 *
 * @param stated whether an audience is the one that the identity states; undefined where it states none, so that the
 * token must be for this service
 * @throws ApiError PERMISSION_DENIED, as for every mismatch, when the identity states another audience;
 * UNAUTHENTICATED when it states none and the token is for another service, because such a token is a credential for
 * no identity here
 */
export function requireAudience(
  audiences: readonly string[],
  stated: ((audience: string) => boolean) | undefined,
  ownUrls: readonly string[],
  identityUid: string,
): void {
  if (stated !== undefined) {
    if (!audiences.some(stated)) throw notAssumable(identityUid, "match_audience");
  } else if (!audiences.some((one) => isOwnUrl(one, ownUrls))) {
    throw invalidToken("token_audience", "is for another audience");
  }
}

/**
 * Requires that a token was not issued by this service. Otherwise tokens could be exchanged for new ones without end.
 *
 * @param ownUrls the URLs of this service; further audiences may be names of other issuers
 * @throws ApiError UNAUTHENTICATED
 */
export function requireForeignIssuer(issuer: string, ownUrls: readonly string[]): void {
  if (isOwnUrl(issuer, ownUrls)) throw invalidToken("token_issuer", "was issued by this service");
}

function trimSlash(name: string): string {
  return name.endsWith("/") ? name.slice(0, -1) : name;
}

// Errors for callers that may not assume an identity. They do not reveal whether the identity exists.

/**
 * PERMISSION_DENIED for an identity that does not exist, that has another relationship, or that the bearer does not
 * match, including its signature. One text for all, so that callers cannot find out which identities exist.
 *
 * @param identityUid the uid in the request
 * @param rejection which of the causes it is, for logs and metrics
 * @param isForOthers whether no audience of the token names this service, the most common mistake; it depends on the
 * token alone, so the hint reveals nothing
 * @param cause for the log
 */
export function notAssumable(
  identityUid: string,
  rejection: RejectReason | undefined,
  isForOthers = false,
  cause?: unknown,
): ApiError {
  const hint = isForOthers ? ` with a token whose ${AUDIENCE_HINT}` : "";
  const { code, reason, message, details } = permissionDenied(`assuming ${identityUid}${hint}`);
  return new ApiError(code, reason, message, details, cause, rejection);
}

/** What an error adds when the token is for another service. */
const AUDIENCE_HINT = "aud names none of this service's audiences";

/** Adds the hint to UNAUTHENTICATED and INVALID_ARGUMENT errors; returns other errors as they are. */
export function addAudienceHint(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const { code, reason, message, details, cause, rejection } = error;
  if (code !== Code.Unauthenticated && code !== Code.InvalidArgument) return error;
  return new ApiError(code, reason, `${message}; the token's ${AUDIENCE_HINT}`, details, cause, rejection);
}

/** The hint that {@link addAudienceHint} added to an error, for responses with a text of their own; empty without one. */
export function findAudienceHint({ message }: ApiError): string {
  return message.endsWith(AUDIENCE_HINT) ? `; the token's ${AUDIENCE_HINT}` : "";
}

/**
 * PERMISSION_DENIED: a custom claim differs or is absent. Only a bearer whose signature and other claims match gets this
 * error, which names the claim.
 */
export class InvalidClaim extends ApiError {
  readonly claim: string;
  /** The text or the pattern that the identity requires. Callers do not learn it. */
  readonly expected: string;

  constructor(claim: string, expected: string) {
    const { code, reason, message, details } = permissionDenied(`invalid "${claim}"`);
    super(code, reason, message, details, undefined, "match_claim");
    this.claim = claim;
    this.expected = expected;
  }
}
