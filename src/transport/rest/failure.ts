// What is sent when a call fails, at whatever point it does.
import { Code, type ConnectError } from "@connectrpc/connect";
import { formatError, httpStatusOf, retryAfterOf } from "../../codec/error-json.js";
import type { MessageWriters } from "../../codec/json-wkt.js";
import { answerError, isCallerGone, rejectReasonOf } from "../../kernel/errors.js";
import type { CallContext } from "../../pipeline/call.js";
import { discardRest, mayHaveBody } from "../http/body-reader.js";
import { abort, HttpError, type HttpRequest, type HttpResponse } from "../http/http-message.js";
import { recordOf } from "../http/request-record.js";
import { copyHeaders, headersOf, type ResponseHeaders, send } from "../http/send.js";

/** What {@link createFailures} is made of. */
export interface FailureOptions {
  readonly errorDomain: string;
  /** The writers of the details of the errors of a call. */
  readonly writersOf: (call: CallContext | undefined) => MessageWriters;
  /** Called with internal errors; the caller gets INTERNAL without their cause. */
  readonly onInternalError?: ((error: ConnectError, call: CallContext | undefined) => void) | undefined;
}

/** Answers failed calls. */
export interface Failures {
  /** Sends the status and the body of an error; `call` is there once the request was understood. */
  answer(req: HttpRequest, res: HttpResponse, error: unknown, call: CallContext | undefined): void;

  /** Reports an error that ends an answer after its status was sent. */
  report(error: unknown, call: CallContext): void;

  /** An error as google.rpc.Status in JSON, for when the status has been sent already. */
  textOf(error: unknown, call: CallContext): string;
}

/** Creates them. */
export function createFailures({ errorDomain, writersOf, onInternalError }: FailureOptions): Failures {
  function answerOf(error: unknown, call: CallContext | undefined): ConnectError {
    const answer = answerError(error, errorDomain, (internal) => onInternalError?.(internal, call));
    call?.inbound.record?.setFailure(answer.code, rejectReasonOf(error));
    return answer;
  }

  function reject(req: HttpRequest, res: HttpResponse, error: unknown, call: CallContext | undefined): void {
    const fault = error instanceof HttpError ? error : undefined;
    const answer = answerOf(fault?.error ?? error, call);
    if (call === undefined) recordOf(res)?.setFailure(answer.code, rejectReasonOf(fault?.error ?? error));
    const headers: ResponseHeaders = call === undefined ? {} : headersOf(call);
    copyHeaders(answer.metadata, headers);
    Object.assign(headers, fault?.headers);
    if (answer.code === Code.Unauthenticated) {
      const sent = req.headers.authorization !== undefined;
      headers["www-authenticate"] = `Bearer realm="arbor"${sent ? ', error="invalid_token"' : ""}`;
    }
    const retryAfter = retryAfterOf(answer);
    if (retryAfter !== undefined) headers["retry-after"] = retryAfter;
    if (mayHaveBody(req)) discardRest(req);
    const status = fault?.status ?? httpStatusOf(answer.code);
    send(res, status, headers, "application/json", formatError(answer, writersOf(call)));
  }

  return {
    report: answerOf,
    textOf: (error, call) => formatError(answerOf(error, call), writersOf(call)),
    answer(req, res, error, call) {
      if (isCallerGone(error)) return;
      try {
        reject(req, res, error, call);
      } catch {
        // Not even the error could be sent: the connection is all there is left to end.
        abort(res);
      }
    },
  };
}
