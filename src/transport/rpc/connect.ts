// Connect, gRPC-Web, streams, and gRPC with compression or JSON: everything of
// RPC that is not on the lean path, through connect's own protocol handlers.
// The handlers they call are the same pipeline as everywhere.
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  type UnknownField,
} from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import {
  type ContextValues,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { assertWritable } from "../../codec/frame-writer.js";
import { createTypeRegistry } from "../../codec/type-registry.js";
import {
  type ApiError,
  answerError,
  CALLER_GONE,
  connectErrorFrom,
  deadlineExceeded,
  malformedRequest,
  unimplemented,
} from "../../kernel/errors.js";
import type { Principal } from "../../kernel/principal.js";
import { type Clock, yieldToEventLoop } from "../../kernel/time.js";
import type { AuthenticateCaller } from "../../pipeline/auth/authenticate.js";
import { type Inbound, StreamCall, UnaryCall } from "../../pipeline/call.js";
import type { Invoke } from "../../pipeline/invoke.js";
import type { InvokeStream } from "../../pipeline/invoke-stream.js";
import { readAll } from "../../pipeline/list-chunks.js";
import type { MethodEntry, MethodTable, StreamEntry, UnaryEntry } from "../../pipeline/method-table.js";
import type { AccessRecord } from "../http/access-log.js";
import { discardRest, mayHaveBody } from "../http/body-reader.js";
import { isProtocolField } from "../http/grpc-fields.js";
import {
  abort,
  HttpError,
  type HttpRequest,
  type HttpResponse,
  isGone,
  isHttp2,
  peerAddress,
  socketAddressOf,
  type TrustedProxies,
} from "../http/http-message.js";
import { ContextInbound } from "../http/inbound.js";
import type { Limits } from "../http/limits.js";
import { buffersOf } from "../http/request-buffers.js";
import { connectJson, sendEndStream, sendGrpcStatus, sendJson } from "../http/send.js";
import { gzip } from "./compression.js";
import { universalRequest, writeAnswer } from "./connect-http.js";
import type { ListFrames } from "./list-frame.js";
import { ENVELOPE_BYTES, readRequest } from "./request-body.js";
import { createStreamShares } from "./stream-shares.js";
import { findWebText } from "./web-text.js";

/** A service served as it is, beside the method table: health, reflection, streams. */
export interface ExtraService {
  readonly desc: DescService;
  readonly impl: Partial<ServiceImpl<DescService>>;
}

/** Pairs a service with its implementation, checked by the compiler. */
export function extraService<S extends DescService>(desc: S, impl: Partial<ServiceImpl<S>>): ExtraService {
  return { desc, impl: impl as ExtraService["impl"] };
}

/** What {@link createConnect} is made of. */
export interface ConnectOptions {
  readonly methods: MethodTable;
  readonly extraServices: readonly ExtraService[];
  readonly invoke: Invoke;
  readonly authenticateCaller: AuthenticateCaller;
  /** Runs the methods that stream; without it the table must hold none. */
  readonly invokeStream?: InvokeStream | undefined;
  readonly clock: Clock;
  readonly errorDomain: string;
  readonly limits: Limits;
  readonly listFrames: ListFrames;
  readonly proxies: TrustedProxies | undefined;
  /** Whether connections are all of a proxy's: then nothing is counted by an address that may be its own. */
  readonly behindProxy?: boolean | undefined;
  readonly onInternalError: (error: unknown) => void;
}

/** Serves RPC over HTTP requests whose authority has been validated. */
export interface Connect {
  /** Whether a method is served under this path, whatever its kind. */
  serves(path: string): boolean;

  /** The HTTP methods of the method under this path, as in an Allow header. */
  methodsOf(path: string): string | undefined;

  /** Whether the method under this path takes a stream, whose end may be far off. */
  takesStream(path: string): boolean;

  /** Answers a call of a served method. Never throws. */
  handle(req: HttpRequest, res: HttpResponse, path: string, access?: AccessRecord): void;

  /** Answers a call of a method that is not served, in the form of the Connect protocol. */
  refuseUnknown(res: HttpResponse, path: string): void;
}

const remoteAddressKey = createContextKey<string | undefined>(undefined);
const principalKey = createContextKey<Principal | undefined>(undefined);
const responseKey = createContextKey<HttpResponse | undefined>(undefined);
const requestKey = createContextKey<Message | undefined>(undefined);

/** Creates the adapter. */
export function createConnect(options: ConnectOptions): Connect {
  const { errorDomain, limits } = options;
  const handlers = createHandlers(options);
  const registry = createTypeRegistry(options.methods.values());
  const streams = createStreamShares("streams", {
    total: limits.openStreams,
    perConnection: limits.openStreamsPerConnection,
    perAddress: limits.openStreamsPerAddress,
  });

  // Many peers share the connections of a trusted proxy, and the address of a proxy nobody trusts.
  function takeStream(req: HttpRequest, address: string | undefined): () => void {
    if (address !== socketAddressOf(req)) return streams.take({ connection: undefined, address });
    const connection = isHttp2(req) ? req.stream.session : req.socket;
    return streams.take({ connection, address: options.behindProxy ? undefined : address });
  }

  async function answer(handler: UniversalHandler, req: HttpRequest, res: HttpResponse, access?: AccessRecord) {
    const remote = peerAddress(socketAddressOf(req), req.headers, options.proxies);
    const entry = options.methods.get(handler.requestPath);
    const webText = findWebText(req.headers);
    let release: (() => void) | undefined;
    try {
      // Before anything else: a peer with too many open streams must cost no more.
      if (handler.method.methodKind !== "unary") release = takeStream(req, remote);
      const principal = entry && (await options.authenticateCaller(entry, req.headers.authorization));
      if (principal !== undefined) buffersOf(req)?.holdFor(principal.identityUid);
      const values: ContextValues = createContextValues()
        .set(remoteAddressKey, remote)
        .set(principalKey, principal)
        .set(responseKey, res);
      const maxBytes = entry?.maxRequestBytes ?? limits.publicRequestBytes;
      const { body, message } = await readRequest(handler.method, maxBytes, req, entry && registry, webText?.request);
      const request = universalRequest(req, res, values.set(requestKey, message), body);
      if (message !== undefined) request.header.delete("content-length");
      const response = await handler(request);
      if (mayHaveBody(req)) discardRest(req);
      if (response.body === undefined) refuseEmpty(response, handler, res);
      else await writeAnswer(response, res, errorDomain, access, webText?.answer);
    } catch (error) {
      if (error === CALLER_GONE) return;
      if (mayHaveBody(req)) discardRest(req);
      if (!res.headersSent && !isGone(res)) {
        refuseRpc(req, res, handler.method, error instanceof HttpError ? error.error : error);
        return;
      }
      // Here the peer has gone, or an answer could not be written to its end.
      if (!isGone(res)) options.onInternalError(error);
      abort(res);
    } finally {
      release?.();
    }
  }

  // A refusal in the form of the protocol, without its library, which would read the body first.
  function refuseRpc(req: HttpRequest, res: HttpResponse, method: DescMethod, cause: unknown): void {
    const contentType = req.headers["content-type"] ?? "";
    const error = answerError(cause, errorDomain, (answer) => options.onInternalError(answer.cause ?? cause));
    if (contentType.startsWith("application/grpc")) sendGrpcStatus(res, contentType, error);
    else if (contentType.startsWith("application/connect+") && method.methodKind !== "unary")
      sendEndStream(res, contentType, error);
    else sendJson(res, codeToHttpStatus(error.code), connectJson(error));
  }

  function refuse(res: HttpResponse, status: number, error: unknown, headers: Record<string, string> = {}): void {
    sendJson(res, status, connectJson(connectErrorFrom(error, errorDomain)), headers);
  }

  // What connect answers without a body: a wrong HTTP method, media type or HTTP version.
  function refuseEmpty(response: UniversalServerResponse, handler: UniversalHandler, res: HttpResponse): void {
    const { method } = handler;
    if (response.status === 405) {
      const allow = httpMethodsOf(method);
      refuse(res, 405, unimplemented(`method: ${method.name} takes ${allow.replace(", ", " and ")}`), { allow });
    } else if (response.status === 415) {
      refuse(res, 415, unimplemented("content-type: not one this method takes"), { "accept-post": ACCEPT_POST });
    } else {
      refuse(res, response.status, unimplemented("protocol: this method needs HTTP/2"));
    }
  }

  function refuseUnknown(res: HttpResponse, path: string): void {
    refuse(res, 404, noSuchMethod(path));
  }

  return {
    serves: (path) => handlers.has(path),
    methodsOf(path) {
      const method = handlers.get(path)?.method;
      return method && httpMethodsOf(method);
    },
    takesStream(path) {
      const kind = handlers.get(path)?.method.methodKind;
      return kind === "client_streaming" || kind === "bidi_streaming";
    },
    refuseUnknown,
    handle(req, res, path, access) {
      const handler = handlers.get(path);
      const version = req.headers["connect-protocol-version"];
      if (handler === undefined) refuseUnknown(res, path);
      else if (version !== undefined && version !== "1")
        refuse(res, 400, malformedRequest("connect-protocol-version must be 1"));
      else if (req.httpVersionMajor < 2 && isGrpc(req.headers["content-type"]))
        refuseEmpty({ status: 415 }, handler, res);
      else void answer(handler, req, res, access);
    },
  };
}

/** UNIMPLEMENTED, for RPC paths that name nothing served here. */
export function noSuchMethod(path: string): ApiError {
  return unimplemented(`method: no such method ${path.slice(0, 200)}`);
}

// Limits are options of connect's routers, so there is one for each limit.
function createHandlers(options: ConnectOptions): ReadonlyMap<string, UniversalHandler> {
  const { limits, methods, extraServices } = options;
  const services = servicesOf(methods);
  const handlers = new Map<string, UniversalHandler>();
  const maxBytesOf = (path: string) => methods.get(path)?.maxRequestBytes ?? limits.publicRequestBytes;
  const allLimits = new Set([
    limits.publicRequestBytes,
    ...[...methods.values()].map((entry) => entry.maxRequestBytes),
  ]);
  for (const readMaxBytes of allLimits) {
    const router = createConnectRouter({
      acceptCompression: [gzip],
      readMaxBytes,
      writeMaxBytes: limits.responseBytes,
      binaryOptions: { readUnknownFields: false },
    });
    // A second argument of options would switch interceptors and protocols back to their defaults.
    for (const service of services) router.service(service.desc, implOf(service.methods, options));
    for (const { desc, impl } of extraServices) router.service(desc, impl);
    for (const handler of router.handlers)
      if (maxBytesOf(handler.requestPath) === readMaxBytes) handlers.set(handler.requestPath, handler);
  }
  return handlers;
}

// Connect takes calls of methods without side effects by GET.
function httpMethodsOf({ methodKind, idempotency }: DescMethod): string {
  const get = methodKind === "unary" && idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  return get ? "GET, POST" : "POST";
}

const ACCEPT_POST =
  "application/json, application/proto, application/grpc-web+proto, application/grpc-web+json, application/grpc-web-text";

// gRPC proper ends in HTTP trailers, which few HTTP/1.1 peers and proxies pass on.
function isGrpc(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/grpc(?:$|[+;])/i.test(contentType);
}

function servicesOf(methods: MethodTable): { desc: DescService; methods: MethodEntry[] }[] {
  const services = new Map<DescService, MethodEntry[]>();
  for (const entry of methods.values()) {
    const known = services.get(entry.desc.parent);
    if (known) known.push(entry);
    else services.set(entry.desc.parent, [entry]);
  }
  return [...services].map(([desc, entries]) => ({ desc, methods: entries }));
}

type UnaryImpl = (request: Message, context: HandlerContext) => Promise<object>;
type StreamImpl = (request: Message, context: HandlerContext) => AsyncIterable<object>;

function implOf(methods: readonly MethodEntry[], options: ConnectOptions): Partial<ServiceImpl<DescService>> {
  const impl: Record<string, UnaryImpl | StreamImpl> = {};
  for (const entry of methods) {
    impl[entry.desc.localName] = entry.kind === "unary" ? unaryImpl(entry, options) : streamImpl(entry, options);
  }
  // Which methods there are is known from the table, not from a generated type.
  return impl as unknown as Partial<ServiceImpl<DescService>>;
}

function unaryImpl(entry: UnaryEntry, options: ConnectOptions): UnaryImpl {
  return async (given, context) => {
    const request = context.values.get(requestKey) ?? given;
    const call = new UnaryCall(inboundOf(context, options), entry.desc, options.clock());
    const principal = context.values.get(principalKey);
    const { output } = entry.desc;
    const gone = () => context.signal.aborted;
    // In bytes, which take a fraction of the room of messages, and charged until they are sent.
    const join = async (chunks: AsyncIterable<object>) => {
      const res = context.values.get(responseKey);
      const buffers = res && buffersOf(res);
      const frame = await options.listFrames({ output, chunks, gone, buffers, cutOff: () => res && abort(res) });
      await yieldToEventLoop();
      const bytes = Buffer.concat(frame.pieces).subarray(ENVELOPE_BYTES);
      const isJson = context.requestHeader.get("content-type")?.includes("json") ?? true;
      return isJson ? fromBinary(output, bytes) : encodedMessage(output, bytes);
    };
    try {
      const answer = await readAll(options.invoke, options.clock, { entry, call, principal, request }, join);
      if (entry.list === undefined) assertAnswer(output, answer, options);
      return answer;
    } catch (error) {
      throw connectErrorFrom(error, options.errorDomain);
    } finally {
      copyFields(call.responseHeaderIfSet, context.responseHeader);
      copyFields(call.responseTrailerIfSet, context.responseTrailer);
    }
  };
}

// The library writes some values as others, such as half a surrogate pair.
function assertAnswer(desc: DescMessage, answer: object, { errorDomain, onInternalError }: ConnectOptions): void {
  try {
    assertWritable(desc, answer);
  } catch (error) {
    throw answerError(error, errorDomain, () => onInternalError(error));
  }
}

// A message that is written as these bytes: to read a long list and write it again would keep everybody waiting.
function encodedMessage(desc: DescMessage, bytes: Uint8Array): Message {
  const message = create(desc);
  const reader = new BinaryReader(bytes);
  const fields: UnknownField[] = [];
  while (reader.pos < reader.len) {
    const [no, wireType] = reader.tag();
    fields.push({ no, wireType, data: reader.skip(wireType, no) });
  }
  message.$unknown = fields;
  return message;
}

function streamImpl(entry: StreamEntry, options: ConnectOptions): StreamImpl {
  const { invokeStream } = options;
  if (invokeStream === undefined) throw new TypeError(`${entry.path} streams, but nothing was given to run streams`);
  return async function* (given, context) {
    const request = context.values.get(requestKey) ?? given;
    const call = new StreamCall(inboundOf(context, options), entry.desc, options.clock());
    let isStarted = false;
    try {
      for await (const message of invokeStream(entry, call, context.values.get(principalKey), request)) {
        // Headers are sent with the first message, trailers after the last.
        if (!isStarted) copyFields(call.responseHeaderIfSet, context.responseHeader);
        isStarted = true;
        assertAnswer(entry.desc.output, message, options);
        yield message;
      }
    } finally {
      if (!isStarted) copyFields(call.responseHeaderIfSet, context.responseHeader);
      copyFields(call.responseTrailerIfSet, context.responseTrailer);
    }
  };
}

function inboundOf(context: HandlerContext, { errorDomain }: ConnectOptions): Inbound {
  const timeoutMs = context.timeoutMs();
  if (timeoutMs !== undefined && timeoutMs <= 0) throw connectErrorFrom(deadlineExceeded(), errorDomain);
  // A caller that disconnected while its request was read gets nothing, so nothing begins.
  if (context.signal.aborted) throw CALLER_GONE;
  return new ContextInbound(context, timeoutMs, context.values.get(remoteAddressKey));
}

function copyFields(from: Headers | undefined, to: Headers): void {
  from?.forEach((value, name) => {
    if (!isProtocolField(name)) to.set(name, value);
  });
}
