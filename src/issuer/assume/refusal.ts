// What a caller is told who may not assume an identity: as little for one that
// does not match as for one that does not exist.
import { type ApiError, permissionDenied, unauthenticated } from "../../kernel/errors.js";

/**
 * PERMISSION_DENIED for an identity that is not there, that is assumed in another way, or that the
 * bearer does not match. One text for all of them, so that nobody learns which identities exist.
 *
 * @param identityUid the uid the caller named
 */
export function notAssumable(identityUid: string): ApiError {
  return permissionDenied(`assuming ${identityUid}`);
}

/** PERMISSION_DENIED for a custom claim that differs or is absent, told only to a bearer who matches in all else. */
export function invalidClaim(name: string): ApiError {
  return permissionDenied(`invalid "${name}"`);
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
