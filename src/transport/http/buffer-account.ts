// How many bytes of requests and answers the process holds, and for whom. Bytes are
// charged before they are kept. Nobody holds more than a share, and where an account
// is full the body that moves least gives way.
import { type ApiError, resourceExhausted } from "../../kernel/errors.js";

/** What buffered bytes are charged to: a caller, an address or a connection. */
export interface Holder {
  /** Bytes held in each account, by the place of the account. */
  readonly bufferedBytes: [requests: number, answers: number];
}

/** Makes a holder of nothing. */
export function newHolder(): Holder {
  return { bufferedBytes: [0, 0] };
}

/** What is charged for one body. */
export interface Charge {
  /** Bytes held for this body. */
  readonly bytes: number;

  /** Charges more bytes at once, or returns false where the account or the share of a holder is full. */
  grow(bytes: number): boolean;

  /** Like {@link grow}, but refuses bodies that stand in the way and hardly move. */
  growFirst(bytes: number): boolean;

  /**
   * Charges more bytes as soon as there is room.
   *
   * @param onRoom called when they are charged
   */
  growLater(bytes: number, onRoom: () => void): void;

  /** Releases some bytes. A body that makes progress is not the one that is rejected for lack of room. */
  shrink(bytes: number): void;

  /** Notes that bytes have arrived or were taken, so that the body is not the one to give way. */
  noteProgress(bytes: number): void;

  /** Notes that the body is complete: it is held until it is released, and gives way to nobody. */
  complete(): void;

  /** Gives all bytes back. May be called again. */
  release(): void;
}

/** What an account allows. */
export interface AccountLimits {
  readonly totalBytes: number;
  /** Bodies of at most this many bytes may use the part of the account that larger ones may not. */
  readonly smallBytes: number;
  /** Bodies of at most this many bytes always have room: statuses that say why there is none for more. */
  readonly tinyBytes?: number;
  /** A body of which nothing has moved for so long is refused, in milliseconds; never where it is absent. */
  readonly stallMs?: number;
  /** Only bodies that move slower than this give way, in bytes per millisecond; any where it is absent. */
  readonly slowRate?: number;
  /** Bodies that may wait for room at one time; each holds what its peer may send unasked. */
  readonly waiting: number;
}

/** A holder's share of an account, and the part of either that is kept for small bodies. */
const SHARE = 1 / 4;
const KEPT_FOR_SMALL = 1 / 8;
/** How old a body must be to be judged by how fast it moves, in milliseconds. */
const MIN_AGE_MS = 250;
/** How long a body waits for room before others are refused for it, in milliseconds. */
const PATIENCE_MS = 500;
/** How long a body waits for room before it is refused itself, in milliseconds. */
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
  // Not a Set: its old tables, which refer to the next one, would keep every body until the next full collection.
  readonly #bodies: BodyCharge[] = [];
  readonly #waiting = new Set<Waiter>();
  #bufferedBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #stallTimer: NodeJS.Timeout | undefined;

  /** @param direction 0 for requests, 1 for answers */
  constructor(direction: 0 | 1, limits: AccountLimits) {
    this.#direction = direction;
    this.#limits = limits;
  }

  /** Bytes held for all bodies. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  /**
   * Opens the charge of a body that nothing is held for yet.
   *
   * @param holders who it is held for
   * @param onRejected ends the body with the error it is given: it has to give way, and its bytes are released
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
    // Nothing is held for an empty body, so nothing would give it up.
    if (bytes === 0) return true;
    if (!this.#fits(body, bytes)) return false;
    if (body.bytes === 0) this.#keep(body);
    this.#add(body, bytes);
    return true;
  }

  /** Charges bytes for a body even if others have to be refused for it, or returns false. */
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

  /** Forgets that a body waits. */
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

  // Room is made for the body that waits longest, by rejecting the slowest of those that take it.
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
  /** Where it stands among the bodies of its account; -1 while nothing is held for it. */
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
