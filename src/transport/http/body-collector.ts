// Collects the bodies of requests of every protocol, and charges their bytes.
import type { IncomingMessage } from "node:http";
import { Http2ServerRequest, type ServerHttp2Stream } from "node:http2";
import { type ApiError, invalidRequest } from "../../kernel/errors.js";
import type { Charge } from "./buffer-account.js";
import { enqueue } from "./fair-queue.js";
import { buffersOf } from "./request-buffers.js";
import { flushPerTick } from "./tick.js";

/** The source of a body. */
export type BodySource = IncomingMessage | Http2ServerRequest | ServerHttp2Stream;

/** Receives the result: one method is called, once. */
export interface BodyReceiver {
  /** The body is complete. */
  onBody(bytes: Buffer): void;
  /** More than `maxBytes` arrived. */
  onTooLarge(): void;
  /** The body is malformed, took too long, or was rejected in favour of others. */
  onFault(error: ApiError): void;
  /** The peer disconnected; there is no one to answer. */
  onGone(): void;
}

/** The limits of a body, and checks of its first bytes. */
export interface BodyOptions {
  readonly maxBytes: number;
  /** How long a body may take after its first bytes, in milliseconds. */
  readonly timeoutMs: number;
  /** Reads the size that the body announces itself, in bytes; undefined until it has arrived. */
  readonly readAnnouncedLength?: (arrived: Buffer) => number | undefined;
  /** Checks the bytes that have arrived; an error ends the reading. */
  readonly check?: (arrived: Buffer) => ApiError | undefined;
}

// The least that is charged for a body in several chunks: its buffers and their pool.
const LEAST_BYTES = 8 * 1024;

// Most bodies arrive complete within a tick, and need neither a timer nor a copy.
const nextTick = flushPerTick<() => void>("answers", (act) => act(), rethrow);

/**
 * Reads a body to its end. Bytes are charged before they are kept; while there is no room for more, flow control stops
 * the peer. The charge is released with the request.
 */
export function collectBody(source: BodySource, options: BodyOptions, receiver: BodyReceiver): void {
  const { maxBytes, check } = options;
  const buffers = buffersOf(source);
  // The first `size` bytes of `body` are what arrived so far.
  let body: Buffer | undefined;
  let size = 0;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let charge: Charge | undefined;
  let charged = 0;
  let isWaiting = false;
  let hasEnded = false;
  let isLate = false;
  let isScheduled = false;

  function finish(): boolean {
    if (isOver) return false;
    isOver = true;
    clearTimeout(timer);
    // No event follows the end, so the listeners may stay.
    if (hasEnded) return true;
    source.off("data", onData).off("end", onEnd).off("close", onGone).off("error", onGone);
    source.on("error", ignore);
    return true;
  }

  function lookAfterTick(): void {
    if (isScheduled) return;
    isScheduled = true;
    nextTick(onUnfinished);
  }

  function fail(error: ApiError): void {
    if (!finish()) return;
    body = undefined;
    charge?.release();
    receiver.onFault(error);
  }

  function onData(chunk: Buffer): void {
    if (size + chunk.length > maxBytes) {
      if (finish()) {
        body = undefined;
        charge?.release();
        receiver.onTooLarge();
      }
      return;
    }
    charge ??= buffers?.openRequest(fail);
    const room = roomFor(chunk);
    const more = room - charged;
    charged = Math.max(room, charged);
    if (more > 0 && charge && !charge.grow(more)) {
      isWaiting = true;
      source.pause();
      charge.growLater(more, () => {
        isWaiting = false;
        keep(chunk, room);
        if (hasEnded) onEnd();
        else source.resume();
      });
      return;
    }
    keep(chunk, room);
  }

  // A body of known size is charged at once: several that each have a part of the room would wait for each other for
  // ever.
  function roomFor(chunk: Buffer): number {
    const needed = size + chunk.length;
    if (body === undefined) return Math.min(Math.max(options.readAnnouncedLength?.(chunk) ?? 0, needed), maxBytes);
    return needed <= body.length
      ? body.length
      : Math.max(needed, Math.min(Math.max(body.length * 2, LEAST_BYTES), maxBytes));
  }

  // Doubles the buffer instead of keeping chunks: a peer may send single bytes, each in a buffer of its own.
  function keep(chunk: Buffer, room: number): void {
    charge?.noteProgress(chunk.length);
    if (body === undefined) {
      body = chunk;
      lookAfterTick();
    } else {
      if (size + chunk.length > body.length) {
        const grown = Buffer.allocUnsafeSlow(Math.max(room, charged));
        body.copy(grown, 0, 0, size);
        body = grown;
      }
      chunk.copy(body, size);
    }
    size += chunk.length;
    const error = check?.(body.subarray(0, size));
    if (error !== undefined) fail(error);
  }

  // The first chunk is a slice of the socket's read buffer, which it must not keep in memory.
  function onUnfinished(): void {
    isScheduled = false;
    if (isOver) return;
    isLate = true;
    timer ??= setTimeout(() => fail(invalidRequest("the message did not arrive in time")), options.timeoutMs);
    const least = Math.min(LEAST_BYTES, maxBytes);
    if (body === undefined || size >= least || isWaiting || charged >= least || charge?.grow(least - charged) === false)
      return;
    charged = least;
    const copy = Buffer.allocUnsafeSlow(least);
    body.copy(copy, 0, 0, size);
    body = copy;
  }

  function onEnd(): void {
    hasEnded = true;
    if (isWaiting) return;
    if (!isComplete(source)) onGone();
    else if (finish()) {
      charge?.complete();
      const bytes = body === undefined ? Buffer.alloc(0) : body.subarray(0, size);
      // A body that arrived with its request is handled with it. A later one is queued: a peer may send the last bytes
      // of many at once.
      if (isLate && buffers) enqueue(buffers.peer, { run: () => receiver.onBody(bytes), onError: rethrow });
      else receiver.onBody(bytes);
    }
  }

  function onGone(): void {
    if (!finish()) return;
    body = undefined;
    charge?.release();
    receiver.onGone();
  }

  buffers?.askForBody();
  // The end of an empty body comes with the headers, before there is a listener.
  if (source.readableEnded) onEnd();
  else {
    source.on("data", onData).on("end", onEnd).on("close", onGone).on("error", onGone);
    // Starts the timer also where no byte ever arrives.
    lookAfterTick();
  }
}

/**
 * Whether a body that has ended is complete: a reset of an HTTP/2 stream ends it as well, and an incomplete request
 * must never run.
 */
export function isComplete(source: BodySource): boolean {
  if (source instanceof Http2ServerRequest) return !(source.aborted || source.stream.closed || source.stream.destroyed);
  return "complete" in source ? source.complete : !(source.closed || source.destroyed);
}

function rethrow(error: unknown): never {
  throw error;
}

function ignore(): void {}
