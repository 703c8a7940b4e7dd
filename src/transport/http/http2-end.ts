// The only place where HTTP/2 sessions and streams are ended. None is ended from
// inside one of its own events: native code may still be reading the session then,
// and Node frees what that code goes on to use.
import type { Http2ServerResponse, Http2Session, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";

const { NGHTTP2_NO_ERROR, NGHTTP2_ENHANCE_YOUR_CALM } = constants;

/** Cuts a session with all of its streams, in the next tick of the event loop. */
export function destroySession(session: Http2Session): void {
  setImmediate(() => {
    if (!session.destroyed) session.destroy();
  });
}

/**
 * Asks a peer to open no more streams, and cuts the session when those that are open have had `graceMs`
 * milliseconds to end.
 */
export function closeSession(session: Http2Session, graceMs: number): void {
  setImmediate(() => {
    if (session.destroyed) return;
    session.close();
    cutAfter(session, graceMs);
  });
}

/** Asks a peer to open no more streams; the session ends with the last of those that are open. */
export function drainSession(session: Http2Session): void {
  setImmediate(() => {
    if (!session.destroyed) session.close();
  });
}

/**
 * Tells a peer that it asks for too much (RFC 9113, section 7, ENHANCE_YOUR_CALM). Streams it opens from now
 * on are ignored; open ones may end within `graceMs` milliseconds.
 */
export function rejectSession(session: ServerHttp2Session, graceMs: number): void {
  setImmediate(() => {
    if (session.destroyed) return;
    session.goaway(NGHTTP2_ENHANCE_YOUR_CALM);
    session.close();
    cutAfter(session, graceMs);
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
 * How long the rest of a rejected request may still arrive, in milliseconds. Most requests are whole by then, and some
 * clients drop an answer whose stream is reset while they send.
 */
const REMAINDER_MS = 100;
/** After how many of these an answer is given up whose end the peer leaves no room for. */
const MAX_LOOKS = 10;

/**
 * Ends a stream whose answer is complete although its request is not (RFC 9113, section 8.1). The answer must
 * have been handed over. What arrives of the request is dropped. The reset follows when the end of the answer has been
 * sent: a reset takes the place of frames that wait, and the answer is lost.
 */
export function resetUnreadRequest(stream: ServerHttp2Stream): void {
  let looks = 0;
  const reset = () => {
    if (stream.destroyed || stream.closed || stream.readableEnded) return;
    // To HEAD there is nothing to finish: the answer may still have to begin.
    const isSent = stream.headersSent && (stream.state.localClose === 1 || looks++ >= MAX_LOOKS);
    if (isSent) resetStream(stream, NGHTTP2_NO_ERROR);
    else resetSoon();
  };
  const resetSoon = () => setTimeout(reset, REMAINDER_MS).unref();
  // Node resets an unread stream as soon as its answer is handed over, which is too early.
  stream.resume();
  if (stream.writableFinished) resetSoon();
  else stream.once("finish", resetSoon);
}

/** Cuts off an answer that cannot be completed, so that it does not look complete. */
export function abortResponse(res: Http2ServerResponse): void {
  // The compatibility layer has no stream once that has closed.
  const stream = res.stream as ServerHttp2Stream | undefined;
  if (stream !== undefined) resetStream(stream, constants.NGHTTP2_INTERNAL_ERROR);
}
