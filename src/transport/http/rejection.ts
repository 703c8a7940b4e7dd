// The response to requests that are rejected after their headers. It is the same for all of them, so it is built once for
// each protocol.
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import { httpStatusOf, retryAfterOf } from "../../codec/error-json.js";
import { type ApiError, connectErrorFrom } from "../../kernel/errors.js";
import { discardRest, mayHaveBody } from "./body-reader.js";
import type { Cors, CorsFields } from "./cors.js";
import { buildErrorTrailers } from "./grpc-fields.js";
import { completeHead, formatHead, sendByOneWrite } from "./http1-response.js";
import { resetStream, resetUnreadRequest } from "./http2-end.js";
import type { RejectedRequest } from "./request-record.js";
import { encodeEndStream, formatConnectJson, formatStatusJson } from "./send.js";
import { flushPerTick } from "./tick.js";

/** Answers requests with one error. */
export interface Rejection {
  /**
   * Formats the whole response to a request of HTTP/1.1 whose connection stays open, and records it.
   *
   * @param keepAliveMs how long the connection may be idle afterwards, in milliseconds
   * @returns undefined for a request that only {@link Rejection.http1} answers, such as one with a body or of a browser
   */
  formatHttp1(req: IncomingMessage, keepAliveMs: number): string | undefined;
  /** Answers a request of HTTP/1.1 at once. The connection stays open. */
  http1(req: IncomingMessage, res: ServerResponse): void;
  /** Answers a stream of HTTP/2 in the next tick of the event loop. */
  http2(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
}

/** A response that is built once and sent to many requests. */
interface PreparedResponse {
  readonly status: number;
  /** Includes `:status`. */
  readonly fields: OutgoingHttpHeaders;
  readonly body: string | Buffer;
  /** The status line and the constant fields of HTTP/1.1, where the body is text. */
  readonly head?: string;
}

export interface RejectionOptions {
  readonly errorDomain: string;
  /** Whether a path is that of an RPC method, whose errors have the form of the Connect protocol. */
  readonly isRpc: (path: string) => boolean;
  /** Records each request; returns its id. */
  readonly recordRejected: (rejected: RejectedRequest) => string;
  /** Adds CORS fields to the response. */
  readonly cors: Cors | undefined;
}

/** Creates the rejection with an error. */
export function createRejection(
  error: ApiError,
  { errorDomain, isRpc, recordRejected, cors }: RejectionOptions,
): Rejection {
  const withoutOrigin = cors?.fieldsFor(undefined);
  let built: PreparedResponses | undefined;
  const getResponses = () => {
    built ??= buildResponses(connectErrorFrom(error, errorDomain), withoutOrigin);
    return built;
  };

  function selectResponse(contentType: string | undefined, url: string | undefined): PreparedResponse {
    const { rest, connect, trailers, end } = getResponses();
    if (contentType?.startsWith("application/grpc")) {
      const fields = {
        ":status": 200,
        "content-type": contentType,
        "content-length": 0,
        ...trailers,
        ...withoutOrigin,
      };
      return { status: 200, fields, body: "" };
    }
    const mark = url?.indexOf("?") ?? -1;
    if (!isRpc(mark < 0 ? (url ?? "") : (url ?? "").slice(0, mark))) return rest;
    if (!contentType?.startsWith("application/connect+")) return connect;
    const fields = { ":status": 200, "content-type": contentType, "content-length": end.length, ...withoutOrigin };
    return { status: 200, fields, body: end };
  }

  function fieldsOf({ fields }: PreparedResponse, origin: string | undefined, requestId: string): OutgoingHttpHeaders {
    const all = { ...fields, "x-request-id": requestId };
    return origin === undefined ? all : Object.assign(all, cors?.fieldsFor(origin));
  }

  const sendHttp2 = flushPerTick<{ stream: ServerHttp2Stream; headers: IncomingHttpHeaders }>(
    "rejections",
    ({ stream, headers }) => {
      if (stream.destroyed || stream.closed) return;
      const response = selectResponse(headers["content-type"], headers[":path"]);
      // Written field by field here and below: to spread objects costs as much as the rest of the response.
      const requestId = recordRejected({
        reason: "overload",
        status: response.status,
        code: error.code,
        bytes: Number(response.fields["content-length"]),
        httpVersion: "2",
        headers,
        httpMethod: headers[":method"],
        url: headers[":path"],
        socketAddress: stream.session?.socket.remoteAddress,
      });
      const { body } = response;
      stream.respond(fieldsOf(response, headers.origin, requestId), { endStream: body.length === 0 });
      if (body.length > 0) stream.end(body);
      // The rest of the request is not read.
      if (stream.readableEnded) return;
      if (stream.endAfterHeaders) stream.resume();
      else resetUnreadRequest(stream);
    },
    (_error, { stream }) => resetStream(stream, constants.NGHTTP2_INTERNAL_ERROR),
  );

  const recordHttp1 = (req: IncomingMessage, { status, fields }: PreparedResponse) =>
    recordRejected({
      reason: "overload",
      status,
      code: error.code,
      bytes: req.method === "HEAD" ? 0 : Number(fields["content-length"]),
      httpVersion: req.httpVersionMinor === 0 ? "1.0" : "1.1",
      headers: req.headers,
      httpMethod: req.method,
      url: req.url,
      socketAddress: req.socket.remoteAddress,
    });

  return {
    formatHttp1(req, keepAliveMs) {
      const { origin, expect, "content-type": contentType } = req.headers;
      if (origin !== undefined || expect !== undefined || mayHaveBody(req)) return undefined;
      const response = selectResponse(contentType, req.url);
      const { head, body } = response;
      if (head === undefined || typeof body !== "string") return undefined;
      const requestId = recordHttp1(req, response);
      return completeHead(`${head}x-request-id: ${requestId}\r\n`, keepAliveMs) + body;
    },
    http1(req, res) {
      if (res.headersSent || res.destroyed) return;
      const response = selectResponse(req.headers["content-type"], req.url);
      const hasBody = mayHaveBody(req) && !req.complete;
      if (hasBody) discardRest(req);
      const requestId = recordHttp1(req, response);
      const { origin } = req.headers;
      const { head, body } = response;
      const isConstant = head !== undefined && typeof body === "string" && !hasBody && origin === undefined;
      if (isConstant && sendByOneWrite(res, response.status, `${head}x-request-id: ${requestId}\r\n`, body)) return;
      const { ":status": status, ...fields } = fieldsOf(response, origin, requestId);
      res.writeHead(Number(status), fields);
      res.end(body);
    },
    http2(stream, headers) {
      sendHttp2({ stream, headers });
    },
  };
}

interface PreparedResponses {
  readonly rest: PreparedResponse;
  readonly connect: PreparedResponse;
  readonly trailers: ReturnType<typeof buildErrorTrailers>;
  readonly end: ReturnType<typeof encodeEndStream>;
}

// Built at the first rejection: the first ConnectError makes Node load `fetch`, which would slow down every start.
function buildResponses(response: ConnectError, withoutOrigin: CorsFields | undefined): PreparedResponses {
  const retryAfter = retryAfterOf(response);
  const status = httpStatusOf(response.code);
  const buildJson = (body: string): PreparedResponse => {
    const fields = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "x-content-type-options": "nosniff",
      ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
      ...withoutOrigin,
    };
    const head = formatHead(status, fields);
    return { status, fields: { ":status": status, ...fields }, body, ...(head !== undefined && { head }) };
  };
  return {
    rest: buildJson(formatStatusJson(response)),
    connect: buildJson(formatConnectJson(response)),
    trailers: buildErrorTrailers(response),
    end: encodeEndStream(response),
  };
}
