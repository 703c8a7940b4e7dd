// Budgets of the bytes that the process holds of bodies: one of requests and one of responses. Bytes are charged before
// they are kept. Each byte belongs to one account, that of its caller or, while nobody knows that one, of its address. When
// an account is full, its body that progresses slowest is rejected; nothing waits for room.
import { type ApiError, invalidRequest, resourceExhausted } from "../../../kernel/errors.js";

/** What a budget allows. */
export interface BudgetLimits {
  /** All bytes together. One account may hold a quarter of them. */
  readonly totalBytes: number;
  /** All bytes of callers that nobody knows. One address may hold half of them. */
  readonly unknownBytes: number;
  /** Bodies of at most this many bytes are always accepted, such as the error for a response that has no room. */
  readonly tinyBytes?: number;
  /** The least rate of a body, in bytes a second, after `graceMs`; none unless given. */
  readonly leastRate?: number;
  readonly graceMs?: number;
  /** A body without progress for this long is rejected, in milliseconds; never unless given. */
  readonly stallMs?: number;
}

/** Whose bytes they are. */
export interface Owner {
  /** The uid of a caller that has proven who it is. */
  readonly callerUid: string | undefined;
  /** The address that a request came from. */
  readonly key: string;
}

/** What one body holds. */
export interface Charge {
  /** Bytes held for this body. */
  readonly bytes: number;
  /** Charges more bytes, and rejects slow bodies to make room; false if there is none. */
  grow(bytes: number): boolean;
  /** Releases bytes that the peer has taken, and notes the progress. */
  shrink(bytes: number): void;
  /** Notes that bytes have arrived or were taken. */
  noteProgress(bytes: number): void;
  /** Notes that the body is complete: it is not rejected any more. */
  complete(): void;
  /** Gives all bytes back. May be called again. */
  release(): void;
  /** Ends the body with an error, unless it was released or rejected. */
  reject(error: ApiError): void;
}

/** How a body is charged. */
export interface ChargeOptions {
  /** Ends the body: it was rejected, and its bytes are released. */
  readonly onRejected: (error: ApiError) => void;
  /** The most bytes that the account may hold with this body; a quarter unless given. */
  readonly mostBytes?: number | undefined;
  /** Whether the body may pause for as long as it likes, as one that is a stream of messages. */
  readonly mayPause?: boolean;
}

const SHARE = 1 / 4;
const UNKNOWN_SHARE = 1 / 2;
/** How old a body must be before its rate is compared, in milliseconds. */
const MIN_AGE_MS = 250;
const CHECK_MS = 1_000;

interface Account {
  readonly owner: string;
  readonly isKnown: boolean;
  // Not a Set: its old tables refer to newer ones and would keep every body until the next major garbage collection.
  readonly bodies: BodyCharge[];
  bytes: number;
}

/** A budget of bytes; see the head of this file. */
export class ByteBudget {
  readonly #limits: BudgetLimits;
  /** The accounts that have bodies, by the uid of a caller or by an address. */
  readonly #known = new Map<string, Account>();
  readonly #unknown = new Map<string, Account>();
  #bytes = 0;
  #unknownBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  /** Bytes held for all bodies. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Opens the charge of a new body, with 0 bytes. */
  open({ callerUid, key }: Owner, options: ChargeOptions): Charge {
    const isKnown = callerUid !== undefined;
    const accounts = isKnown ? this.#known : this.#unknown;
    const owner = callerUid ?? key;
    let account = accounts.get(owner);
    if (account === undefined) {
      account = { owner, isKnown, bodies: [], bytes: 0 };
      accounts.set(owner, account);
    }
    const body = new BodyCharge(this, account, options);
    body.index = account.bodies.push(body) - 1;
    if (this.#limits.leastRate !== undefined || this.#limits.stallMs !== undefined)
      this.#timer ??= setInterval(() => this.#rejectSlow(), CHECK_MS).unref();
    return body;
  }

  /** Charges bytes for a body; rejects slow bodies if there is no room, and returns false if that is not enough. */
  charge(body: BodyCharge, bytes: number): boolean {
    const { tinyBytes = 0 } = this.#limits;
    while (body.bytes + bytes > tinyBytes) {
      const full = this.#fullAccount(body, bytes);
      if (full === undefined) break;
      const slowest = findSlowest(full);
      if (slowest === undefined || slowest === body) return false;
      slowest.reject(noRoom());
    }
    // What holds nothing does not stall.
    if (body.bytes === 0) body.movedMs = performance.now();
    this.add(body, bytes);
    return true;
  }

  /** Adds bytes to what a body holds. */
  add(body: BodyCharge, bytes: number): void {
    body.bytes += bytes;
    body.account.bytes += bytes;
    this.#bytes += bytes;
    if (!body.account.isKnown) this.#unknownBytes += bytes;
  }

  /** Removes a body. */
  drop(body: BodyCharge): void {
    if (body.index < 0) return;
    const { owner, bodies, isKnown } = body.account;
    this.add(body, -body.bytes);
    const last = bodies.pop();
    if (last !== undefined && last !== body) {
      bodies[body.index] = last;
      last.index = body.index;
    }
    body.index = -1;
    if (bodies.length === 0) (isKnown ? this.#known : this.#unknown).delete(owner);
  }

  // The account in which room must be made: that of the body or, if all have too much together, the largest.
  #fullAccount({ account, mostBytes = 0 }: BodyCharge, bytes: number): Account | undefined {
    const { totalBytes, unknownBytes } = this.#limits;
    const share = account.isKnown ? totalBytes * SHARE : Math.min(totalBytes * SHARE, unknownBytes * UNKNOWN_SHARE);
    if (account.bytes + bytes > Math.max(share, mostBytes)) return account;
    if (!account.isKnown && this.#unknownBytes + bytes > unknownBytes) return findLargest(this.#unknown.values());
    if (this.#bytes + bytes > totalBytes) return findLargest([...this.#known.values(), ...this.#unknown.values()]);
    return undefined;
  }

  #rejectSlow(): void {
    if (this.#known.size + this.#unknown.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const { leastRate = 0, graceMs = 0, stallMs = Number.POSITIVE_INFINITY } = this.#limits;
    const nowMs = performance.now();
    const isSlow = ({ bytes, movedBytes, movedMs, sinceMs }: BodyCharge) =>
      (bytes > 0 && nowMs - movedMs > stallMs) ||
      (nowMs - sinceMs > graceMs && movedBytes < ((nowMs - sinceMs) / 1_000) * leastRate);
    const slow = [...this.#known.values(), ...this.#unknown.values()].flatMap(({ bodies }) =>
      bodies.filter((body) => !body.isComplete && !body.mayPause && isSlow(body)),
    );
    for (const body of slow) body.reject(invalidRequest(`body: must arrive at ${leastRate} bytes a second or more`));
  }
}

function findLargest(accounts: Iterable<Account>): Account | undefined {
  let largest: Account | undefined;
  for (const account of accounts) if (largest === undefined || account.bytes > largest.bytes) largest = account;
  return largest;
}

function findSlowest({ bodies }: Account): BodyCharge | undefined {
  const nowMs = performance.now();
  let slowest: BodyCharge | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const body of bodies) {
    const ageMs = nowMs - body.sinceMs;
    const rate = body.movedBytes / ageMs;
    if (body.isComplete || body.bytes === 0 || ageMs < MIN_AGE_MS || rate >= least) continue;
    slowest = body;
    least = rate;
  }
  return slowest;
}

/** The charge of one body. */
class BodyCharge implements Charge {
  bytes = 0;
  /** Its index among the bodies of its account; -1 when it was released. */
  index = -1;
  movedBytes = 0;
  isComplete = false;
  readonly account: Account;
  readonly mostBytes: number | undefined;
  readonly mayPause: boolean;
  readonly sinceMs = performance.now();
  movedMs = this.sinceMs;
  readonly #budget: ByteBudget;
  readonly #onRejected: (error: ApiError) => void;

  constructor(budget: ByteBudget, account: Account, { onRejected, mostBytes, mayPause = false }: ChargeOptions) {
    this.#budget = budget;
    this.account = account;
    this.mostBytes = mostBytes;
    this.mayPause = mayPause;
    this.#onRejected = onRejected;
  }

  grow(bytes: number): boolean {
    // It was rejected, so nothing would release the bytes.
    return this.index >= 0 && this.#budget.charge(this, bytes);
  }

  shrink(bytes: number): void {
    this.noteProgress(bytes);
    this.#budget.add(this, -Math.min(bytes, this.bytes));
  }

  noteProgress(bytes: number): void {
    this.movedBytes += bytes;
    this.movedMs = performance.now();
  }

  complete(): void {
    this.isComplete = true;
  }

  release(): void {
    this.#budget.drop(this);
  }

  reject(error: ApiError): void {
    if (this.index < 0) return;
    this.release();
    this.#onRejected(error);
  }
}

/** RESOURCE_EXHAUSTED: there is no room for the bytes of a body, and no slower body to reject. */
export function noRoom(): ApiError {
  return resourceExhausted("body: the service holds as many bytes as it may, try again", RETRY_MS, "buffers");
}

const RETRY_MS = 1_000;
