// Accounts for the bytes of requests and responses that the process buffers, and for whom. Bytes are charged before they
// are kept. A holder has at most a share of the account. When an account is full, the slowest body is rejected.
import { type ApiError, resourceExhausted } from "../../kernel/errors.js";

/** What buffered bytes are charged to: a caller, an address or a connection. */
export interface Holder {
  /** Bytes held in each account. */
  readonly bufferedBytes: [requests: number, answers: number];
}

/** Creates a holder without bytes. */
export function createHolder(): Holder {
  return { bufferedBytes: [0, 0] };
}

/** What is charged for one body. */
export interface Charge {
  /** Bytes held for this body. */
  readonly bytes: number;

  /** Charges more bytes at once, or returns false when the account or the share of a holder is full. */
  grow(bytes: number): boolean;

  /** Like {@link grow}, but rejects slow bodies to make room. */
  growFirst(bytes: number): boolean;

  /**
   * Charges more bytes as soon as there is room.
   *
   * @param onRoom called when they are charged
   */
  growLater(bytes: number, onRoom: () => void): void;

  /** Releases bytes that the peer has taken, and notes the progress. */
  shrink(bytes: number): void;

  /** Notes that bytes have arrived or were taken: slow bodies are rejected first. */
  noteProgress(bytes: number): void;

  /** Notes that the body is complete, so that it is no longer rejected to make room. */
  complete(): void;

  /** Gives all bytes back. May be called again. */
  release(): void;
}

/** What an account allows. */
export interface AccountLimits {
  readonly totalBytes: number;
  /** Bodies of at most this many bytes may use all of the account; larger ones leave an eighth. */
  readonly smallBytes: number;
  /** Bodies of at most this many bytes are always accepted, such as the error for a response that has no room. */
  readonly tinyBytes?: number;
  /** A body without progress for this long is rejected, in milliseconds; never unless given. */
  readonly stallMs?: number;
  /** Only bodies slower than this are rejected to make room, in bytes per millisecond; any unless given. */
  readonly slowRate?: number;
  /** How many bodies may wait for room at one time; for each, the peer may send as much as flow control allows. */
  readonly waiting: number;
}

/** A holder's share of an account, and the fraction of both that is reserved for small bodies. */
const SHARE = 1 / 4;
const KEPT_FOR_SMALL = 1 / 8;
/** How old a body must be before its rate is compared, in milliseconds. */
const MIN_AGE_MS = 250;
/** How long a body waits for room before others are rejected for it, in milliseconds. */
const PATIENCE_MS = 500;
/** How long a body waits for room before it is rejected itself, in milliseconds. */
const MAX_WAIT_MS = 10_000;
const WAIT_CHECK_MS = 25;
const STALL_CHECK_MS = 1_000;

interface Waiter {
  readonly body: BodyCharge;
  readonly bytes: number;
  readonly sinceMs: number;
  readonly onRoom: () => void;
}

/** An account of bytes; see the head of this file. */
export class BufferAccount {
  readonly #direction: 0 | 1;
  readonly #limits: AccountLimits;
  // Not a Set: its old tables refer to newer ones and would keep every body until the next major garbage collection.
  readonly #bodies: BodyCharge[] = [];
  readonly #waiting = new Set<Waiter>();
  #bufferedBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #stallTimer: NodeJS.Timeout | undefined;

  /** @param direction 0 for requests, 1 for responses */
  constructor(direction: 0 | 1, limits: AccountLimits) {
    this.#direction = direction;
    this.#limits = limits;
  }

  /** Bytes held for all bodies. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  /**
   * Opens the charge of a new body, with 0 bytes.
   *
   * @param holders for whom its bytes are held
   * @param onRejected ends the body with the given error: it was rejected to make room, and its bytes are released
   * @param maxShare the most bytes one of the holders may hold; a quarter of the account unless given
   */
  open(holders: readonly Holder[], onRejected: (error: ApiError) => void, maxShare?: number): Charge {
    return new BodyCharge(
      this,
      holders,
      onRejected,
      maxShare === undefined ? this.#limits.totalBytes * SHARE : maxShare / (1 - KEPT_FOR_SMALL),
    );
  }

  /** Charges bytes for a body, or returns false. */
  charge(body: BodyCharge, bytes: number): boolean {
    // An empty body is not listed, because nothing would remove it.
    if (bytes === 0) return true;
    if (!this.#fits(body, bytes)) return false;
    if (body.bytes === 0) this.#keep(body);
    this.#add(body, bytes);
    return true;
  }

  /** Charges bytes for a body, and rejects slow bodies to make room; false when that is not enough. */
  chargeFirst(body: BodyCharge, bytes: number): boolean {
    const nowMs = performance.now();
    while (!this.charge(body, bytes)) {
      const slowest = this.#slowest(this.#fullHolder(body, bytes), nowMs);
      if (slowest === undefined || slowest === body) return false;
      slowest.reject();
    }
    return true;
  }

  /** Gives back bytes of a body. */
  discharge(body: BodyCharge, bytes: number): void {
    this.#add(body, -bytes);
    if (body.bytes === 0) this.#drop(body);
    if (this.#waiting.size > 0) this.#admit();
  }

  /** Charges bytes for a body when there is room. */
  await(body: BodyCharge, bytes: number, onRoom: () => void): void {
    if (this.#waiting.size >= this.#limits.waiting) {
      body.reject();
      return;
    }
    this.#waiting.add({ body, bytes, onRoom, sinceMs: performance.now() });
    this.#timer ??= setInterval(() => this.#relieve(), WAIT_CHECK_MS);
  }

  /** Removes a body from those that wait for room. */
  forget(body: BodyCharge): void {
    if (this.#waiting.size === 0) return;
    for (const waiter of this.#waiting) if (waiter.body === body) this.#waiting.delete(waiter);
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #keep(body: BodyCharge): void {
    body.index = this.#bodies.push(body) - 1;
    if (this.#limits.stallMs === undefined || this.#stallTimer !== undefined) return;
    const everyMs = Math.min(STALL_CHECK_MS, this.#limits.stallMs / 2);
    this.#stallTimer = setInterval(() => this.#rejectStalled(), everyMs);
    this.#stallTimer.unref();
  }

  #drop(body: BodyCharge): void {
    if (body.index < 0) return;
    const last = this.#bodies.pop();
    if (last !== undefined && last !== body) {
      this.#bodies[body.index] = last;
      last.index = body.index;
    }
    body.index = -1;
  }

  #rejectStalled(): void {
    if (this.#bodies.length === 0) {
      clearInterval(this.#stallTimer);
      this.#stallTimer = undefined;
    }
    const beforeMs = performance.now() - (this.#limits.stallMs ?? 0);
    for (const body of this.#bodies.filter(({ movedMs }) => movedMs < beforeMs)) body.reject();
  }

  #add(body: BodyCharge, bytes: number): void {
    const direction = this.#direction;
    body.bytes += bytes;
    this.#bufferedBytes += bytes;
    for (const { bufferedBytes } of body.holders) bufferedBytes[direction] += bytes;
  }

  #fits(body: BodyCharge, bytes: number): boolean {
    if (body.bytes + bytes <= (this.#limits.tinyBytes ?? 0)) return true;
    return (
      this.#fullHolder(body, bytes) === undefined &&
      this.#bufferedBytes + bytes <= this.#usable(this.#limits.totalBytes, body, bytes)
    );
  }

  #fullHolder(body: BodyCharge, bytes: number): Holder | undefined {
    const share = this.#usable(body.maxShare, body, bytes);
    for (const holder of body.holders) if (holder.bufferedBytes[this.#direction] + bytes > share) return holder;
    return undefined;
  }

  #usable(limit: number, body: BodyCharge, bytes: number): number {
    return body.bytes + bytes <= this.#limits.smallBytes ? limit : limit * (1 - KEPT_FOR_SMALL);
  }

  #admit(): void {
    for (const waiter of this.#waiting) {
      if (!this.charge(waiter.body, waiter.bytes)) continue;
      this.forget(waiter.body);
      waiter.onRoom();
    }
  }

  // Makes room for the body that waits longest: rejects the slowest body of the account or of the full holder.
  #relieve(): void {
    const nowMs = performance.now();
    for (const { body, bytes, sinceMs } of this.#waiting) {
      if (nowMs - sinceMs > MAX_WAIT_MS) body.reject();
      else if (nowMs - sinceMs > PATIENCE_MS) this.#slowest(this.#fullHolder(body, bytes), nowMs)?.reject();
      return;
    }
  }

  #slowest(holder: Holder | undefined, nowMs: number): BodyCharge | undefined {
    let slowest: BodyCharge | undefined;
    let least = this.#limits.slowRate ?? Number.POSITIVE_INFINITY;
    for (const body of this.#bodies) {
      if (body.isComplete || (holder !== undefined && !body.holders.includes(holder))) continue;
      const ageMs = nowMs - body.sinceMs;
      const rate = body.movedBytes / ageMs;
      if (ageMs < MIN_AGE_MS || rate >= least) continue;
      slowest = body;
      least = rate;
    }
    return slowest;
  }
}

/** The charge of one body in one account. */
class BodyCharge implements Charge {
  bytes = 0;
  /** Its index in `#bodies`; -1 while it has no bytes. */
  index = -1;
  movedBytes = 0;
  readonly sinceMs = performance.now();
  movedMs = this.sinceMs;
  isComplete = false;
  readonly holders: readonly Holder[];
  readonly maxShare: number;
  readonly #account: BufferAccount;
  readonly #onRejected: (error: ApiError) => void;

  constructor(
    account: BufferAccount,
    holders: readonly Holder[],
    onRejected: (error: ApiError) => void,
    maxShare: number,
  ) {
    this.#account = account;
    this.holders = holders;
    this.maxShare = maxShare;
    this.#onRejected = onRejected;
  }

  grow(bytes: number): boolean {
    return this.#account.charge(this, bytes);
  }

  growLater(bytes: number, onRoom: () => void): void {
    this.#account.await(this, bytes, onRoom);
  }

  growFirst(bytes: number): boolean {
    return this.#account.chargeFirst(this, bytes);
  }

  shrink(bytes: number): void {
    this.noteProgress(bytes);
    this.#account.discharge(this, Math.min(bytes, this.bytes));
  }

  noteProgress(bytes: number): void {
    this.movedBytes += bytes;
    this.movedMs = performance.now();
  }

  complete(): void {
    this.isComplete = true;
  }

  release(): void {
    this.#account.forget(this);
    this.#account.discharge(this, this.bytes);
  }

  reject(): void {
    this.release();
    this.#onRejected(
      resourceExhausted("body: the service holds as many bytes as it may, try again", RETRY_MS, "buffers"),
    );
  }
}

const RETRY_MS = 1_000;
