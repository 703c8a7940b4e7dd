import {
  constants,
  createServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import type { Limits } from "./limits.js";

/** A request on an HTTP/2 stream. */
export interface StreamRequest {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  /** Has END_STREAM (1) when there is no body. */
  readonly flags: number;
  /** Names and values in turn, as received. */
  readonly rawHeaders: string[];
  /** The address at the other end; a stream forgets its session, and so this, when it closes. */
  readonly socketAddress: string | undefined;
}

/** Answers one HTTP/2 stream. */
export type OnHttp2Stream = (request: StreamRequest) => void;

/** The HTTP/2 side of the port. It never listens; sockets are handed to it. */
export interface Http2 {
  /** Serves a socket that is known to speak HTTP/2. */
  serve(socket: Socket): void;

  /** Tells every peer to open no more streams (GOAWAY); sessions end with their last stream. */
  drain(): void;
}

/**
 * Creates the HTTP/2 side (RFC 9113) with the limits Node leaves open: sessions that sit idle,
 * peers that open streams only to reset them, and sessions that live for ever.
 *
 * There must be no `request` listener: Node would then attach its compatibility layer to every
 * stream and send trailers itself.
 */
export function createHttp2(limits: Limits, onStream: OnHttp2Stream): Http2 {
  const sessions = new Set<ServerHttp2Session>();
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
    ...{ maxOutstandingSettings: limits.outstandingSettings },
  });

  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    session.setTimeout(limits.idleSessionMs, () => closeThenDestroy(session, limits.sessionCloseMs));
    watchStreams(session, limits, onStream);
    if (draining) session.close();
  });
  server.on("sessionError", (_error, session) => session.destroy());

  return {
    serve(socket) {
      server.emit("connection", socket);
    },
    drain() {
      draining = true;
      for (const session of sessions) session.close();
    },
  };
}

function watchStreams(session: ServerHttp2Session, limits: Limits, onStream: OnHttp2Stream): void {
  let opened = 0;
  let resets = 0;
  let windowStartMs = 0;
  const socketAddress = session.socket.remoteAddress;

  // A reset without an error code leaves only the unfinished answer behind, hence `aborted`. The
  // resets a peer provokes from our side count like its own.
  function onClose(this: ServerHttp2Stream): void {
    if (this.rstCode === constants.NGHTTP2_NO_ERROR && !this.aborted) return;
    const nowMs = performance.now();
    if (nowMs - windowStartMs > limits.streamResetWindowMs) {
      windowStartMs = nowMs;
      resets = 0;
    }
    if (++resets > limits.streamResets) session.destroy();
  }

  const open = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, rawHeaders: string[]) => {
    stream.on("error", ignore);
    stream.on("close", onClose);
    if (++opened === limits.streamsPerSession) session.close();
    // Reset in the same breath as it was opened: nobody waits for an answer.
    if (!stream.destroyed && !stream.closed) onStream({ stream, headers, flags, rawHeaders, socketAddress });
  };
  session.on("stream", open as (...event: unknown[]) => void);
}

function closeThenDestroy(session: Http2Session, afterMs: number): void {
  session.close();
  const timer = setTimeout(() => session.destroy(), afterMs);
  session.once("close", () => clearTimeout(timer));
}

function ignore(): void {}
