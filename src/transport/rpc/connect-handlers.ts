// The handlers that connect's routers call: the same pipeline as everywhere.
import {
  create,
  type DescMessage,
  type DescService,
  fromBinary,
  type Message,
  type UnknownField,
} from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createConnectRouter,
  createContextKey,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { assertWritable } from "../../codec/frame-writer.js";
import { createServiceRegistry } from "../../codec/type-registry.js";
import { answerError, callerGone, connectErrorFrom, deadlineExceeded } from "../../kernel/errors.js";
import { type Clock, yieldToEventLoop } from "../../kernel/time.js";
import type { AuthenticateCaller } from "../../pipeline/auth/authenticate.js";
import { type CallContext, type Inbound, StreamCall, UnaryCall } from "../../pipeline/call.js";
import type { Invoke } from "../../pipeline/invoke.js";
import type { InvokeStream } from "../../pipeline/invoke-stream.js";
import { readAll } from "../../pipeline/list-chunks.js";
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
import { abort, type HttpResponse } from "../http/http-message.js";
import { ContextInbound } from "../http/inbound.js";
import type { Limits } from "../http/limits.js";
import { buffersOf } from "../http/request-buffers.js";
import type { ServerSpans } from "../http/server-span.js";
import { gzip } from "./compression.js";
import type { ListFrames } from "./list-frame.js";

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
  /** Begins the spans of calls, where traces are on. */
  readonly spans?: ServerSpans | undefined;
  /** Whether connections are all of a proxy's: then nothing is counted by an address that may be its own. */
  readonly behindProxy?: boolean | undefined;
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/** The record of the request, among the context values of a call. */
export const recordKey = createContextKey<RequestRecord | undefined>(undefined);
/** The request of a call where it has been read already, among its context values. */
export const requestKey = createContextKey<Message | undefined>(undefined);
/** The response of a call, among its context values. */
export const responseKey = createContextKey<HttpResponse | undefined>(undefined);

/**
 * Connect's handlers of all methods, by RPC path. Limits and registries are options of its routers, so there is one for
 * each pair of them.
 */
export function createHandlers(options: ConnectOptions): ReadonlyMap<string, UniversalHandler> {
  const { limits, methods, extraServices } = options;
  const handlers = new Map<string, UniversalHandler>();
  for (const { maxBytes, mounted, entries } of groupsOf(methods)) {
    const router = newRouter(options, maxBytes, mounted === undefined ? OWN : { jsonOptions: registryOf(mounted) });
    for (const { desc, impl } of servicesOf(entries, options)) router.service(desc, impl);
    for (const handler of router.handlers) {
      if (entries.some(({ path }) => path === handler.requestPath)) handlers.set(handler.requestPath, handler);
    }
  }
  const router = newRouter(options, limits.publicRequestBytes, OWN);
  for (const { desc, impl } of extraServices) router.service(desc, impl);
  for (const handler of router.handlers) handlers.set(handler.requestPath, handler);
  return handlers;
}

// The platform's handlers read no unknown fields; kept, they would cost memory for as long as the message lives.
const OWN: ConnectRouterOptions = { binaryOptions: { readUnknownFields: false } };

// A second argument to `service` would switch interceptors and protocols back to their defaults.
function newRouter({ limits }: ConnectOptions, readMaxBytes: number, more: ConnectRouterOptions): ConnectRouter {
  return createConnectRouter({
    ...{ acceptCompression: [gzip], readMaxBytes, writeMaxBytes: limits.responseBytes },
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

function groupsOf(methods: MethodTable): Group[] {
  const groups: Group[] = [];
  for (const entry of methods.values()) {
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
  return [...services].map(([desc, entries]) => ({ desc, impl: implOf(entries, options) }));
}

type UnaryImpl = (request: Message, context: HandlerContext) => Promise<object>;
type StreamImpl<I> = (request: I, context: HandlerContext) => AsyncGenerator<object>;
type CollectImpl = (requests: AsyncIterable<Message>, context: HandlerContext) => Promise<object>;
type Impl = UnaryImpl | StreamImpl<Message> | StreamImpl<AsyncIterable<Message>> | CollectImpl;

function implOf(methods: readonly MethodEntry[], options: ConnectOptions): Partial<ServiceImpl<DescService>> {
  const impl: Record<string, Impl> = {};
  for (const entry of methods) impl[entry.desc.localName] = methodImpl(entry, options);
  // Which methods there are is known from the table, not from a generated type.
  return impl as unknown as Partial<ServiceImpl<DescService>>;
}

function methodImpl(entry: MethodEntry, options: ConnectOptions): Impl {
  if (entry.kind === "unary") return unaryImpl(entry, options);
  const stream = streamImpl(entry, options);
  return entry.desc.methodKind === "client_streaming" ? collectImpl(stream) : stream;
}

function unaryImpl(entry: UnaryEntry, options: ConnectOptions): UnaryImpl {
  return async (given, context) => {
    const request = context.values.get(requestKey) ?? given;
    const call = new UnaryCall(inboundOf(context, options), entry.desc, options.clock());
    const principal = context.values.get(principalKey);
    const { output } = entry.desc;
    const isGone = () => context.signal.aborted;
    // In bytes, which take a fraction of the room of messages, and charged until they are sent.
    const join = async (chunks: AsyncIterable<object>) => {
      const res = context.values.get(responseKey);
      const buffers = res && buffersOf(res);
      const frame = await options.listFrames({ output, chunks, isGone, buffers, cutOff: () => res && abort(res) });
      await yieldToEventLoop();
      const bytes = Buffer.concat(frame.pieces).subarray(PREFIX_BYTES);
      const isJson = context.requestHeader.get("content-type")?.includes("json") ?? true;
      return isJson ? fromBinary(output, bytes) : wrapEncoded(output, bytes);
    };
    try {
      const answer = await readAll(options.invoke, options.clock, { entry, call, principal, request }, join);
      if (entry.list === undefined) assertAnswer(entry, answer, call, options);
      return answer;
    } catch (error) {
      throw connectErrorFrom(error, options.errorDomain);
    } finally {
      copyFields(call.responseHeaderIfSet, context.responseHeader);
      copyFields(call.responseTrailerIfSet, context.responseTrailer);
    }
  };
}

// The library writes some values as others, such as half a surrogate pair. What others' services answer is left to it.
function assertAnswer(
  entry: MethodEntry,
  answer: object,
  call: CallContext,
  { errorDomain, onInternalError }: ConnectOptions,
): void {
  if (entry.mounted !== undefined) return;
  try {
    assertWritable(entry.desc.output, answer);
  } catch (error) {
    throw answerError(error, errorDomain, () => onInternalError(error, call.requestId));
  }
}

// A message that is written as these bytes: to read a long list and write it again would keep everybody waiting.
function wrapEncoded(desc: DescMessage, bytes: Uint8Array): Message {
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

function streamImpl(
  entry: StreamEntry | InputStreamEntry,
  options: ConnectOptions,
): StreamImpl<Message | AsyncIterable<Message>> {
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
        assertAnswer(entry, message, call, options);
        yield message;
      }
    } finally {
      if (!isStarted) copyFields(call.responseHeaderIfSet, context.responseHeader);
      copyFields(call.responseTrailerIfSet, context.responseTrailer);
    }
  };
}

// The one answer to a stream of requests is all that its handler yields.
function collectImpl(stream: StreamImpl<AsyncIterable<Message>>): CollectImpl {
  return async (requests, context) => {
    let answer: object = {};
    for await (const message of stream(requests, context)) answer = message;
    return answer;
  };
}

function inboundOf(context: HandlerContext, { errorDomain }: ConnectOptions): Inbound {
  const timeoutMs = context.timeoutMs();
  if (timeoutMs !== undefined && timeoutMs <= 0) throw connectErrorFrom(deadlineExceeded(), errorDomain);
  // A caller that disconnected while its request was read gets nothing, so nothing begins.
  if (context.signal.aborted) throw callerGone();
  const record = context.values.get(recordKey);
  if (record === undefined) throw new TypeError("a call must have the record of its request");
  return new ContextInbound(context, timeoutMs, record);
}

function copyFields(from: Headers | undefined, to: Headers): void {
  from?.forEach((value, name) => {
    if (!isProtocolField(name)) to.append(name, value);
  });
}
