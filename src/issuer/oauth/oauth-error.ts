// Why a login or a request for a token does not succeed, as a value: the error
// codes of OAuth 2.0 with what to tell people.
import { Code } from "@connectrpc/connect";
import { ApiError, type FieldViolation } from "../../kernel/errors.js";

/** An error that may be shown (RFC 6749, sections 4.1.2.1 and 5.2). */
export interface Failure {
  readonly error: string;
  /** A sentence without a full stop, in the characters that an error_description may have. */
  readonly description: string;
  readonly status: number;
  /** When it makes sense to try again, in seconds. */
  readonly retryAfterS?: number;
}

/** The error for somebody whom a provider knows and this service does not. */
export const ACCOUNT_NOT_FOUND = "account not found";

/** The error for a login that cannot go on; seen on pages alone. */
export const LOGIN_OVER = "login_over";

/** Makes a failure; 400 unless another status is given. */
export function failure(error: string, description: string, status = 400): Failure {
  return { error, description: printable(description), status };
}

/** The failure of a login that cannot go on from where somebody is. */
export function loginOver(): Failure {
  return failure(LOGIN_OVER, "the login was finished already, took too long, or was begun in another browser");
}

/** Whether `value` is a failure. */
export function isFailure(value: object): value is Failure {
  return "error" in value && "description" in value && "status" in value;
}

/** An error of the API as a failure; undefined for what the caller may learn nothing of. */
export function failureOf(error: unknown): Failure | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const rules = violationsOf(error).map(({ description }) => description);
  const text = rules.length > 0 ? rules.join("; ") : error.message.replace(/^[A-Z][a-z ]+: /, "");
  switch (error.code) {
    case Code.InvalidArgument:
      return failure(invalidCode(error), text);
    case Code.NotFound:
      return failure(ACCOUNT_NOT_FOUND, ACCOUNT_NOT_FOUND, 404);
    case Code.PermissionDenied:
      return failure("access_denied", text, 403);
    case Code.Unauthenticated:
      return failure("access_denied", "the login was not accepted", 401);
    case Code.FailedPrecondition:
      return failure("access_denied", text, 400);
    case Code.ResourceExhausted:
      return { ...failure("temporarily_unavailable", text, 429), retryAfterS: retryAfterS(error) };
    case Code.Unavailable:
    case Code.Aborted:
    case Code.DeadlineExceeded:
      return failure("temporarily_unavailable", text, 503);
    default:
      return undefined;
  }
}

// RFC 8707, section 2, and RFC 6749, sections 4.1.2.1 and 5.2, have codes of their own for these.
function invalidCode(error: ApiError): string {
  const fields = new Set(violationsOf(error).map(({ field }) => field));
  if (fields.size !== 1) return "invalid_request";
  if (fields.has("aud")) return "invalid_target";
  if (fields.has("response_type")) return "unsupported_response_type";
  return fields.has("scopes") || fields.has("cap") ? "invalid_scope" : "invalid_request";
}

function violationsOf(error: ApiError): readonly FieldViolation[] {
  return error.details.flatMap(({ value }) => {
    const { fieldViolations } = value as { readonly fieldViolations?: readonly FieldViolation[] };
    return fieldViolations ?? [];
  });
}

function retryAfterS(error: ApiError): number {
  for (const { value } of error.details) {
    const { retryDelay } = value as { readonly retryDelay?: { readonly seconds: bigint } };
    if (retryDelay !== undefined) return Number(retryDelay.seconds) + 1;
  }
  return 1;
}

// RFC 6749, appendix A.7.
function printable(text: string): string {
  return text
    .replaceAll('"', "'")
    .replace(/[^\x20-\x7e]|\\/g, "?")
    .slice(0, 400);
}
