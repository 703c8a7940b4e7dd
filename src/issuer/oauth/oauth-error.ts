// Errors of logins and token requests as values, with the error codes of OAuth 2.0.
import { Code } from "@connectrpc/connect";
import { ApiError, formatViolation, rejectReasonOf } from "../../kernel/errors.js";
import type { RejectReason } from "../../kernel/reject-reason.js";

/** An OAuth error response (RFC 6749, sections 4.1.2.1 and 5.2). */
export interface OAuthError {
  readonly error: string;
  /** A sentence without a full stop, in the characters that an error_description may have. */
  readonly description: string;
  readonly status: number;
  /** When to retry, in seconds. */
  readonly retryAfterS?: number;
  /** Why the request is rejected, for logs and metrics. */
  readonly rejection?: RejectReason | undefined;
}

/** The error for a person whom the provider authenticated and who has no account here. */
export const ACCOUNT_NOT_FOUND = "account not found";

/** The error for a login that cannot continue. Only pages show it. */
export const LOGIN_OVER = "login_over";

/** Builds an error; the HTTP status is 400 unless given. */
export function oauthError(error: string, description: string, status = 400): OAuthError {
  return { error, description: toPrintable(description), status };
}

/** Builds the error of a login that was completed, has expired or belongs to another browser. */
export function loginOverError(): OAuthError {
  return oauthError(LOGIN_OVER, "the login was finished already, took too long, or was begun in another browser");
}

/** Builds the error of a login with `prompt=none` that needs a page (OpenID Connect Core 1.0, section 3.1.2.6). */
export function interactionRequired(): OAuthError {
  return oauthError("interaction_required", "the person must be asked, and the request has prompt=none", 403);
}

export function isOAuthError(value: object): value is OAuthError {
  return "error" in value && "description" in value && "status" in value;
}

/** Converts an error of the API; undefined for errors whose cause the caller must not learn. */
export function toOAuthError(error: unknown): OAuthError | undefined {
  const found = error instanceof ApiError ? convert(error) : undefined;
  return found && { ...found, rejection: rejectReasonOf(error) };
}

function convert(error: ApiError): OAuthError | undefined {
  const rules = error.violations.map(formatViolation);
  const text = rules.length > 0 ? rules.join("; ") : error.message.replace(/^[A-Z][a-z ]+: /, "");
  switch (error.code) {
    case Code.InvalidArgument:
      return oauthError(errorCodeOf(error), text);
    case Code.NotFound:
      return oauthError(ACCOUNT_NOT_FOUND, text.slice(Math.max(0, text.indexOf(ACCOUNT_NOT_FOUND))), 404);
    case Code.PermissionDenied:
      return oauthError("access_denied", text, 403);
    case Code.Unauthenticated:
      return oauthError("access_denied", "the login was not accepted", 401);
    case Code.FailedPrecondition:
      return oauthError("access_denied", text, 400);
    case Code.ResourceExhausted:
      return { ...oauthError("temporarily_unavailable", text, 429), retryAfterS: retryAfterS(error) };
    case Code.Unavailable:
    case Code.Aborted:
    case Code.DeadlineExceeded:
      return oauthError("temporarily_unavailable", text, 503);
    default:
      return undefined;
  }
}

// RFC 8707, section 2, and RFC 6749, sections 4.1.2.1 and 5.2, define these codes.
function errorCodeOf(error: ApiError): string {
  const fields = new Set(error.violations.map(({ field }) => field));
  if (fields.size !== 1) return "invalid_request";
  if (fields.has("aud")) return "invalid_target";
  if (fields.has("response_type")) return "unsupported_response_type";
  return fields.has("scopes") || fields.has("cap") ? "invalid_scope" : "invalid_request";
}

function retryAfterS(error: ApiError): number {
  for (const { value } of error.details) {
    const { retryDelay } = value as { readonly retryDelay?: { readonly seconds: bigint } };
    if (retryDelay !== undefined) return Number(retryDelay.seconds) + 1;
  }
  return 1;
}

// An error_description has these characters only (RFC 6749, appendix A.7).
function toPrintable(text: string): string {
  return text
    .replaceAll('"', "'")
    .replace(/[^\x20-\x7e]|\\/g, "?")
    .slice(0, 400);
}
