// The handlers of connect's routers, which call the pipeline: of streams, of mounted services, and of services without it.
import type { DescService, Message } from "@bufbuild/protobuf";
import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createConnectRouter,
  createContextKey,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { assertWritable } from "../../codec/frame-writer.js";
import { createServiceRegistry } from "../../codec/type-registry.js";
import { answerError, callerGone, connectErrorFrom, deadlineExceeded } from "../../kernel/errors.js";
import type { Clock } from "../../kernel/time.js";
import type { AuthenticateCaller } from "../../pipeline/auth/authenticate.js";
import { type CallContext, type Inbound, StreamCall, UnaryCall } from "../../pipeline/call.js";
import type { Invoke } from "../../pipeline/invoke.js";
import type { InvokeStream } from "../../pipeline/invoke-stream.js";
import type {
  InputStreamEntry,
  MethodEntry,
  MethodTable,
  MountedService,
  StreamEntry,
  UnaryEntry,
} from "../../pipeline/method-table.js";
import { principalKey } from "../../pipeline/mount-options.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { isProtocolField } from "../http/grpc-fields.js";
import type { HttpResponse } from "../http/http-message.js";
import { ContextInbound } from "../http/inbound.js";
import type { Limits } from "../http/limits.js";
import type { ServerSpans } from "../http/server-span.js";
import { createGzipOfConnect } from "./compression.js";

/** A service that is served beside the method table, without the pipeline: health and reflection. */
export interface ExtraService {
  readonly desc: DescService;
  readonly impl: Partial<ServiceImpl<DescService>>;
}

/** Defines such a service by its descriptor and its implementation. */
export function defineService<S extends DescService>(desc: S, impl: Partial<ServiceImpl<S>>): ExtraService {
  return { desc, impl: impl as ExtraService["impl"] };
}

export interface ConnectOptions {
  readonly methods: MethodTable;
  readonly extraServices: readonly ExtraService[];
  readonly invoke: Invoke;
  readonly authenticateCaller: AuthenticateCaller;
  /** Runs methods that stream; without it the table must have none. */
  readonly invokeStream?: InvokeStream | undefined;
  readonly clock: Clock;
  readonly errorDomain: string;
  readonly limits: Limits;
  /** Begins the spans of calls, where traces are on. */
  readonly spans?: ServerSpans | undefined;
  /** Whether all connections are those of proxies, so that streams are not counted by address. */
  readonly behindProxy?: boolean | undefined;
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/** The context value with the record of the request. */
export const recordKey = createContextKey<RequestRecord | undefined>(undefined);
/** The context value with the request message, if it was decoded already. */
export const requestKey = createContextKey<Message | undefined>(undefined);
/** The context value with the HTTP response of a call. */
export const responseKey = createContextKey<HttpResponse | undefined>(undefined);

/**
 * Creates connect's handlers of `methods` and of the extra services, by RPC path. Limits and registries are options of a router, so there is a
 * router for each pair of them.
 */
export function createHandlers(
  options: ConnectOptions,
  methods: readonly MethodEntry[],
): ReadonlyMap<string, UniversalHandler> {
  const { limits, extraServices } = options;
  const handlers = new Map<string, UniversalHandler>();
  for (const { maxBytes, mounted, entries } of groupsOf(methods)) {
    const router = createRouter(options, maxBytes, mounted === undefined ? OWN : { jsonOptions: registryOf(mounted) });
    for (const { desc, impl } of servicesOf(entries, options)) router.service(desc, impl);
    for (const handler of router.handlers) {
      if (entries.some(({ path }) => path === handler.requestPath)) handlers.set(handler.requestPath, handler);
    }
  }
  const router = createRouter(options, limits.publicRequestBytes, OWN);
  for (const { desc, impl } of extraServices) router.service(desc, impl);
  for (const handler of router.handlers) handlers.set(handler.requestPath, handler);
  return handlers;
}

// Handlers of the platform need no unknown fields, which would take memory as long as the message lives.
const OWN: ConnectRouterOptions = { binaryOptions: { readUnknownFields: false } };

// A second argument to `service` would reset interceptors and protocols to their defaults.
function createRouter(
  { limits, errorDomain }: ConnectOptions,
  readMaxBytes: number,
  more: ConnectRouterOptions,
): ConnectRouter {
  return createConnectRouter({
    ...{ acceptCompression: [createGzipOfConnect(errorDomain)], readMaxBytes, writeMaxBytes: limits.responseBytes },
    ...more,
  });
}

function registryOf({ desc, registry }: MountedService) {
  return { registry: createServiceRegistry(desc, registry) };
}

interface Group {
  readonly maxBytes: number;
  readonly mounted: MountedService | undefined;
  readonly entries: MethodEntry[];
}

function groupsOf(methods: readonly MethodEntry[]): Group[] {
  const groups: Group[] = [];
  for (const entry of methods) {
    const { maxRequestBytes: maxBytes, mounted } = entry;
    const known = groups.find((group) => group.maxBytes === maxBytes && group.mounted === mounted);
    if (known) known.entries.push(entry);
    else groups.push({ maxBytes, mounted, entries: [entry] });
  }
  return groups;
}

function servicesOf(methods: readonly MethodEntry[], options: ConnectOptions): ExtraService[] {
  const services = new Map<DescService, MethodEntry[]>();
  for (const entry of methods) {
    const known = services.get(entry.desc.parent);
    if (known) known.push(entry);
    else services.set(entry.desc.parent, [entry]);
  }
  return [...services].map(([desc, entries]) => ({ desc, impl: createServiceImpl(entries, options) }));
}

type UnaryImpl = (request: Message, context: HandlerContext) => Promise<object>;
type StreamImpl<I> = (request: I, context: HandlerContext) => AsyncGenerator<object>;
type CollectImpl = (requests: AsyncIterable<Message>, context: HandlerContext) => Promise<object>;
type Impl = UnaryImpl | StreamImpl<Message> | StreamImpl<AsyncIterable<Message>> | CollectImpl;

function createServiceImpl(
  methods: readonly MethodEntry[],
  options: ConnectOptions,
): Partial<ServiceImpl<DescService>> {
  const impl: Record<string, Impl> = {};
  for (const entry of methods) impl[entry.desc.localName] = createMethodImpl(entry, options);
  // The compiler does not know the methods, which come from the table.
  return impl as unknown as Partial<ServiceImpl<DescService>>;
}

function createMethodImpl(entry: MethodEntry, options: ConnectOptions): Impl {
  if (entry.kind === "unary") return createUnaryImpl(entry, options);
  const stream = createStreamImpl(entry, options);
  return entry.desc.methodKind === "client_streaming" ? createCollectImpl(stream) : stream;
}

function createUnaryImpl(entry: UnaryEntry, options: ConnectOptions): UnaryImpl {
  return async (request, context) => {
    const call = new UnaryCall(createInbound(context, options), entry.desc, options.clock());
    try {
      return await options.invoke(entry, call, context.values.get(principalKey), request);
    } finally {
      copyFields(call.responseHeaderIfSet, context.responseHeader);
      copyFields(call.responseTrailerIfSet, context.responseTrailer);
    }
  };
}

// The library changes some values, such as a lone surrogate, instead of rejecting them. Responses of mounted services are
// not checked.
function assertResponse(
  entry: MethodEntry,
  response: object,
  call: CallContext,
  { errorDomain, onInternalError }: ConnectOptions,
): void {
  if (entry.mounted !== undefined) return;
  try {
    assertWritable(entry.desc.output, response);
  } catch (error) {
    throw answerError(error, errorDomain, () => onInternalError(error, call.requestId));
  }
}

function createStreamImpl(
  entry: StreamEntry | InputStreamEntry,
  options: ConnectOptions,
): StreamImpl<Message | AsyncIterable<Message>> {
  const { invokeStream } = options;
  if (invokeStream === undefined) throw new TypeError(`${entry.path} streams, but nothing was given to run streams`);
  return async function* (given, context) {
    const request = context.values.get(requestKey) ?? given;
    const call = new StreamCall(createInbound(context, options), entry.desc, options.clock());
    let isStarted = false;
    try {
      for await (const message of invokeStream(entry, call, context.values.get(principalKey), request)) {
        // Headers are sent with the first message, trailers after the last.
        if (!isStarted) copyFields(call.responseHeaderIfSet, context.responseHeader);
        isStarted = true;
        assertResponse(entry, message, call, options);
        yield message;
      }
    } finally {
      if (!isStarted) copyFields(call.responseHeaderIfSet, context.responseHeader);
      copyFields(call.responseTrailerIfSet, context.responseTrailer);
    }
  };
}

// The handler of a client stream yields one response.
function createCollectImpl(stream: StreamImpl<AsyncIterable<Message>>): CollectImpl {
  return async (requests, context) => {
    let response: object = {};
    for await (const message of stream(requests, context)) response = message;
    return response;
  };
}

function createInbound(context: HandlerContext, { errorDomain }: ConnectOptions): Inbound {
  const timeoutMs = context.timeoutMs();
  if (timeoutMs !== undefined && timeoutMs <= 0) throw connectErrorFrom(deadlineExceeded(), errorDomain);
  // Nothing is done for a caller that disconnected while its request was read.
  if (context.signal.aborted) throw callerGone();
  const record = context.values.get(recordKey);
  if (record === undefined) throw new TypeError("a call must have the record of its request");
  return new ContextInbound(context, timeoutMs, record, context.values.get(responseKey));
}

function copyFields(from: Headers | undefined, to: Headers): void {
  from?.forEach((value, name) => {
    if (!isProtocolField(name)) to.append(name, value);
  });
}
