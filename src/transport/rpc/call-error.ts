// The error that answers a failed call over RPC, in every protocol.
import type { ConnectError } from "@connectrpc/connect";
import { answerError, rejectReasonOf } from "../../kernel/errors.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { HttpError } from "../http/http-message.js";

export interface CallErrorOptions {
  readonly errorDomain: string;
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/** An error, and the header fields that it has beside those of its protocol. */
export interface CallError {
  readonly error: ConnectError;
  readonly headers: Readonly<Record<string, string>>;
}

/** Creates a function that converts what was thrown, notes it in the record of its request and reports a bug. */
export function createCallErrors({ errorDomain, onInternalError }: CallErrorOptions) {
  return (thrown: unknown, record: RequestRecord): CallError => {
    const isHttp = thrown instanceof HttpError;
    const cause = isHttp ? thrown.error : thrown;
    const error = answerError(cause, errorDomain, (answer) => onInternalError(answer.cause ?? cause, record.requestId));
    record.setFailure(error.code, rejectReasonOf(cause));
    return { error, headers: isHttp ? thrown.headers : {} };
  };
}
