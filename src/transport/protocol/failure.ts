// The error that answers a failed call, in every protocol.
import { Code, type ConnectError } from "@connectrpc/connect";
import { retryAfterOf } from "../../codec/error-json.js";
import { answerError, rejectReasonOf } from "../../kernel/errors.js";
import { HttpError } from "../http/http-message.js";
import type { Request } from "../http/request.js";

export interface FailureOptions {
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
  /** Called with what is a bug, whose cause the caller does not learn. */
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/** Why a call failed. */
export interface Failure {
  readonly error: ConnectError;
  /** The HTTP status, where it does not follow from the code. */
  readonly status: number | undefined;
  /** Header fields that the response has beside those of its protocol. */
  readonly fields: Readonly<Record<string, string>>;
}

/** Converts what was thrown, notes it in the record of its request and reports a bug. */
export type FailureOf = (thrown: unknown, request: Request) => Failure;

/** Creates the conversion. */
export function createFailures({ errorDomain, onInternalError }: FailureOptions): FailureOf {
  return (thrown, request) => {
    const isHttp = thrown instanceof HttpError;
    const cause = isHttp ? thrown.error : thrown;
    const { record } = request;
    const error = answerError(cause, errorDomain, (answer) => onInternalError(answer.cause ?? cause, record.requestId));
    record.setFailure(error.code, rejectReasonOf(cause));
    return isHttp ? { error, status: thrown.status, fields: thrown.headers } : { error, status: undefined, fields: {} };
  };
}

/**
 * The fields of a response whose HTTP status is that of its error: when to try again (RFC 9110, section 10.2.3), and the
 * challenge of 401 (section 11.6.1, RFC 6750, section 3).
 */
export function statusFieldsOf({ error }: Failure, { fields }: Request): Record<string, string> {
  const added: Record<string, string> = {};
  if (error.code === Code.Unauthenticated) {
    const wasSent = fields.authorization !== undefined;
    added["www-authenticate"] = `Bearer realm="arbor"${wasSent ? ', error="invalid_token"' : ""}`;
  }
  const retryAfter = retryAfterOf(error);
  if (retryAfter !== undefined) added["retry-after"] = String(retryAfter);
  return added;
}
