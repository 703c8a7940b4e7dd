import {
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { closeSession, destroySession, rejectSession, resetStream, SessionDrain } from "./http2-end.js";
import { Http2Request } from "./http2-request.js";
import { type Admission, isHealthPath } from "./limits/admission.js";
import type { Connection } from "./limits/connection.js";
import type { Connections, Ends } from "./limits/connections.js";
import type { Limits } from "./limits/limits.js";
import { createSessionPacer } from "./limits/session-pacer.js";
import type { RejectedRequest } from "./records.js";
import type { Request, RequestHandlers } from "./request.js";

export interface Http2Options {
  readonly limits: Limits;
  readonly handlers: RequestHandlers;
  readonly connections: Connections;
  readonly admission: Admission;
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
  const drains = new WeakMap<ServerHttp2Session, SessionDrain>();
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
    const connection = options.connections.of(session.socket as Ends);
    if (connection === undefined) {
      destroySession(session);
      return;
    }
    if (connection.rejection !== undefined) {
      rejectTooMany(session, options);
      return;
    }
    connection.isHttp2 = true;
    connection.end = () => closeSession(session, limits.sessionCloseMs);
    endWhenQuiet(session, limits);
    const drain = {
      begin: () => drainSession(session),
      noteIdle: () => drains.get(session)?.noteIdle(),
    };
    watchStreams(session, connection, drain, options, resets);
    if (draining) drainSession(session);
  });
  server.on("sessionError", (_error, session) => destroySession(session));

  function drainSession(session: ServerHttp2Session): void {
    if (!drains.has(session)) drains.set(session, new SessionDrain(session));
  }

  return {
    /** Serves a socket with HTTP/2. */
    serve(socket: Socket): void {
      const begin = () => void server.emit("connection", socket);
      const { key } = options.connections.of(socket) ?? {};
      if (key !== undefined && (pacer.isBusy(key) || resets.isOver(key))) pacer.begin(key, socket, begin);
      else options.connections.beginReading(socket, begin);
    },
    /** How many sessions are open. */
    openSessions: () => sessions.size,
    /** Asks every peer to open no more streams; sessions end with their last stream. */
    drain(): void {
      draining = true;
      for (const session of sessions) drainSession(session);
    },
  };
}

// Ends a session without traffic: at once when frames of it have not gone out for as long as a response may stall, because
// its peer reads nothing, or broke the protocol. Node 20 neither closes such a session nor emits an event then.
function endWhenQuiet(session: ServerHttp2Session, limits: Limits): void {
  const stepMs = Math.min(limits.responseStallMs, limits.keepAliveMs);
  let bytes = -1;
  let quietMs = 0;
  const onQuiet = () => {
    const { bytesRead, bytesWritten } = session.socket;
    quietMs = bytes === bytesRead + bytesWritten ? quietMs + stepMs : stepMs;
    bytes = bytesRead + bytesWritten;
    const isStuck = quietMs >= limits.responseStallMs && (session.state.outboundQueueSize ?? 0) > 0;
    if (isStuck) destroySession(session);
    else if (quietMs >= limits.keepAliveMs) closeSession(session, limits.sessionCloseMs);
    else session.setTimeout(stepMs, onQuiet);
  };
  session.setTimeout(stepMs, onQuiet);
}

// A session above a limit of connections. A caller may retry a refused stream (RFC 9113, section 8.7).
function rejectTooMany(session: ServerHttp2Session, { limits }: Http2Options): void {
  session.on("stream", (stream) => {
    stream.on("error", ignore);
    resetStream(stream, constants.NGHTTP2_REFUSED_STREAM);
  });
  rejectSession(session, limits.reservedConnectionMs, 0, "too many connections are open");
}

function watchStreams(
  session: ServerHttp2Session,
  connection: Connection,
  drain: { begin(): void; noteIdle(): void },
  options: Http2Options,
  resets: ResetLimit,
): void {
  const { limits, admission, connections } = options;
  const counts = resets.begin();
  const host = { ...connections.host, ...options.handlers };
  let opened = 0;
  const socketAddress = session.socket.remoteAddress;

  // A reset without an error code is recognised by `aborted` alone. Resets that a peer provokes from this side count
  // like its own.
  const onClosed = (request: Http2Request) => {
    const { body: stream } = request;
    if (connection.open === 0) drain.noteIdle();
    if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) return;
    if (stream.headersSent || (stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted)) return;
    const wasBeforeTurn = request.turnsBefore === admission.countTurns();
    if (resets.count(counts, request, wasBeforeTurn))
      rejectSession(session, limits.refusedSessionMs, limits.refusedSessionBytes);
  };

  const open = (stream: ServerHttp2Stream, fields: IncomingHttpHeaders, _flags: number, rawFields: string[]) => {
    counts.streams++;
    const key = connections.begin(connection, fields, socketAddress);
    const turns = admission.countTurns();
    const request = new Http2Request(stream, fields, rawFields, socketAddress, key, connection, host, turns, onClosed);
    if (++opened === limits.streamsPerSession) drain.begin();
    admission.charge(key, limits.streamCostMs);
    const isHealth = isHealthPath(request.url);
    if (!admission.mayServe(key, isHealth)) {
      admission.count("address_requests");
      connections.chargeRefused(connection);
      options.recordRejected({
        status: undefined,
        reason: "address_requests",
        socketAddress,
        headers: fields,
        httpVersion: "2",
        httpMethod: request.method,
        url: request.url,
      });
      // A caller may retry a refused stream (RFC 9113, section 8.7).
      resetStream(stream, constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    admission.enter(request, isHealth);
  };
  session.on("stream", open as (...event: unknown[]) => void);
}

/** The streams of a session, and how many of them were reset. */
interface SessionCounts {
  windowStartMs: number;
  streams: number;
  rapid: number;
  unanswered: number;
  isRejected: boolean;
}

/** The resets of an address in all of its sessions. */
interface AddressCounts {
  windowStartMs: number;
  rapid: number;
  unanswered: number;
}

/** When as many addresses are counted, those without recent resets are forgotten. */
const MAX_ADDRESSES = 10_000;

type ResetLimit = ReturnType<typeof createResetLimit>;

/**
 * Distinguishes rapid resets (CVE-2023-44487) from callers whose deadline passed. A reset counts as rapid when it arrived in
 * the packet of its request or within milliseconds, and before any response, unless the caller's timeout may have passed: how
 * long the request waited before it was read is unknown. Of the others there may be a hundred times as many.
 *
 * Resets are counted for an address, because it may spread them over many sessions. After too many, those of its sessions
 * end in which they are most of the streams, and new sessions begin one at a time.
 */
function createResetLimit({ streamResets, receivedResets, streamResetWindowMs, rapidResetMs, deadlineLagMs }: Limits) {
  const byKey = new Map<string, AddressCounts>();

  function isRapid({ arrivedMs, callerWaitsMs }: Request, wasBeforeTurn: boolean, nowMs: number): boolean {
    const elapsedMs = nowMs - arrivedMs;
    return (elapsedMs <= rapidResetMs || wasBeforeTurn) && callerWaitsMs > elapsedMs + deadlineLagMs;
  }

  const isRecent = ({ windowStartMs }: AddressCounts, nowMs: number) => nowMs - windowStartMs <= streamResetWindowMs;

  function countsOf(key: string, nowMs: number): AddressCounts {
    const known = byKey.get(key);
    if (known !== undefined && isRecent(known, nowMs)) return known;
    if (byKey.size >= MAX_ADDRESSES) {
      for (const [other, counts] of byKey) if (!isRecent(counts, nowMs)) byKey.delete(other);
    }
    const counts = { windowStartMs: nowMs, rapid: 0, unanswered: 0 };
    byKey.set(key, counts);
    return counts;
  }

  const isOverIn = ({ rapid, unanswered }: AddressCounts) => rapid > streamResets || unanswered > receivedResets;

  return {
    /** Begins to count for a session. */
    begin: (): SessionCounts => ({
      ...{ windowStartMs: performance.now(), streams: 0, rapid: 0, unanswered: 0 },
      isRejected: false,
    }),

    /** Whether an address has reset too many streams. */
    isOver(key: string): boolean {
      const counts = byKey.get(key);
      return counts !== undefined && isRecent(counts, performance.now()) && isOverIn(counts);
    },

    /**
     * Counts a reset before any response. Returns true once, when the session is to be rejected.
     *
     * @param wasBeforeTurn whether it arrived before the request could be handled, however long the packet of both took to
     * read
     */
    count(session: SessionCounts, request: Request, wasBeforeTurn: boolean): boolean {
      const nowMs = performance.now();
      if (nowMs - session.windowStartMs > streamResetWindowMs)
        Object.assign(session, { windowStartMs: nowMs, streams: 1, rapid: 0, unanswered: 0 });
      const ofAddress = countsOf(request.key, nowMs);
      session.unanswered++;
      ofAddress.unanswered++;
      if (isRapid(request, wasBeforeTurn, nowMs)) {
        session.rapid++;
        ofAddress.rapid++;
      }
      if (session.isRejected || !isOverIn(ofAddress)) return false;
      const most = ofAddress.rapid > streamResets ? session.rapid : session.unanswered;
      session.isRejected = most * 2 > session.streams;
      return session.isRejected;
    },
  };
}

function ignore(): void {}
