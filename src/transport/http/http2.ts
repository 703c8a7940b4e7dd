import {
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { type Admission, isHealthPath } from "./admission.js";
import { chargePeer, enqueue, type Peer, type Task } from "./fair-queue.js";
import { parseGrpcTimeout } from "./grpc-fields.js";
import { closeSession, destroySession, drainSession, rejectSession, resetStream } from "./http2-end.js";
import type { Limits } from "./limits.js";
import type { Rejection } from "./rejection.js";
import { attachBuffers, buffersOf, type Connections } from "./request-buffers.js";
import { type RejectedRequest, recordOf } from "./request-record.js";
import { createSessionPacer } from "./session-pacer.js";
import { tickCount } from "./tick.js";

/** A request on an HTTP/2 stream. */
export interface StreamRequest {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  /** Contains END_STREAM (1) when there is no body. */
  readonly flags: number;
  /** Name, value, name, value, …, as received. */
  readonly rawHeaders: string[];
  /** The address of the peer. A closed stream has no session to read it from. */
  readonly socketAddress: string | undefined;
}

/** Answers one HTTP/2 stream. */
export type OnHttp2Stream = (request: StreamRequest) => void;

export interface Http2Options {
  readonly limits: Limits;
  readonly onStream: OnHttp2Stream;
  readonly connections: Connections;
  /** Called with an error that the handling of a stream did not catch. Only that stream ends. */
  readonly onError: (error: unknown, requestId?: string) => void;
  readonly admission: Admission;
  /** Answers requests that are not admitted. */
  readonly overload: Rejection;
  /** Records a request that is rejected before it is dispatched. Returns its id, for the response. */
  readonly recordRejected: (rejected: RejectedRequest) => string;
}

/**
 * Creates the HTTP/2 server (RFC 9113), with limits that Node does not have: of idle sessions, of rapid resets
 * (CVE-2023-44487), and of streams per session.
 *
 * There must be no `request` listener: with one, Node attaches its compatibility layer to every stream and sends
 * trailers itself.
 */
export function createHttp2(options: Http2Options) {
  const { limits } = options;
  const sessions = new Set<ServerHttp2Session>();
  const resets = createResetLimit(limits);
  const pacer = createSessionPacer({ pauseMs: limits.sessionPauseMs, maxWaitMs: limits.sessionWaitMs });
  let draining = false;

  const server = createServer({
    maxSessionMemory: limits.sessionMemoryMegabytes,
    maxHeaderListPairs: limits.headerPairs,
    maxOutstandingPings: limits.outstandingPings,
    maxSettings: limits.settingsEntries,
    maxSessionInvalidFrames: limits.invalidFrames,
    maxSessionRejectedStreams: limits.rejectedStreams,
    settings: {
      enablePush: false,
      maxConcurrentStreams: limits.concurrentStreams,
      maxHeaderListSize: limits.headerBytes,
      initialWindowSize: limits.streamWindowBytes,
    },
    ...{
      maxOutstandingSettings: limits.outstandingSettings,
      // Node 20 does not have these options; it ends a session with its 1,000th reset in half a minute.
      streamResetBurst: limits.receivedResets,
      streamResetRate: limits.receivedResets / 10,
    },
  });

  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    endWhenQuiet(session, limits);
    watchStreams(session, options, resets);
    if (draining) drainSession(session);
  });
  server.on("sessionError", (_error, session) => destroySession(session));

  return {
    /** Serves a socket with HTTP/2. */
    serve(socket: Socket): void {
      const begin = () => void server.emit("connection", socket);
      const peer = options.connections.peerAt(socket.remoteAddress);
      if (peer !== undefined && (pacer.isBusy(peer) || resets.isOver(peer))) pacer.begin(peer, socket, begin);
      else begin();
    },
    /** How many sessions are open. */
    openSessions: () => sessions.size,
    /** Asks every peer to open no more streams (GOAWAY); sessions end with their last stream. */
    drain(): void {
      draining = true;
      for (const session of sessions) drainSession(session);
    },
  };
}

// Ends a session without traffic. After a protocol error Node 20 neither closes a session nor emits an event: it stops
// reading, and frames stay in its queue although the socket could take them. If the peer does not read, the socket has
// unwritten bytes instead.
function endWhenQuiet(session: ServerHttp2Session, limits: Limits): void {
  const stepMs = Math.min(limits.stuckSessionMs, limits.idleSessionMs);
  let bytes = -1;
  let quietMs = 0;
  const onQuiet = () => {
    const { bytesRead, bytesWritten } = session.socket;
    quietMs = bytes === bytesRead + bytesWritten ? quietMs + stepMs : stepMs;
    bytes = bytesRead + bytesWritten;
    const isStuck = (session.state.outboundQueueSize ?? 0) > 0 && countUnwrittenBytes(session) === 0;
    if (isStuck) destroySession(session);
    else if (quietMs >= limits.idleSessionMs) closeSession(session, limits.sessionCloseMs);
    else session.setTimeout(stepMs, onQuiet);
  };
  session.setTimeout(stepMs, onQuiet);
}

// HTTP/2 writes to the handle of the socket, not to its buffer.
function countUnwrittenBytes(session: ServerHttp2Session): number | undefined {
  return (session.socket as Socket & { _handle?: { writeQueueSize?: number } })._handle?.writeQueueSize;
}

// When a stream was opened, in which tick, and its timeout: on the stream itself, because there are many.
const openedMs = Symbol("openedMs");
const openedIn = Symbol("openedIn");
const allowedMs = Symbol("allowedMs");
type WatchedStream = ServerHttp2Stream & { [openedMs]?: number; [openedIn]?: number; [allowedMs]?: number };

class StreamTask implements Task {
  readonly #request: StreamRequest;
  readonly #options: Http2Options;

  constructor(request: StreamRequest, options: Http2Options) {
    this.#request = request;
    this.#options = options;
  }

  // A stream that was reset while it was queued is not handled. It closes only after its data were read.
  run(): void {
    const { stream } = this.#request;
    if (stream.destroyed || stream.closed) stream.resume();
    else this.#options.onStream(this.#request);
  }

  onError(error: unknown): void {
    this.#options.onError(error, recordOf(this.#request.stream)?.requestId);
    resetStream(this.#request.stream, constants.NGHTTP2_INTERNAL_ERROR);
  }

  reject(): void {
    const { stream, headers } = this.#request;
    this.#options.admission.count("overload");
    this.#options.overload.http2(stream, headers);
  }
}

function watchStreams(session: ServerHttp2Session, options: Http2Options, resets: ResetLimit): void {
  const { limits } = options;
  const counts = resets.begin();
  let opened = 0;
  const socketAddress = session.socket.remoteAddress;
  const connection = options.connections.open(socketAddress);
  session.once("close", connection.close);

  // A reset without an error code is recognised by `aborted` alone. Resets that a peer provokes from this side count
  // like its own.
  function onClose(this: WatchedStream): void {
    const buffers = buffersOf(this);
    buffers?.release();
    if (this.rstCode === constants.NGHTTP2_REFUSED_STREAM) return;
    if (this.headersSent || (this.rstCode === constants.NGHTTP2_NO_ERROR && !this.aborted)) return;
    const reset = { sinceMs: this[openedMs] ?? 0, tick: this[openedIn], callerWaitsMs: this[allowedMs] };
    if (buffers !== undefined && resets.count(counts, buffers.peer, reset))
      rejectSession(session, limits.refusedSessionMs, limits.refusedSessionBytes);
  }

  const open = (stream: WatchedStream, headers: IncomingHttpHeaders, flags: number, rawHeaders: string[]) => {
    counts.streams++;
    const timeout = headers["grpc-timeout"];
    if (timeout !== undefined) stream[allowedMs] = parseGrpcTimeout(String(timeout));
    stream[openedMs] = performance.now();
    stream[openedIn] = tickCount();
    const buffers = options.connections.begin(connection, socketAddress, headers);
    attachBuffers(buffers, stream);
    stream.on("error", ignore);
    stream.on("close", onClose);
    if (++opened === limits.streamsPerSession) drainSession(session);
    const { peer } = buffers;
    chargePeer(peer, limits.streamCostMs);
    const isHealth = isHealthPath(headers[":path"] ?? "");
    if (peer.open > limits.requestsPerAddress && !(isHealth && peer.open <= 2 * limits.requestsPerAddress)) {
      options.admission.count("address_requests");
      options.recordRejected({
        status: undefined,
        reason: "address_requests",
        socketAddress,
        headers,
        httpVersion: "2",
        httpMethod: headers[":method"],
        url: headers[":path"],
      });
      // A caller may retry a refused stream (RFC 9113, section 8.7).
      resetStream(stream, constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    const task = new StreamTask({ stream, headers, flags, rawHeaders, socketAddress }, options);
    if (isHealth || options.admission.admits(peer))
      enqueue(peer, task, isHealth ? undefined : options.admission.maxWaitMs);
    else task.reject();
  };
  session.on("stream", open as (...event: unknown[]) => void);
}

/** A reset before any response. */
interface StreamReset {
  /** When the request was read, in milliseconds. */
  readonly sinceMs: number;
  /** The tick it was read after. */
  readonly tick: number | undefined;
  /** The caller's timeout, in milliseconds. */
  readonly callerWaitsMs: number | undefined;
}

/** The streams of a session, and how many of them were reset. */
interface SessionCounts {
  windowStartMs: number;
  streams: number;
  rapid: number;
  unanswered: number;
  isRejected: boolean;
}

/** The resets of a peer in all of its sessions. */
interface PeerCounts {
  windowStartMs: number;
  rapid: number;
  unanswered: number;
}

type ResetLimit = ReturnType<typeof createResetLimit>;

/**
 * Distinguishes rapid resets (CVE-2023-44487) from callers whose deadline passed. A reset counts as rapid when it arrived in
 * the tick of its request or within milliseconds, and before any response, unless the caller's timeout may have passed: how
 * long the request waited before it was read is unknown. Of the others there may be a hundred times as many.
 *
 * Resets are counted for a peer, because it may spread them over many sessions. After too many, those of its sessions
 * end in which they are most of the streams, and new sessions begin one at a time.
 */
function createResetLimit({ streamResets, receivedResets, streamResetWindowMs, rapidResetMs, deadlineLagMs }: Limits) {
  const peers = new WeakMap<Peer, PeerCounts>();

  function isRapid({ sinceMs, tick, callerWaitsMs }: StreamReset, nowMs: number): boolean {
    const elapsedMs = nowMs - sinceMs;
    if (elapsedMs > rapidResetMs && tick !== tickCount()) return false;
    return callerWaitsMs === undefined || callerWaitsMs > elapsedMs + deadlineLagMs;
  }

  function countsOf(peer: Peer, nowMs: number): PeerCounts {
    let counts = peers.get(peer);
    if (counts === undefined || nowMs - counts.windowStartMs > streamResetWindowMs) {
      counts = { windowStartMs: nowMs, rapid: 0, unanswered: 0 };
      peers.set(peer, counts);
    }
    return counts;
  }

  const isOverIn = ({ rapid, unanswered }: PeerCounts) => rapid > streamResets || unanswered > receivedResets;

  return {
    /** Begins to count for a session. */
    begin: (): SessionCounts => ({
      ...{ windowStartMs: performance.now(), streams: 0, rapid: 0, unanswered: 0 },
      isRejected: false,
    }),

    /** Whether a peer has reset too many streams. */
    isOver(peer: Peer): boolean {
      const counts = peers.get(peer);
      return (
        counts !== undefined && performance.now() - counts.windowStartMs <= streamResetWindowMs && isOverIn(counts)
      );
    },

    /** Counts a reset before any response. Returns true once, when the session is to be rejected. */
    count(session: SessionCounts, peer: Peer, reset: StreamReset): boolean {
      const nowMs = performance.now();
      if (nowMs - session.windowStartMs > streamResetWindowMs)
        Object.assign(session, { windowStartMs: nowMs, streams: 1, rapid: 0, unanswered: 0 });
      const ofPeer = countsOf(peer, nowMs);
      session.unanswered++;
      ofPeer.unanswered++;
      if (isRapid(reset, nowMs)) {
        session.rapid++;
        ofPeer.rapid++;
      }
      if (session.isRejected || !isOverIn(ofPeer)) return false;
      const most = ofPeer.rapid > streamResets ? session.rapid : session.unanswered;
      session.isRejected = most * 2 > session.streams;
      return session.isRejected;
    },
  };
}

function ignore(): void {}
