// What a caller is told who may not assume an identity: as little for one that
// does not match as for one that does not exist.
import { ApiError, permissionDenied, unauthenticated } from "../../kernel/errors.js";

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

/** Why a signed AWS request is not accepted. */
export type AwsOutcome =
  | "invalid encoding"
  | "invalid request"
  | "unsigned binding headers"
  | "audience mismatch"
  | "identity mismatch"
  | "future-dated"
  | "expired"
  | "rejected by AWS";

/** The cause of an UNAUTHENTICATED error about a signed AWS request; for the log, which may hold all of it. */
export class AwsRefusal extends Error {
  readonly outcome: AwsOutcome;

  constructor(outcome: AwsOutcome, detail?: string) {
    super(detail === undefined ? `AWS request: ${outcome}` : `AWS request: ${outcome}: ${detail}`);
    this.name = "AwsRefusal";
    this.outcome = outcome;
  }
}

/** UNAUTHENTICATED with the text of every bad token; the outcome is in the `cause` alone. */
export function refusedAws(outcome: AwsOutcome, detail?: string): ApiError {
  return unauthenticated(new AwsRefusal(outcome, detail));
}
