// RPC over HTTP requests and responses: unary calls of Connect and gRPC-Web by `rpc/unary`, and streams and mounted
// services of every protocol by the handlers of connect.
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { type ContextValues, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { retryAfterOf } from "../../codec/error-json.js";
import { type ApiError, connectErrorFrom, invalidRequest, isCallerGone, unimplemented } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import { Shares } from "../../kernel/shares.js";
import type { MethodEntry, UnaryEntry } from "../../pipeline/method-table.js";
import { principalKey } from "../../pipeline/mount-options.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { discardRest } from "../http/body-reader.js";
import { abort, type HttpRequest, type HttpResponse, isGone, isHttp2, socketAddressOf } from "../http/http-message.js";
import { openRequestOf } from "../http/open-request.js";
import { noteCaller } from "../http/request-record.js";
import { formatConnectJson, sendBody, sendGrpcStatus, sendJson } from "../http/send.js";
import { createCallErrors } from "./call-error.js";
import { type ConnectOptions, createHandlers, recordKey, requestKey, responseKey } from "./connect-handlers.js";
import { encodeEndStream, toUniversalRequest, writeResponse } from "./connect-http.js";
import type { MessageCodec } from "./message-codec.js";
import { readRequest } from "./request-body.js";
import type { Unary } from "./unary.js";
import { findWebText } from "./web-text.js";

/** Serves RPC over HTTP requests whose authority has been validated. */
export interface Connect {
  /** Whether a method of any kind is served under this path. */
  serves(path: string): boolean;

  /** The HTTP methods of the method under this path, as in an Allow header. */
  methodsOf(path: string): string | undefined;

  /** Whether the method under this path takes a stream of requests, which may stay open. */
  takesStream(path: string): boolean;

  /** Answers a call of a served method. Never throws. */
  handle(req: HttpRequest, res: HttpResponse, path: string, record: RequestRecord): void;

  /** Answers a call of a served method with an error, before anything of it is read. */
  refuse(req: HttpRequest, res: HttpResponse, path: string, error: ApiError, record: RequestRecord): void;

  /** Answers a call of a method that is not served, in the form of the Connect protocol. */
  rejectUnknown(res: HttpResponse, path: string, record: RequestRecord): void;

  /** The name of the method under a path, `package.Service/Method`. */
  nameOf(path: string): string | undefined;

  /** The names of all methods. */
  readonly names: readonly string[];
}

/** What the paths of RPC lead to. */
type Target =
  | { readonly method: DescMethod; readonly entry: UnaryEntry }
  | { readonly method: DescMethod; readonly handler: UniversalHandler };

/** Creates the adapter. */
export function createConnect(
  options: ConnectOptions & { readonly unary: Unary; readonly jsonCodec: MessageCodec },
): Connect {
  const { errorDomain, limits, unary } = options;
  const errorOf = createCallErrors(options);
  const targets = new Map<string, Target>();
  const others: MethodEntry[] = [];
  for (const [path, entry] of options.methods) {
    // Unknown fields and encoding errors of mounted methods are handled as their authors expect.
    if (entry.kind === "unary" && entry.mounted === undefined) targets.set(path, { method: entry.desc, entry });
    else others.push(entry);
  }
  for (const [path, handler] of createHandlers(options, others)) targets.set(path, { method: handler.method, handler });
  const streams = new Shares("streams", {
    total: limits.openStreams,
    each: { connection: limits.openStreamsPerConnection, address: limits.openStreamsPerAddress },
  });

  // A connection of a trusted proxy has many peers, so it is not limited. One of another proxy counts as one peer.
  function takeStream(req: HttpRequest, address: string | undefined): () => void {
    const key = address === undefined ? undefined : addressKey(address);
    if (key !== addressKey(socketAddressOf(req))) return streams.take({ address: key });
    const connection = isHttp2(req) ? req.stream.session : req.socket;
    return streams.take({ connection, ...(!options.behindProxy && { address: key }) });
  }

  async function answer(handler: UniversalHandler, req: HttpRequest, res: HttpResponse, record: RequestRecord) {
    const remote = record.remoteAddress;
    const entry = options.methods.get(handler.requestPath);
    const webText = findWebText(req.headers);
    // Health and reflection have no entry and no spans.
    if (entry !== undefined) options.spans?.beginCall(record, req.headers);
    let release: (() => void) | undefined;
    try {
      // Checked first, so that further streams of a peer with too many cost little.
      if (handler.method.methodKind !== "unary") release = takeStream(req, remote);
      const principal = entry && (await options.authenticateCaller(entry, req.headers.authorization, record.trace));
      noteCaller(record, openRequestOf(req), principal);
      const values: ContextValues = createContextValues()
        .set(recordKey, record)
        .set(principalKey, principal)
        .set(responseKey, res);
      const maxBytes = entry?.maxRequestBytes ?? limits.publicRequestBytes;
      // The library reads the messages of mounted methods, as connect-node does.
      const codec = entry === undefined || entry.mounted ? undefined : options.jsonCodec;
      const { body, message } = await readRequest(handler.method, maxBytes, req, codec, record, webText?.request);
      const request = toUniversalRequest(req, res, values.set(requestKey, message), body, record);
      if (message !== undefined) request.header.delete("content-length");
      const response = await handler(request);
      discardRest(req);
      if (response.body === undefined) rejectEmpty(response.status, handler.method, res, record);
      else await writeResponse(response, res, entry?.mounted ? undefined : errorDomain, record, webText?.answer);
    } catch (error) {
      if (isCallerGone(error)) return;
      if (!res.headersSent && !isGone(res)) {
        rejectRpc(req, res, handler.method, error, record);
        return;
      }
      // The peer has disconnected, or a response could not be written.
      if (!isGone(res)) options.onInternalError(error, record.requestId);
      abort(res);
    } finally {
      release?.();
    }
  }

  // Rejects a call in the form of its protocol. The library would read the body first.
  function rejectRpc(
    req: HttpRequest,
    res: HttpResponse,
    method: DescMethod,
    cause: unknown,
    record: RequestRecord,
  ): void {
    const contentType = req.headers["content-type"] ?? "";
    const { error, headers: more } = errorOf(cause, record);
    if (contentType.startsWith("application/grpc")) sendGrpcStatus(res, contentType, error, more);
    else if (contentType.startsWith("application/connect+") && method.methodKind !== "unary")
      sendBody(res, 200, contentType, encodeEndStream(error));
    else {
      const retryAfter = retryAfterOf(error);
      const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
      sendJson(res, codeToHttpStatus(error.code), formatConnectJson(error), headers);
    }
  }

  function rejectCall(
    res: HttpResponse,
    status: number,
    cause: ApiError,
    record: RequestRecord,
    headers: Record<string, string> = {},
  ): void {
    record.setFailure(cause.code, cause.rejection);
    sendJson(res, status, formatConnectJson(connectErrorFrom(cause, errorDomain)), headers);
  }

  // A wrong HTTP method, media type or HTTP version.
  function rejectEmpty(status: number, method: DescMethod, res: HttpResponse, record: RequestRecord): void {
    if (status === 405) {
      const allow = httpMethodsOf(method);
      rejectCall(res, 405, unimplemented(`method: ${method.name} takes ${allow.replace(", ", " and ")}`), record, {
        allow,
      });
    } else if (status === 415) {
      const problem = unimplemented("content-type: not one this method takes");
      rejectCall(res, 415, problem, record, { "accept-post": ACCEPT_POST });
    } else {
      rejectCall(res, status, unimplemented("protocol: this method needs HTTP/2"), record);
    }
  }

  function rejectUnknown(res: HttpResponse, path: string, record: RequestRecord): void {
    rejectCall(res, 404, noSuchMethod(path), record);
  }

  const names = new Map([...targets.keys()].map((path) => [path, path.slice(1)]));

  return {
    serves: (path) => targets.has(path),
    methodsOf(path) {
      const method = targets.get(path)?.method;
      return method && httpMethodsOf(method);
    },
    takesStream(path) {
      const kind = targets.get(path)?.method.methodKind;
      return kind === "client_streaming" || kind === "bidi_streaming";
    },
    rejectUnknown,
    refuse(req, res, path, error, record) {
      const method = targets.get(path)?.method;
      if (method !== undefined) rejectRpc(req, res, method, error, record);
    },
    nameOf: (path) => names.get(path),
    names: [...names.values()],
    handle(req, res, path, record) {
      const target = targets.get(path);
      const version = req.headers["connect-protocol-version"];
      if (target === undefined) rejectUnknown(res, path, record);
      else if (version !== undefined && version !== "1")
        rejectCall(res, 400, invalidRequest("connect-protocol-version must be 1"), record);
      else if (req.httpVersionMajor < 2 && isGrpc(req.headers["content-type"]))
        rejectEmpty(415, target.method, res, record);
      else if ("handler" in target) void answer(target.handler, req, res, record);
      else if (
        !httpMethodsOf(target.method)
          .split(", ")
          .includes(req.method ?? "")
      ) {
        rejectEmpty(405, target.method, res, record);
      } else if (!unary.handle(req, res, target.entry, record)) {
        rejectEmpty(415, target.method, res, record);
      }
    },
  };
}

/** UNIMPLEMENTED, for RPC paths without a method. */
export function noSuchMethod(path: string): ApiError {
  return unimplemented(`method: no such method ${path.slice(0, 200)}`);
}

// Connect accepts GET for methods without side effects.
function httpMethodsOf({ methodKind, idempotency }: DescMethod): string {
  const get = methodKind === "unary" && idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  return get ? "GET, POST" : "POST";
}

const ACCEPT_POST =
  "application/json, application/proto, application/grpc-web+proto, application/grpc-web+json, application/grpc-web-text";

// gRPC needs HTTP trailers, which few peers and proxies of HTTP/1.1 support.
function isGrpc(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/grpc(?:$|[+;])/i.test(contentType);
}
