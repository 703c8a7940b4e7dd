// Collects the bodies of requests of every protocol, and charges their bytes.
import { type ApiError, invalidRequest } from "../../kernel/errors.js";
import { createDeferral } from "./deferral.js";
import type { Charge } from "./limits/byte-budget.js";
import { noRoom } from "./limits/byte-budget.js";
import type { BodySource, Request } from "./request.js";

/** What limits a body, checks its first bytes and receives the result: one of the last four is called, once. */
export interface BodyReader {
  readonly maxBytes: number;
  /** Reads the size that the body announces itself, in bytes; undefined until it has arrived. */
  readAnnouncedLength(arrived: Buffer): number | undefined;
  /** Checks the bytes that have arrived; an error ends the reading. */
  check?(arrived: Buffer): ApiError | undefined;
  /** The body is complete. */
  onBody(bytes: Buffer): void;
  /** More than `maxBytes` arrived. */
  onTooLarge(): void;
  /** The body is malformed, took too long, or was rejected in favour of others. */
  onFault(error: ApiError): void;
  /** The peer disconnected; there is no one to answer. */
  onGone?(): void;
}

// The least that is charged for a body in several chunks: its buffers and their pool.
const LEAST_BYTES = 8 * 1024;

// Most bodies arrive complete within a tick, and need neither a timer nor a copy.
const keepLater = createDeferral<BodyCollector>((collector) => collector.keepUnfinished(), rethrow);

const NOTHING = Buffer.alloc(0);

const key = Symbol("collector");
type CollectedSource = BodySource & { [key]?: BodyCollector };

/**
 * Reads a body to its end. Bytes are charged before they are kept; without room for them, the body is rejected. The charge
 * is released with the request.
 */
export function collectBody(request: Request, reader: BodyReader): void {
  const collector = new BodyCollector(request, reader);
  (request.body as CollectedSource)[key] = collector;
  collector.start();
}

// All bodies share these listeners: closures for each take memory in every small call.
function onData(this: CollectedSource, chunk: Buffer): void {
  this[key]?.add(chunk);
}

function onEnd(this: CollectedSource): void {
  this[key]?.end();
}

function onClose(this: CollectedSource): void {
  this[key]?.leave();
}

class BodyCollector {
  readonly #request: Request;
  readonly #reader: BodyReader;
  /** Its first `#size` bytes are what arrived so far. */
  #body: Buffer | undefined;
  #size = 0;
  #timer: NodeJS.Timeout | undefined;
  #charge: Charge | undefined;
  #charged = 0;
  #isOver = false;
  #hasEnded = false;
  #isLate = false;
  #isScheduled = false;

  constructor(request: Request, reader: BodyReader) {
    this.#request = request;
    this.#reader = reader;
  }

  start(): void {
    const source = this.#request.body;
    this.#request.askForBody();
    // The end of an empty body comes with the headers, before there is a listener.
    if (source.readableEnded) {
      this.end();
      return;
    }
    source.on("data", onData).on("end", onEnd).on("close", onClose);
    // What fails is closed next. A stream of HTTP/2 has had a listener of errors since it was opened.
    if ("complete" in source) source.on("error", ignore);
    // Starts the timer also where no byte ever arrives.
    this.#scheduleKeeping();
  }

  add(chunk: Buffer): void {
    if (this.#size + chunk.length > this.#reader.maxBytes) {
      const arrived = this.#body?.subarray(0, this.#size) ?? NOTHING;
      const fault = this.#reader.check?.(this.#size === 0 ? chunk : Buffer.concat([arrived, chunk]));
      if (fault !== undefined) this.#fail(fault);
      else if (this.#discard()) this.#reader.onTooLarge();
      return;
    }
    const charge = this.#openCharge();
    const room = this.#roomFor(chunk);
    const more = room - this.#charged;
    if (more > 0 && !charge.grow(more)) {
      this.#fail(noRoom());
      return;
    }
    this.#charged = Math.max(room, this.#charged);
    this.#keep(chunk, room);
  }

  end(): void {
    this.#hasEnded = true;
    // Its fault comes soon.
    if (this.#request.isBodyRejected && !this.#request.isGone) return;
    if (!this.#request.isBodyWhole) {
      this.leave();
      return;
    }
    if (!this.#finish()) return;
    this.#charge?.complete();
    const reader = this.#reader;
    const bytes = this.#body === undefined ? Buffer.alloc(0) : this.#body.subarray(0, this.#size);
    // A body that arrived with its request is handled with it. A later one is queued: a peer may send the last bytes
    // of many at once.
    if (this.#isLate) this.#request.waitAgain(() => reader.onBody(bytes));
    else reader.onBody(bytes);
  }

  /** Ends the reading when the peer has disconnected. */
  leave(): void {
    if (this.#discard()) this.#reader.onGone?.();
  }

  /**
   * Called when the tick ends in which the first bytes arrived: they are a slice of the socket's read buffer, which
   * they must not keep in memory.
   */
  keepUnfinished(): void {
    this.#isScheduled = false;
    if (this.#isOver) return;
    const { maxBytes } = this.#reader;
    this.#isLate = true;
    // From now on the rate of the body counts, also where no byte ever arrives.
    this.#openCharge();
    const fail = () => this.#fail(invalidRequest("the message did not arrive in time"));
    this.#timer ??= setTimeout(fail, this.#request.bodyMs);
    const least = Math.min(LEAST_BYTES, maxBytes);
    if (this.#body === undefined || this.#size >= least || this.#charged >= least) return;
    if (this.#charge?.grow(least - this.#charged) === false) return;
    this.#charged = least;
    this.#moveTo(least, this.#body);
  }

  #openCharge(): Charge {
    this.#charge ??= this.#request.openBody((error) => this.#fail(error));
    return this.#charge;
  }

  // A body of known size is charged at once, so that it is rejected before it has arrived in vain.
  #roomFor(chunk: Buffer): number {
    const { maxBytes } = this.#reader;
    const needed = this.#size + chunk.length;
    const room = this.#body?.length;
    if (room === undefined) return Math.min(Math.max(this.#reader.readAnnouncedLength(chunk) ?? 0, needed), maxBytes);
    return needed <= room ? room : Math.max(needed, Math.min(Math.max(room * 2, LEAST_BYTES), maxBytes));
  }

  // Doubles the buffer instead of keeping chunks: a peer may send single bytes, each in a buffer of its own.
  #keep(chunk: Buffer, room: number): void {
    this.#charge?.noteProgress(chunk.length);
    let body = this.#body;
    if (body === undefined) {
      body = chunk;
      this.#body = chunk;
      this.#scheduleKeeping();
    } else {
      if (this.#size + chunk.length > body.length) body = this.#moveTo(Math.max(room, this.#charged), body);
      chunk.copy(body, this.#size);
    }
    this.#size += chunk.length;
    const error = this.#reader.check?.(body.subarray(0, this.#size));
    if (error !== undefined) this.#fail(error);
  }

  #moveTo(bytes: number, body: Buffer): Buffer {
    const moved = Buffer.allocUnsafeSlow(bytes);
    body.copy(moved, 0, 0, this.#size);
    this.#body = moved;
    return moved;
  }

  #scheduleKeeping(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    keepLater(this);
  }

  #fail(error: ApiError): void {
    if (this.#discard()) this.#reader.onFault(error);
  }

  #discard(): boolean {
    if (!this.#finish()) return false;
    this.#body = undefined;
    this.#charge?.release();
    return true;
  }

  #finish(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    clearTimeout(this.#timer);
    // No event follows the end, so the listeners may stay.
    if (!this.#hasEnded) this.#request.body.off("data", onData).off("end", onEnd).off("close", onClose);
    return true;
  }
}

function rethrow(error: unknown): never {
  throw error;
}

function ignore(): void {}
