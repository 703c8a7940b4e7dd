// What every call does, over every protocol: span, place among streams, timeout, call, caller, message, method, response,
// error. A protocol only says how a message is read and written.
import { ApiError, callerGone, deadlineExceeded, isCallerGone } from "../kernel/errors.js";
import { addressKey } from "../kernel/ip-address.js";
import { Shares } from "../kernel/shares.js";
import type { Clock } from "../kernel/time.js";
import type { AuthenticateCaller } from "../pipeline/auth/authenticate.js";
import { type CallContext, StreamCall, UnaryCall } from "../pipeline/call.js";
import type { Invoke } from "../pipeline/invoke.js";
import type { InvokeStream } from "../pipeline/invoke-stream.js";
import { readChunks } from "../pipeline/list-chunks.js";
import type { MethodEntry } from "../pipeline/method-table.js";
import type { Limits } from "./http/limits/limits.js";
import type { Request } from "./http/request.js";
import type { ServerSpans } from "./http/server-span.js";
import { createFailures, type FailureOptions } from "./protocol/failure.js";
import type { Protocol } from "./protocol/protocol.js";

export interface ServeOptions extends FailureOptions {
  readonly invoke: Invoke;
  /** Called before the body is read. */
  readonly authenticateCaller: AuthenticateCaller;
  readonly invokeStream: InvokeStream;
  readonly clock: Clock;
  readonly limits: Pick<Limits, "openStreams" | "openStreamsPerConnection" | "openStreamsPerAddress">;
  /** Begins the spans of calls, where traces are on. */
  readonly spans?: ServerSpans | undefined;
  /** Whether all connections are those of a proxy, so that streams are not counted by address. */
  readonly behindProxy?: boolean | undefined;
}

/** Answers calls of every protocol. */
export interface Serve {
  /**
   * Answers a call, whose method its record names. Synchronous up to the method, unless its caller or its body is awaited.
   * Never rejects.
   *
   * @param template the path template of a call over REST
   */
  serve(request: Request, protocol: Protocol, entry: MethodEntry, template?: string): Promise<void>;

  /** Answers with an error, before anything of the request is read. Never throws. */
  refuse(request: Request, protocol: Protocol, cause: unknown): void;
}

/** Creates what answers calls. */
export function createServe(options: ServeOptions): Serve {
  const { invoke, invokeStream, authenticateCaller, clock, limits, spans, behindProxy = false } = options;
  const failureOf = createFailures(options);
  const streams = new Shares("streams", {
    total: limits.openStreams,
    each: { connection: limits.openStreamsPerConnection, address: limits.openStreamsPerAddress },
  });

  async function serve(request: Request, protocol: Protocol, entry: MethodEntry, template?: string): Promise<void> {
    const { record, fields } = request;
    // Set when the request has been read: an error before that has no fields of the handler.
    let call: CallContext | undefined;
    let release: (() => void) | undefined;
    try {
      if (!entry.isUntraced) spans?.beginCall(record, fields, template);
      // Before the caller is known, so that further streams of a peer with too many cost little.
      if (entry.kind !== "unary") release = takeStream(request);
      protocol.check?.(fields);
      const timeoutMs = protocol.timeoutOf(fields);
      if (timeoutMs === 0) throw deadlineExceeded();
      request.beginCall(protocol, timeoutMs);
      const startMs = clock();
      const authenticated = authenticateCaller(entry, fields.authorization, record.trace);
      const principal = authenticated instanceof Promise ? await authenticated : authenticated;
      // Of a peer that left meanwhile no event comes any more.
      if (request.isGone) throw callerGone();
      request.noteCaller(principal);
      if (entry.kind === "unary") {
        const unary = new UnaryCall(request, entry.desc, startMs);
        const read = protocol.read(request, entry);
        const decode = read instanceof Promise ? await read : read;
        call = unary;
        if (entry.list !== undefined) {
          const chunks = readChunks(invoke, clock, { entry, call: unary, principal, request: decode });
          await protocol.answerList(request, unary, entry, chunks);
          return;
        }
        const response = await invoke(entry, unary, principal, decode);
        if (request.isGone) return;
        const sent = protocol.answer(request, unary, entry, response);
        if (sent !== undefined) await sent;
      } else {
        const stream = new StreamCall(request, entry.desc, startMs);
        const messages =
          entry.kind === "input_streaming"
            ? protocol.readStream(request, entry)
            : (await protocol.read(request, entry))();
        call = stream;
        await protocol.answerStream(request, stream, entry, invokeStream(entry, stream, principal, messages));
      }
    } catch (error) {
      await fail(request, protocol, call, error);
    } finally {
      release?.();
    }
  }

  async function fail(
    request: Request,
    protocol: Protocol,
    call: CallContext | undefined,
    cause: unknown,
  ): Promise<void> {
    if (isCallerGone(cause) || request.isGone) {
      if (request.isGone) request.discardBody();
      return;
    }
    try {
      await protocol.fail(request, call, failureOf(cause, request));
    } catch (error) {
      // There is no room even for the error; anything else is a bug.
      if (!(error instanceof ApiError)) options.onInternalError(error, request.requestId);
      request.abort();
    }
  }

  // A connection of a trusted proxy has many peers, so it is not limited. One of another proxy counts as one peer.
  function takeStream({ record, socketAddress, connection }: Request): () => void {
    const { remoteAddress } = record;
    const address = remoteAddress === undefined ? undefined : addressKey(remoteAddress);
    const isNamed = socketAddress === undefined || address !== addressKey(socketAddress);
    return streams.take(isNamed ? { address } : { connection, ...(!behindProxy && { address }) });
  }

  return { serve, refuse: (request, protocol, cause) => void fail(request, protocol, undefined, cause) };
}
