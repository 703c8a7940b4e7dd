// The events of one subscription that are not delivered yet, on the node that delivers: which may be sent next, and what must
// be written of their outcomes. It reads and writes nothing itself.
//
//     ┌── at once ──────────────────┐
//     │                             ▼
//   read ─────> waiting ─ due ─> in flight ─ accepted ─> delivered
//                │   ▲              │
//                │   └─── failed ───┘
//                └─ failed a day after it began to wait ─> dead letter
//
// An event that cannot be built from the log goes from in flight to dead letter (giveUp). A subscription is suspended when its
// sink is gone, has failed for a day, or has too much to read, and stalled while MAX_WAITING events wait.
//
// An event waits, from the start, when an earlier one of its resource waits or the circuit breaker is open. Then it has a row,
// which has its attempts and lets the position pass it; it keeps the row while it is in flight. Others have none: after a
// restart they are read from the log again. Why an event is not sent now is in #findNext.
import { isWithin } from "../../kernel/uidp.js";
import type { PositionChange, SubscribedPosition } from "../../store/events/positions.js";
import type { EventDeliveryRow, SuspendReason } from "../../store/tables/events.js";
import { MAX_BACKLOG, MAX_WAITING } from "./control.js";
import type { Attempt } from "./sender.js";

/** An event of the log. */
export interface QueuedEvent {
  readonly seq: number;
  readonly subjectUid: string;
  readonly type: string;
}

/** What is to be written of a subscription. */
export interface QueueChanges {
  /** The events that it is about. */
  readonly seqs: ReadonlySet<number>;
  readonly position: PositionChange;
  readonly rows: readonly EventDeliveryRow[];
  readonly removed: readonly number[];
}

/** How many events of a subscription are read from the log before earlier ones are delivered. */
const MAX_READ_AHEAD = 64;
/** After as many entries that are no events of a subscription its position is written. */
const MAX_UNWRITTEN_ENTRIES = 1_000;
/** How many events of a subscription are in flight at most: it begins with one, which doubles with each success. */
const MAX_IN_FLIGHT = 8;
/** After as many failures in a row the circuit breaker opens: only one event is tried at a time, and others wait. */
const BREAKER_THRESHOLD = 3;
const SECOND_MS = 1_000;
const DAY_MS = 24 * 3_600 * SECOND_MS;
/** The longest pause between two attempts of an event, and between two of a sink that accepts none. */
const MAX_EVENT_PAUSE_MS = 3_600 * SECOND_MS;
const MAX_SINK_PAUSE_MS = 300 * SECOND_MS;
/** A sink that has failed for as long was unreachable: it gets all that waits for it at once when it accepts an event. */
const UNREACHABLE_AFTER_MS = 60 * SECOND_MS;

interface Item extends Pick<QueuedEvent, "seq" | "subjectUid"> {
  readonly isBatch: boolean;
  isInFlight: boolean;
  /** Its row, where it waits: it has failed, or an earlier one of its resource, or the circuit breaker is open. */
  row: EventDeliveryRow | undefined;
}

/** The queue of one subscription. */
export class SubscriptionQueue {
  readonly uid: string;
  readonly rootUid: string;
  readonly groupUid: string;
  readonly sink: string;
  readonly revision: number;
  /** All entries of the chain up to this one are read. */
  readSeq: number;
  headSeq: number;
  inFlight = 0;
  readonly #random: () => number;
  /** In the order of the chain. */
  readonly #items = new Map<number, Item>();
  #waiting = 0;
  #failures = 0;
  #failingSinceMs: number | null;
  #maxInFlight = 1;
  #pausedUntilMs = 0;
  #suspended: SuspendReason = "";
  #writtenPosition: PositionChange;
  #changedSeqs = new Set<number>();
  #hasRemoved = false;
  readonly #unwrittenDeadLetters = new Map<number, EventDeliveryRow>();

  /** @param waiting the events that wait, in the order of the chain */
  constructor(position: SubscribedPosition, waiting: readonly EventDeliveryRow[], random: () => number) {
    const { seq, state, suspendReason, failingSinceMs } = position;
    this.uid = position.subscriptionUid;
    this.rootUid = position.rootUid;
    this.groupUid = position.groupUid;
    this.sink = position.sink;
    this.revision = position.revision;
    this.headSeq = position.headSeq;
    this.readSeq = seq;
    this.#random = random;
    this.#failingSinceMs = failingSinceMs;
    // Known to fail: one attempt is enough to see whether it still does.
    if (failingSinceMs !== null) this.#failures = BREAKER_THRESHOLD;
    this.#writtenPosition = { seq, state, suspendReason, failingSinceMs };
    this.#waiting = waiting.length;
    for (const row of waiting) {
      const { subjectUid } = row;
      this.#items.set(row.seq, { seq: row.seq, subjectUid, isBatch: false, isInFlight: false, row });
    }
  }

  /** Whether more events may be read from the log. */
  get hasRoom(): boolean {
    const isFull = this.#items.size >= MAX_WAITING || this.#items.size - this.#waiting >= MAX_READ_AHEAD;
    return this.#suspended === "" && !isFull;
  }

  get isSuspended(): boolean {
    return this.#suspended !== "";
  }

  /** Whether its last attempt has failed. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  get #isBreakerOpen(): boolean {
    return this.#failures >= BREAKER_THRESHOLD;
  }

  /** Whether there is nothing to send or to write. */
  get isEmpty(): boolean {
    return this.#items.size === 0 && this.inFlight === 0 && !this.hasUnwrittenChanges;
  }

  /** Whether changes must be written now. That entries were read that are no events of it can wait. */
  get isWriteDue(): boolean {
    if (this.#changedSeqs.size > 0) return true;
    const position = this.#currentPosition();
    const isFarBehind = position.seq - this.#writtenPosition.seq >= MAX_UNWRITTEN_ENTRIES;
    return (
      (this.#hasRemoved || isFarBehind || position.state !== this.#writtenPosition.state) && this.hasUnwrittenChanges
    );
  }

  /** Whether the stored position or rows are others. */
  get hasUnwrittenChanges(): boolean {
    return this.#changedSeqs.size > 0 || !isSamePosition(this.#writtenPosition, this.#currentPosition());
  }

  /** Adds an event of the log. Events of a failing sink wait with those that have failed. */
  add({ seq, subjectUid, type }: QueuedEvent, nowMs: number): void {
    const item: Item = { seq, subjectUid, isBatch: type.endsWith(".batch.v1"), isInFlight: false, row: undefined };
    this.#items.set(seq, item);
    if (this.#isBreakerOpen || this.#hasEarlierWaiting(item)) this.#keepWaiting(item, nowMs);
  }

  /** Whether an event may be sent now. */
  hasNext(nowMs: number): boolean {
    return this.#findNext(nowMs) !== undefined;
  }

  /** Takes the next event that may be sent now, if there is one. */
  takeNext(nowMs: number): QueuedEvent["seq"] | undefined {
    const item = this.#findNext(nowMs);
    if (item === undefined) return undefined;
    item.isInFlight = true;
    this.inFlight++;
    return item.seq;
  }

  // A sink that accepts nothing is tried with the event that was tried least: one that is at fault itself would otherwise keep
  // all others from being tried.
  #findNext(nowMs: number): Item | undefined {
    if (this.#suspended !== "" || nowMs < this.#pausedUntilMs) return undefined;
    const isProbe = this.#isBreakerOpen;
    if (this.inFlight >= (isProbe ? 1 : this.#maxInFlight)) return undefined;
    const subjects = new Set<string>();
    const read: Item[] = [];
    let best: Item | undefined;
    for (const item of this.#items.values()) {
      const isFirst = !subjects.has(item.subjectUid);
      subjects.add(item.subjectUid);
      // By an earlier event of its resource, or of a batch with its resource.
      const isBlocked = !isFirst || (item.row === undefined && read.some((earlier) => areRelated(earlier, item)));
      if (item.row === undefined) read.push(item);
      // The time is null while the subscription is suspended.
      const isDue = item.row === undefined || (item.row.nextTimeMs ?? Number.POSITIVE_INFINITY) <= nowMs;
      if (isBlocked || item.isInFlight || !isDue) continue;
      if (!isProbe) return item;
      if (best === undefined || (item.row?.attempts ?? 0) < (best.row?.attempts ?? 0)) best = item;
    }
    return best;
  }

  /** Records the outcome of an event that was taken. */
  recordOutcome(seq: number, attempt: Attempt, nowMs: number): void {
    this.inFlight--;
    const item = this.#items.get(seq);
    if (item === undefined) return;
    item.isInFlight = false;
    if (attempt.kind === "accepted") this.#recordSuccess(item, nowMs);
    else if (attempt.kind === "busy") this.pauseShortly(nowMs);
    else this.#recordFailure(item, attempt, nowMs);
    if (attempt.kind === "gone") this.suspend("gone");
  }

  /** Sends nothing for a second or so: the service itself could not. */
  pauseShortly(nowMs: number): void {
    this.#pausedUntilMs = nowMs + SECOND_MS * (0.5 + this.#random());
  }

  /** Makes an event that was taken a dead letter, because the log does not have it whole. */
  giveUp(seq: number, error: string, nowMs: number): void {
    this.inFlight--;
    const item = this.#items.get(seq);
    if (item === undefined) return;
    item.isInFlight = false;
    // A dead letter is the row of an event that waited.
    this.#keepWaiting(item, nowMs);
    if (item.row) this.#addDeadLetter(item, { ...item.row, lastError: error }, nowMs);
  }

  #recordSuccess(item: Item, nowMs: number): void {
    const awayMs = this.#failingSinceMs === null ? 0 : nowMs - this.#failingSinceMs;
    this.#failures = 0;
    this.#failingSinceMs = null;
    this.#pausedUntilMs = 0;
    this.#maxInFlight = Math.min(this.#maxInFlight * 2, MAX_IN_FLIGHT);
    this.#remove(item);
    if (awayMs < UNREACHABLE_AFTER_MS) return;
    for (const other of this.#items.values()) {
      if (other.row && !other.isInFlight) this.#setRow(other, { ...other.row, nextTimeMs: nowMs });
    }
  }

  #recordFailure(item: Item, { status, error, retryAfterMs = 0 }: Attempt, nowMs: number): void {
    this.#failures++;
    this.#failingSinceMs ??= nowMs;
    this.#maxInFlight = 1;
    // A sink that says when to come again is left alone until then.
    if (retryAfterMs > 0) this.#failures = Math.max(this.#failures, BREAKER_THRESHOLD);
    if (this.#isBreakerOpen) {
      const pauseMs = this.#computeBackoffMs(this.#failures - BREAKER_THRESHOLD + 1, MAX_SINK_PAUSE_MS);
      this.#pausedUntilMs = nowMs + Math.max(pauseMs, Math.min(retryAfterMs, DAY_MS));
    }
    this.#keepWaiting(item, nowMs);
    // A sink that has accepted nothing for a day is at fault, and not the event.
    const isSinkAtFault = nowMs - this.#failingSinceMs >= DAY_MS;
    if (item.row) {
      const attempts = item.row.attempts + 1;
      const pauseMs = Math.max(this.#computeBackoffMs(attempts, MAX_EVENT_PAUSE_MS), Math.min(retryAfterMs, DAY_MS));
      const last = { attempts, lastTimeMs: nowMs, lastStatus: status, lastError: error };
      const row = { ...item.row, ...last, nextTimeMs: nowMs + pauseMs };
      if (nowMs - row.sinceMs >= DAY_MS && !isSinkAtFault) this.#addDeadLetter(item, row, nowMs);
      else this.#setRow(item, row);
    }
    for (const later of this.#items.values()) {
      const mustWait = this.#isBreakerOpen || this.#hasEarlierWaiting(later);
      if (later.row === undefined && !later.isInFlight && mustWait) this.#keepWaiting(later, nowMs);
    }
    if (isSinkAtFault) this.suspend("failed");
  }

  // Exponential, and half of it random.
  #computeBackoffMs(attempts: number, longestMs: number): number {
    const ms = Math.min(SECOND_MS * 2 ** Math.min(attempts - 1, 20), longestMs);
    return Math.round(ms * (0.5 + this.#random() / 2));
  }

  /** Stops until a caller resumes it. */
  suspend(reason: Exclude<SuspendReason, "" | "caller">): void {
    this.#suspended = reason;
  }

  /** Suspends it where it is too far behind. */
  checkBacklog(): void {
    if (this.#suspended === "" && this.headSeq - this.#writtenPosition.seq > MAX_BACKLOG) this.suspend("backlog");
  }

  /** Takes what is to be written. {@link confirmChanges} or {@link restoreChanges} follows. */
  takeChanges(): QueueChanges {
    const seqs = this.#changedSeqs;
    this.#changedSeqs = new Set();
    const rows: EventDeliveryRow[] = [];
    const removed: number[] = [];
    for (const seq of seqs) {
      const row = this.#items.get(seq)?.row ?? this.#unwrittenDeadLetters.get(seq);
      if (row) rows.push(row);
      else removed.push(seq);
    }
    return { seqs, position: this.#currentPosition(), rows, removed };
  }

  /** Notes that changes were written. */
  confirmChanges({ position, seqs }: QueueChanges): void {
    this.#writtenPosition = position;
    this.#hasRemoved &&= !isSamePosition(position, this.#currentPosition());
    for (const seq of seqs) if (!this.#changedSeqs.has(seq)) this.#unwrittenDeadLetters.delete(seq);
  }

  /** Adds changes that could not be written to the next ones. */
  restoreChanges({ seqs }: QueueChanges): void {
    for (const seq of seqs) this.#changedSeqs.add(seq);
  }

  /** When the next attempt may be made that is planned; undefined where none is. */
  nextTimeMs(): number | undefined {
    let next: number | undefined;
    for (const { row, isInFlight } of this.#items.values()) {
      if (isInFlight) continue;
      next = Math.min(next ?? Number.POSITIVE_INFINITY, row?.nextTimeMs ?? 0);
    }
    return next === undefined ? undefined : Math.max(next, this.#pausedUntilMs);
  }

  #currentPosition(): PositionChange {
    let seq = this.readSeq;
    for (const item of this.#items.values()) {
      if (item.row !== undefined) continue;
      seq = item.seq - 1;
      break;
    }
    const failingSinceMs = this.#failingSinceMs;
    if (this.#suspended !== "") return { seq, state: "suspended", suspendReason: this.#suspended, failingSinceMs };
    const isStalled = this.#waiting >= MAX_WAITING && this.headSeq > this.readSeq;
    const state = isStalled ? "stalled" : this.#failures > 0 ? "failing" : "live";
    return { seq, state, suspendReason: "", failingSinceMs };
  }

  #hasEarlierWaiting({ seq, subjectUid }: Item): boolean {
    for (const other of this.#items.values()) {
      if (other.seq >= seq) return false;
      if (other.row !== undefined && other.subjectUid === subjectUid) return true;
    }
    return false;
  }

  #keepWaiting(item: Item, nowMs: number): void {
    if (item.row !== undefined) return;
    this.#waiting++;
    const { seq, subjectUid } = item;
    this.#setRow(item, {
      ...{ subscriptionUid: this.uid, seq, subjectUid, sinceMs: nowMs, nextTimeMs: nowMs, deadTimeMs: null },
      ...{ attempts: 0, lastTimeMs: null, lastStatus: 0, lastError: "" },
    });
  }

  #setRow(item: Item, row: EventDeliveryRow): void {
    item.row = row;
    this.#changedSeqs.add(item.seq);
  }

  #addDeadLetter(item: Item, row: EventDeliveryRow, nowMs: number): void {
    this.#remove(item);
    this.#unwrittenDeadLetters.set(item.seq, { ...row, nextTimeMs: null, deadTimeMs: nowMs });
    this.#changedSeqs.add(item.seq);
  }

  #remove(item: Item): void {
    this.#items.delete(item.seq);
    this.#hasRemoved = true;
    if (item.row === undefined) return;
    this.#waiting--;
    this.#changedSeqs.add(item.seq);
  }
}

// A batch changes resources below its subject, and comes in order with theirs while all goes well.
function areRelated(earlier: Item, later: Item): boolean {
  if (earlier.isBatch) return isWithin(later.subjectUid, earlier.subjectUid);
  return later.isBatch && isWithin(earlier.subjectUid, later.subjectUid);
}

function isSamePosition(one: PositionChange, other: PositionChange): boolean {
  return (
    one.seq === other.seq &&
    one.state === other.state &&
    one.suspendReason === other.suspendReason &&
    one.failingSinceMs === other.failingSinceMs
  );
}
