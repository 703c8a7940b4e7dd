// Ends HTTP/2 sessions and streams; no other module does. They must not be ended within one of their own events: native
// code may still be reading the session, and Node would free memory that it uses.
import type { Http2Session, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";

const { NGHTTP2_NO_ERROR, NGHTTP2_ENHANCE_YOUR_CALM } = constants;

/** Destroys a session with all of its streams, in the next tick of the event loop. */
export function destroySession(session: Http2Session): void {
  setImmediate(() => {
    if (!session.destroyed) session.destroy();
  });
}

/** Asks a peer to open no more streams (GOAWAY), and destroys the session after `graceMs` milliseconds. */
export function closeSession(session: Http2Session, graceMs: number): void {
  setImmediate(() => {
    if (session.destroyed) return;
    session.close();
    cutAfter(session, graceMs);
  });
}

/**
 * How long a session stays open after GOAWAY, in milliseconds. Streams that the peer opened before it read GOAWAY are
 * ignored, and it sends them elsewhere. If the session ended at once, their frames would make the kernel reset the
 * connection, and the peer could lose GOAWAY and responses.
 */
const GOAWAY_MS = 1_000;
/** How long a session may be idle after a PING until it gets GOAWAY, in milliseconds. */
const NOTICE_MS = 500;

/**
 * Makes a peer use another connection, and loses no request.
 *
 *   noticed ──> announced ──> closed
 *      │            └ after a second, with the last stream
 *      └ when a stream begins, or after half a second without one
 *
 * GOAWAY makes the library ignore what the peer has sent before it read it. Some peers send such a stream again. nginx, which
 * has one stream at a time on a connection, fails it, since it may not repeat a POST. So GOAWAY is sent right after a stream
 * has begun: then such a peer has sent no other one. An idle session first gets a PING, to which nginx closes a connection
 * that it keeps for later. On one that it has just begun to use, PING changes nothing.
 */
export class SessionDrain {
  readonly #session: ServerHttp2Session;
  #state: "begun" | "noticed" | "announced" = "begun";
  #timer: NodeJS.Timeout | undefined;

  constructor(session: ServerHttp2Session) {
    this.#session = session;
    session.once("close", () => clearTimeout(this.#timer));
    setImmediate(() => {
      this.#state = "noticed";
      session.once("stream", () => setImmediate(() => this.#announce()));
      this.#notice();
    });
  }

  /** Notes that the last open stream has closed. */
  noteIdle(): void {
    if (this.#state === "noticed") setImmediate(() => this.#notice());
  }

  #notice(): void {
    if (this.#state !== "noticed" || this.#session.destroyed || this.#session.closed) return;
    this.#session.ping(() => {});
    clearTimeout(this.#timer);
    // Sockets are read once more first, in case the process has stood still meanwhile.
    this.#timer = setTimeout(() => setImmediate(() => this.#announce()), NOTICE_MS);
  }

  #announce(): void {
    if (this.#state !== "noticed" || this.#session.destroyed || this.#session.closed) return;
    this.#state = "announced";
    // It names the last stream that this side has processed.
    this.#session.goaway();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#session.close(), GOAWAY_MS);
  }
}

/** How often it is checked whether a rejected session goes on, in milliseconds. */
const REJECTED_CHECK_MS = 100;

/**
 * Ends a session with ENHANCE_YOUR_CALM (RFC 9113, section 7). New streams are ignored; open ones may end within
 * `graceMs` milliseconds, unless the peer sends more than `maxBytes`.
 *
 * @param why what the peer is told
 */
export function rejectSession(session: ServerHttp2Session, graceMs: number, maxBytes: number, why = ""): void {
  setImmediate(() => {
    if (session.destroyed) return;
    session.goaway(NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from(why));
    session.close();
    if (session.destroyed) return;
    cutAfter(session, graceMs);
    const lastByte = session.socket.bytesRead + maxBytes;
    const check = setInterval(() => {
      if (!session.destroyed && session.socket.bytesRead > lastByte) session.destroy();
    }, REJECTED_CHECK_MS);
    session.once("close", () => clearInterval(check));
  });
}

function cutAfter(session: Http2Session, graceMs: number): void {
  const timer = setTimeout(() => session.destroy(), graceMs);
  session.once("close", () => clearTimeout(timer));
}

/** Resets a stream with an error code of RFC 9113, section 7, in the next tick of the event loop. */
export function resetStream(stream: ServerHttp2Stream, code: number): void {
  setImmediate(() => {
    if (!stream.destroyed && !stream.closed) stream.close(code);
  });
}

/**
 * How long the rest of a rejected request may still arrive, in milliseconds. By then most requests are complete; some
 * clients drop the response if the stream is reset while they send.
 */
const REMAINDER_MS = 100;
/** After how many of these periods a response is given up whose end does not fit into the peer's window. */
const MAX_LOOKS = 10;

/**
 * Ends a stream whose response is complete although its request is not (RFC 9113, section 8.1). The whole response must
 * have been written. The rest of the request is dropped. The stream is reset only after the end of the response was sent,
 * because a reset discards waiting frames.
 */
export function resetUnreadRequest(stream: ServerHttp2Stream): void {
  let looks = 0;
  const reset = () => {
    if (stream.destroyed || stream.closed || stream.readableEnded) return;
    // The response to HEAD has no body, so it is finished before its headers were sent.
    const isSent = stream.headersSent && (stream.state.localClose === 1 || looks++ >= MAX_LOOKS);
    if (isSent) resetStream(stream, NGHTTP2_NO_ERROR);
    else resetSoon();
  };
  const resetSoon = () => setTimeout(reset, REMAINDER_MS).unref();
  // Node resets an unread stream as soon as its response is handed over, which is too early.
  stream.resume();
  if (stream.writableFinished) resetSoon();
  else stream.once("finish", resetSoon);
}
