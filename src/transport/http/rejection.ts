// The answer to requests that are rejected before anything but their headers is read. It is
// the same for all of them, so it is made once, in the form of each protocol.
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { httpStatusOf, retryAfterOf } from "../../codec/error-json.js";
import { type ApiError, connectErrorFrom } from "../../kernel/errors.js";
import { discardRest, mayHaveBody } from "./body-reader.js";
import type { Cors } from "./cors.js";
import { errorTrailers } from "./grpc-fields.js";
import { resetStream, resetUnreadRequest } from "./http2-end.js";
import type { RejectedRequest } from "./request-record.js";
import { connectJson, encodeEndStream, statusJson } from "./send.js";
import { flushPerTick } from "./tick.js";

/** Answers requests with one error. */
export interface Rejection {
  /** Answers a request of HTTP/1.1 at once. The connection stays open. */
  http1(req: IncomingMessage, res: ServerResponse): void;
  /** Answers a stream of HTTP/2 in the next tick of the event loop. */
  http2(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
}

interface Form {
  readonly status: number;
  readonly fields: OutgoingHttpHeaders;
  readonly body: string | Buffer;
}

/** What {@link createRejection} is made of. */
export interface RejectionOptions {
  readonly errorDomain: string;
  /** Whether a path is that of a method, so that errors have the form of the Connect protocol. */
  readonly isRpc: (path: string) => boolean;
  /** Records each request; returns its id. */
  readonly recordRejected: (rejected: RejectedRequest) => string;
  /** Lets scripts of other origins read the answer. */
  readonly cors: Cors | undefined;
}

/** Makes the answer. */
export function createRejection(
  error: ApiError,
  { errorDomain, isRpc, recordRejected, cors }: RejectionOptions,
): Rejection {
  const answer = connectErrorFrom(error, errorDomain);
  const retryAfter = retryAfterOf(answer);
  const jsonForm = (body: string): Form => ({
    status: httpStatusOf(answer.code),
    fields: {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "x-content-type-options": "nosniff",
      ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
    },
    body,
  });
  const rest = jsonForm(statusJson(answer));
  const connect = jsonForm(connectJson(answer));
  const trailers = errorTrailers(answer);
  const end = encodeEndStream(answer);

  function formOf(contentType: string | undefined, url: string | undefined): Form {
    if (contentType?.startsWith("application/grpc"))
      return { status: 200, fields: { "content-type": contentType, "content-length": 0, ...trailers }, body: "" };
    const mark = url?.indexOf("?") ?? -1;
    if (!isRpc(mark < 0 ? (url ?? "") : (url ?? "").slice(0, mark))) return rest;
    if (!contentType?.startsWith("application/connect+")) return connect;
    return { status: 200, fields: { "content-type": contentType, "content-length": end.length }, body: end };
  }

  const sendHttp2 = flushPerTick<{ stream: ServerHttp2Stream; headers: IncomingHttpHeaders }>(
    "answers",
    ({ stream, headers }) => {
      if (stream.destroyed || stream.closed) return;
      const { status, fields, body } = formOf(headers["content-type"], headers[":path"]);
      const requestId = recordRejected({
        ...{ reason: "overload", status, code: answer.code, httpVersion: "2", headers },
        ...{ httpMethod: headers[":method"], url: headers[":path"] },
        socketAddress: stream.session?.socket.remoteAddress,
      });
      const allowed = cors?.fieldsFor(headers.origin);
      stream.respond(
        { ":status": status, ...fields, ...allowed, "x-request-id": requestId },
        { endStream: body.length === 0 },
      );
      if (body.length > 0) stream.end(body);
      // Nobody will read the rest of the request.
      if (stream.readableEnded) return;
      if (stream.endAfterHeaders) stream.resume();
      else resetUnreadRequest(stream);
    },
    (_error, { stream }) => resetStream(stream, constants.NGHTTP2_INTERNAL_ERROR),
  );

  return {
    http1(req, res) {
      if (res.headersSent || res.destroyed) return;
      const { status, fields, body } = formOf(req.headers["content-type"], req.url);
      if (mayHaveBody(req)) discardRest(req);
      const requestId = recordRejected({
        ...{ reason: "overload", status, code: answer.code, headers: req.headers },
        ...{ httpMethod: req.method, url: req.url, socketAddress: req.socket.remoteAddress },
        httpVersion: req.httpVersionMinor === 0 ? "1.0" : "1.1",
      });
      res.writeHead(status, { ...fields, ...cors?.fieldsFor(req.headers.origin), "x-request-id": requestId });
      res.end(body);
    },
    http2(stream, headers) {
      sendHttp2({ stream, headers });
    },
  };
}
