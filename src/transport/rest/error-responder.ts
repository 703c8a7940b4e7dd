// Answers failed calls, at whatever point they fail.
import { Code, type ConnectError } from "@connectrpc/connect";
import { formatError, httpStatusOf, retryAfterOf } from "../../codec/error-json.js";
import type { MessageWriters } from "../../codec/json-wkt.js";
import { answerError, isCallerGone, rejectReasonOf } from "../../kernel/errors.js";
import type { CallContext } from "../../pipeline/call.js";
import { abort, HttpError, type HttpRequest, type HttpResponse } from "../http/http-message.js";
import { recordOf } from "../http/request-record.js";
import { copyHeaders, headersOf, type ResponseHeaders, send } from "../http/send.js";

export interface FailureOptions {
  readonly errorDomain: string;
  /** The writers of error details, by call. */
  readonly writersOf: (call: CallContext | undefined) => MessageWriters;
  /** Called with internal errors; the caller gets INTERNAL without their cause. */
  readonly onInternalError?: ((error: ConnectError, call: CallContext | undefined) => void) | undefined;
}

/** Answers failed calls. */
export interface ErrorResponder {
  /** Sends the status and the body of an error; `call` is undefined before the request was decoded. */
  answer(req: HttpRequest, res: HttpResponse, error: unknown, call: CallContext | undefined): void;

  /** Records an error that ends a response after its status was sent. */
  report(error: unknown, call: CallContext): void;

  /** Formats an error as google.rpc.Status in JSON, for responses whose status was sent already. */
  textOf(error: unknown, call: CallContext): string;
}

/** Creates the responder. */
export function createErrorResponder({ errorDomain, writersOf, onInternalError }: FailureOptions): ErrorResponder {
  function responseOf(error: unknown, call: CallContext | undefined): ConnectError {
    const response = answerError(error, errorDomain, (internal) => onInternalError?.(internal, call));
    call?.inbound.record?.setFailure(response.code, rejectReasonOf(error));
    return response;
  }

  function reject(req: HttpRequest, res: HttpResponse, error: unknown, call: CallContext | undefined): void {
    const fault = error instanceof HttpError ? error : undefined;
    const response = responseOf(fault?.error ?? error, call);
    if (call === undefined) recordOf(res)?.setFailure(response.code, rejectReasonOf(fault?.error ?? error));
    const headers: ResponseHeaders = call === undefined ? {} : headersOf(call);
    copyHeaders(response.metadata, headers);
    Object.assign(headers, fault?.headers);
    if (response.code === Code.Unauthenticated) {
      const sent = req.headers.authorization !== undefined;
      headers["www-authenticate"] = `Bearer realm="arbor"${sent ? ', error="invalid_token"' : ""}`;
    }
    const retryAfter = retryAfterOf(response);
    if (retryAfter !== undefined) headers["retry-after"] = retryAfter;
    const status = fault?.status ?? httpStatusOf(response.code);
    send(res, status, headers, "application/json", formatError(response, writersOf(call)));
  }

  return {
    report: responseOf,
    textOf: (error, call) => formatError(responseOf(error, call), writersOf(call)),
    answer(req, res, error, call) {
      if (isCallerGone(error)) return;
      try {
        reject(req, res, error, call);
      } catch {
        // The error could not be sent either, so the connection is cut.
        abort(res);
      }
    },
  };
}
