// The background job that delivers events: it reads what the audit log has sealed, sends it to the sinks of subscriptions, and
// writes the outcomes (docs/adr/0022-event-delivery.md). It writes them after the sinks have answered: what is in flight when a
// node ends is sent again. Success leaves no row: the position moves past the event.
//
//              a run begins              the run must end
//   between ────────────────> sending ────────────────────> settling
//     runs <────────────────   │   ▲                           │
//      │   no work, MAX_RUN_MS     │ the next run begins       │ all responses are in, or SETTLE_MS are over
//      │   are over, or an error   │                           │
//      └──────────────────────> stopped <──────────────────────┘
//        the lease is lost
//
//   between runs   responses are recorded, and then the next event of their subscription is sent
//   sending        each tick reads the log, sends what may be sent, and writes the outcomes
//   settling       sends nothing more
//   stopped        requests that have no response are aborted, and the queues are discarded
//
// An event ends undelivered where
//   - it does not match the subscription, or the log has lost its row: #readEntries passes it and reports a lost row;
//   - it cannot be built from the log: #deliver gives it up;
//   - its sink does not accept it within a day of the first failure: SubscriptionQueue makes it a dead letter;
//   - a caller moves the position past it (control.ts).
// Dead letters, suspensions and lost rows are logged with the subscription. docs/events.md#why-an-event-has-not-arrived is what
// callers see of it.
//
// The queue of a subscription decides which of its events may be sent, and when (subscription-queue.ts). sender.ts makes one
// request. control.ts has what callers change, such as a suspension: it is read here, and never overwritten.
import { setMaxListeners } from "node:events";
import type { Job, JobRun } from "../../jobs/jobs.js";
import { LeaseLostError } from "../../jobs/lease.js";
import type { Histogram } from "../../kernel/histogram.js";
import type { Clock } from "../../kernel/time.js";
import type { SealedRow } from "../../store/audit/chain.js";
import type { SubscribedPosition } from "../../store/events/positions.js";
import type { Store } from "../../store/store.js";
import type { StoredAuditRow } from "../../store/tables/audit.js";
import type { Tx } from "../../store/transaction.js";
import type { CloudEvents } from "../cloud-event.js";
import { beginPosition } from "./control.js";
import type { Attempt, Sender } from "./sender.js";
import { type QueueChanges, SubscriptionQueue } from "./subscription-queue.js";

export interface DeliveryDeps {
  readonly store: Pick<Store, "read">;
  readonly clock: Clock;
  readonly events: CloudEvents;
  readonly send: Sender["send"];
  readonly onProblem: (problem: string, error?: unknown) => void;
  readonly counts?: DeliveryCounts;
  /** From 0 to below 1; replaced in tests. */
  readonly random?: () => number;
}

/** What a node has delivered, for metrics. */
export interface DeliveryCounts {
  readonly attempts: Record<Exclude<Attempt["kind"], "busy">, number>;
  /** Events that became dead letters. */
  deadLetters: number;
  /** Times from a change to the response of the sink, in seconds. */
  readonly seconds: Histogram;
}

export const DELIVERY_JOB = "event-delivery";

/** How often a node without work looks for some, and one with work reads and writes, in milliseconds. */
const INTERVAL_MS = 200;
const TICK_MS = 100;
/** How long a run may last, and after how long without work it ends, in milliseconds. */
const MAX_RUN_MS = 20_000;
const IDLE_MS = 1_000;
/** How often positions are read although the log has nothing new, because callers may have changed them. */
const POSITIONS_INTERVAL_MS = 1_000;
/** How often subscriptions without a position are looked for, and how many are read at a time. */
const MISSING_POSITIONS_INTERVAL_MS = 5_000;
const MISSING_POSITIONS_BATCH = 100;
/** How long responses to requests in flight are awaited when the run must end, in milliseconds. */
const SETTLE_MS = 3_000;
const BATCH_ENTRIES = 128;
/** How many times entries are read in one unit of work. */
const MAX_READS = 100;
/** How long dead letters are kept, and how often and in what portions those are deleted that are older. */
const DEAD_LETTER_LIFE_MS = 30 * 24 * 3_600_000;
const SWEEP_INTERVAL_MS = 3_600_000;
const SWEEP_BATCH = 500;
/** No fencing number: the next run discards all queues. */
const NO_FENCE = -1;

/** Creates the job. */
export function createDelivery(deps: DeliveryDeps): Job {
  const delivery = new EventDelivery(deps);
  return {
    name: DELIVERY_JOB,
    problem: "events could not be delivered",
    intervalMs: INTERVAL_MS,
    maxBackoffMs: 5_000,
    hasWork: () => delivery.hasWork(),
    run: (jobRun) => delivery.run(jobRun),
  };
}

/** The queues of all subscriptions that have events before them, and the requests to their sinks. */
class EventDelivery {
  readonly #deps: DeliveryDeps;
  readonly #random: () => number;
  readonly #queues = new Map<string, SubscriptionQueue>();
  /** Requests that have taken an event, until its outcome is recorded. */
  readonly #inFlight = new Set<Promise<void>>();
  /** Subscriptions that have an event to send and wait for a slot. */
  readonly #waitingForSlot = new Set<SubscriptionQueue>();
  /** Subscriptions of which it is reported that the log has lost events. */
  readonly #subscriptionsWithGap = new Set<string>();
  #state: "between runs" | "sending" | "settling" | "stopped" = "between runs";
  /** The fencing number of the queues: another run may not go on with them. */
  #fence = NO_FENCE;
  /** Aborts requests that this node may not send any more. */
  #abortController = createAbortController();
  /** How many passes the sealer had made when positions were last read, and when all of them were. */
  #readPasses = -1;
  #positionsReadMs = Number.NEGATIVE_INFINITY;
  /** The same of the last look for work that found none. */
  #checkedPasses = -1;
  #positionsCheckedMs = Number.NEGATIVE_INFINITY;
  #missingReadMs = Number.NEGATIVE_INFINITY;
  #hasMoreToRead = false;
  #isProblemReported = false;
  #delivered = 0;

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
    this.#random = deps.random ?? Math.random;
  }

  // Where it says no, nothing is written: neither the lease nor a record of the job.
  async hasWork(): Promise<boolean> {
    if (this.#inFlight.size > 0) return true;
    if ([...this.#queues.values()].some(({ hasUnwrittenChanges }) => hasUnwrittenChanges)) return true;
    const { store, clock } = this.#deps;
    const now = performance.now();
    return store.read(async (tx) => {
      const passes = (await tx.auditChain.findSealer())?.passes ?? 0;
      const isCheckDue = now - this.#positionsCheckedMs >= POSITIONS_INTERVAL_MS;
      // Nothing was sealed since the last look where the sealer has made no pass.
      const mayBeBehind = passes !== this.#checkedPasses || isCheckDue;
      if (mayBeBehind && (await tx.eventPositions.listBehind()).length > 0) return true;
      this.#checkedPasses = passes;
      if (!isCheckDue) return false;
      if ((await tx.eventPositions.listDue(clock())).length > 0) return true;
      this.#positionsCheckedMs = now;
      const isMissingDue = now - this.#missingReadMs >= MISSING_POSITIONS_INTERVAL_MS;
      return isMissingDue && (await tx.eventPositions.listMissing(1)).length > 0;
    });
  }

  async run(jobRun: JobRun): Promise<number> {
    const { signal } = jobRun;
    if (jobRun.fence !== this.#fence) this.#discardQueues(jobRun.fence);
    this.#state = "sending";
    const startMs = performance.now();
    // A run that finds nothing ends at once, and one that found something looks for more.
    let lastWorkMs = Number.NEGATIVE_INFINITY;
    const deliveredBefore = this.#delivered;
    try {
      await this.#createMissingPositions(jobRun);
      while (!signal.aborted) {
        await this.#readLog();
        for (const queue of this.#queues.values()) this.#sendNext(queue);
        if (this.#isWriteDue()) await this.#writeChanges(jobRun, false);
        const now = performance.now();
        if (this.#inFlight.size > 0 || this.#canSendNow()) lastWorkMs = now;
        if (now - startMs >= MAX_RUN_MS || now - lastWorkMs >= IDLE_MS) break;
        await pause(signal, this.#hasMoreToRead ? 0 : TICK_MS);
      }
      if (signal.aborted) await this.#settle();
      await this.#writeChanges(jobRun, true);
      if (signal.aborted) this.#discardQueues(NO_FENCE);
    } catch (error) {
      // Another node may deliver already.
      if (error instanceof LeaseLostError) this.#discardQueues(NO_FENCE);
      throw error;
    } finally {
      this.#state = this.#maySend ? "between runs" : "stopped";
    }
    return this.#delivered - deliveredBefore;
  }

  get #maySend(): boolean {
    return this.#state === "between runs" || this.#state === "sending";
  }

  // The outcomes of requests that take longer are not recorded, and their events are sent again.
  async #settle(): Promise<void> {
    this.#state = "settling";
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, SETTLE_MS);
    });
    await Promise.race([Promise.allSettled([...this.#inFlight]), late]);
    clearTimeout(timer);
  }

  #discardQueues(nextFence: number): void {
    this.#abortController.abort();
    this.#abortController = createAbortController();
    this.#queues.clear();
    this.#positionsReadMs = Number.NEGATIVE_INFINITY;
    this.#readPasses = -1;
    this.#fence = nextFence;
  }

  // Subscriptions of an older version have no position. What happened before they get one was never promised to them.
  async #createMissingPositions({ write }: JobRun): Promise<void> {
    const now = performance.now();
    if (now - this.#missingReadMs < MISSING_POSITIONS_INTERVAL_MS) return;
    this.#missingReadMs = now;
    for (let count = MISSING_POSITIONS_BATCH; count === MISSING_POSITIONS_BATCH; ) {
      const missing = await this.#deps.store.read((tx) => tx.eventPositions.listMissing(MISSING_POSITIONS_BATCH));
      if (missing.length > 0) {
        await write(async (tx) => {
          for (const uid of missing) await beginPosition(tx, uid);
        });
      }
      count = missing.length;
    }
  }

  async #readLog(): Promise<void> {
    const { store, clock } = this.#deps;
    const now = performance.now();
    const nowMs = clock();
    await store.read(async (tx) => {
      const passes = (await tx.auditChain.findSealer())?.passes ?? 0;
      if (passes !== this.#readPasses || now - this.#positionsReadMs >= POSITIONS_INTERVAL_MS) {
        for (const position of await tx.eventPositions.listBehind()) {
          const known = this.#queues.get(position.subscriptionUid);
          if (known?.revision === position.revision) known.headSeq = position.headSeq;
          else await this.#loadQueue(tx, position);
        }
        this.#readPasses = passes;
      }
      if (now - this.#positionsReadMs >= POSITIONS_INTERVAL_MS) {
        this.#positionsReadMs = now;
        await this.#dropChangedQueues(tx);
        for (const position of await tx.eventPositions.listDue(nowMs)) {
          if (!this.#queues.has(position.subscriptionUid)) await this.#loadQueue(tx, position);
        }
      }
      await this.#readEntries(tx, nowMs);
    });
  }

  // Of a subscription that a caller has suspended, deleted or moved back nothing more is sent.
  async #dropChangedQueues(tx: Tx): Promise<void> {
    if (this.#queues.size === 0) return;
    const revisions = await tx.eventPositions.listRevisions();
    for (const [uid, { revision }] of this.#queues) {
      if (revisions.get(uid) !== revision) this.#queues.delete(uid);
    }
  }

  async #loadQueue(tx: Tx, position: SubscribedPosition): Promise<void> {
    const uid = position.subscriptionUid;
    const queue = new SubscriptionQueue(position, await tx.eventDeliveries.listWaiting(uid), this.#random);
    queue.checkBacklog();
    this.#queues.set(uid, queue);
  }

  // Subscriptions of an organisation mostly stand at the same entry, so it is read once for all of them.
  async #readEntries(tx: Tx, nowMs: number): Promise<void> {
    const { events } = this.#deps;
    const read = new Map<string, readonly SealedRow[]>();
    this.#hasMoreToRead = false;
    for (const [uid, queue] of [...this.#queues]) {
      if (queue.readSeq >= queue.headSeq || !queue.hasRoom) continue;
      // The rest follows, so that other calls need not wait.
      if (read.size >= MAX_READS) {
        this.#hasMoreToRead = true;
        return;
      }
      this.#queues.delete(uid);
      this.#queues.set(uid, queue);
      const { rootUid, readSeq } = queue;
      const key = `${rootUid} ${readSeq}`;
      const entries = read.get(key) ?? (await tx.auditChain.listEntries(rootUid, readSeq, BATCH_ENTRIES));
      read.set(key, entries);
      for (const { seq, row } of entries) {
        if (!queue.hasRoom) break;
        if (row === null || seq !== queue.readSeq + 1) this.#reportGap(queue, seq);
        queue.readSeq = seq;
        if (row === null || !events.matches(row, queue.groupUid)) continue;
        queue.add({ seq, subjectUid: row.subjectUid, type: row.type }, nowMs);
      }
      this.#hasMoreToRead ||= queue.readSeq < queue.headSeq && queue.hasRoom;
    }
  }

  // Old rows are kept until all subscriptions have passed them, so this happens only to a log that was changed.
  #reportGap({ uid, rootUid, readSeq }: SubscriptionQueue, seq: number): void {
    if (this.#subscriptionsWithGap.has(uid)) return;
    this.#subscriptionsWithGap.add(uid);
    const gap = `the audit log of ${rootUid} has lost rows after entry ${readSeq}, up to entry ${seq}`;
    this.#deps.onProblem(`the subscription ${uid} misses events: ${gap}`);
  }

  // A subscription waits for one slot at a time. What waits is not taken yet, and not counted: organisations that wait get
  // slots in turns, and their subscriptions.
  #sendNext(queue: SubscriptionQueue): void {
    if (!this.#maySend || this.#waitingForSlot.has(queue) || !queue.hasNext(this.#deps.clock())) return;
    this.#waitingForSlot.add(queue);
    const request: Promise<void> = this.#deliver(queue, () => this.#inFlight.add(request)).finally(() =>
      this.#inFlight.delete(request),
    );
  }

  async #deliver(queue: SubscriptionQueue, onTaken: () => void): Promise<void> {
    const { store, clock, events, send, onProblem, counts } = this.#deps;
    const { signal } = this.#abortController;
    const isCurrent = () => !signal.aborted && this.#maySend && this.#queues.get(queue.uid) === queue;
    let seq: number | undefined;
    let timeMs = 0;
    const take = async () => {
      this.#waitingForSlot.delete(queue);
      // While it waited, a caller may have changed the subscription.
      seq = isCurrent() ? queue.takeNext(clock()) : undefined;
      if (seq === undefined) throw new NothingToSendError();
      onTaken();
      this.#sendNext(queue);
      const found = await store.read((tx) => readEvent(tx, queue.rootUid, seq ?? 0));
      if (typeof found === "string") {
        queue.giveUp(seq, found, clock());
        throw new NothingToSendError();
      }
      timeMs = found.row.timeMs;
      const event = events.build(found.row, found.body);
      if (typeof event !== "string") return event;
      queue.giveUp(seq, event, clock());
      throw new NothingToSendError();
    };
    try {
      const attempt = await send(queue, take, { signal });
      if (signal.aborted) return;
      this.#isProblemReported = false;
      // An address that is not allowed fails before an event is taken. It counts as a failed attempt of the next event, so
      // that the subscription backs off.
      if (seq === undefined && attempt.kind !== "busy" && isCurrent()) seq = queue.takeNext(clock());
      if (seq === undefined) return queue.pauseShortly(clock());
      queue.recordOutcome(seq, attempt, clock());
      if (attempt.kind === "busy") return;
      if (counts) counts.attempts[attempt.kind]++;
      if (attempt.kind === "accepted") {
        this.#delivered++;
        counts?.seconds.observe(Math.max(0, clock() - timeMs) / 1_000);
      }
    } catch (error) {
      if (error instanceof NothingToSendError) return;
      if (seq === undefined) queue.pauseShortly(clock());
      else queue.recordOutcome(seq, { kind: "busy", status: 0, error: "" }, clock());
      if (!this.#isProblemReported) onProblem("events could not be read and sent, and will be tried again", error);
      this.#isProblemReported = true;
    } finally {
      this.#waitingForSlot.delete(queue);
      // The next one of the same subscription need not wait for the next tick.
      if (isCurrent()) this.#sendNext(queue);
    }
  }

  #isWriteDue(): boolean {
    for (const queue of this.#queues.values()) if (queue.isWriteDue) return true;
    return false;
  }

  // Whether an event can be sent now. What waits for its time is found by the statement for due events.
  #canSendNow(): boolean {
    const nowMs = this.#deps.clock();
    return (
      this.#hasMoreToRead || [...this.#queues.values()].some((queue) => (queue.nextTimeMs() ?? nowMs + 1) <= nowMs)
    );
  }

  async #writeChanges({ write }: JobRun, isLast: boolean): Promise<void> {
    const changed = [...this.#queues.values()].filter(
      (queue) => queue.isWriteDue || (isLast && queue.hasUnwrittenChanges),
    );
    const taken = changed.map((queue) => ({ queue, changes: queue.takeChanges() }));
    if (taken.length > 0) {
      let outdated: ReadonlySet<SubscriptionQueue>;
      try {
        outdated = await write((tx) => writeQueues(tx, taken));
      } catch (error) {
        for (const { queue, changes } of taken) queue.restoreChanges(changes);
        throw error;
      }
      for (const { queue, changes } of taken) {
        queue.confirmChanges(changes);
        const isOutdated = outdated.has(queue);
        if (!isOutdated) this.#reportLosses(queue, changes);
        // What a caller has changed is read anew, and a suspended subscription when a caller resumes it.
        if (isOutdated || queue.isSuspended) this.#queues.delete(queue.uid);
      }
    }
    for (const queue of this.#queues.values()) {
      if (queue.isEmpty && queue.readSeq >= queue.headSeq) this.#queues.delete(queue.uid);
    }
  }

  #reportLosses({ uid }: SubscriptionQueue, { position, rows }: QueueChanges): void {
    const { onProblem, counts } = this.#deps;
    const dead = rows.filter(({ deadTimeMs }) => deadTimeMs !== null);
    if (counts) counts.deadLetters += dead.length;
    const [first] = dead;
    if (first !== undefined) {
      const which = dead.length === 1 ? `entry ${first.seq}` : `${dead.length} events, such as entry ${first.seq}`;
      onProblem(`the subscription ${uid} has dead letters: ${which} of the audit log: ${first.lastError}`);
    }
    if (position.state === "suspended") onProblem(`the subscription ${uid} is suspended: ${position.suspendReason}`);
  }
}

/** There is no event to send any more. */
class NothingToSendError extends Error {}

function createAbortController(): AbortController {
  const controller = new AbortController();
  // All requests in flight listen.
  setMaxListeners(0, controller.signal);
  return controller;
}

/** Reads an event; returns why it cannot be sent where it is there no more. */
async function readEvent(
  tx: Tx,
  rootUid: string,
  seq: number,
): Promise<{ readonly row: StoredAuditRow; readonly body: string | undefined } | string> {
  const [entry] = await tx.auditChain.listEntries(rootUid, seq - 1, 1);
  if (entry?.seq !== seq || entry.row === null) return "the audit log no longer has the event";
  const { row } = entry;
  const body = (await tx.audit.readBodies([row])).get(row.id);
  return { row, body };
}

/** Writes changes of queues; returns the queues that a caller has changed, of which nothing is written. */
async function writeQueues(
  tx: Tx,
  taken: readonly { readonly queue: SubscriptionQueue; readonly changes: QueueChanges }[],
): Promise<ReadonlySet<SubscriptionQueue>> {
  const outdated = new Set<SubscriptionQueue>();
  for (const { queue, changes } of taken) {
    const { uid: subscriptionUid, revision } = queue;
    if (!(await tx.eventPositions.advance({ subscriptionUid, revision, ...changes.position }))) {
      outdated.add(queue);
      continue;
    }
    for (const row of changes.rows) await tx.eventDeliveries.put(row);
    for (const seq of changes.removed) await tx.eventDeliveries.delete(subscriptionUid, seq);
    if (changes.position.state === "suspended") await tx.eventDeliveries.hold(subscriptionUid);
  }
  return outdated;
}

/** Waits, at most until the signal. */
async function pause(signal: AbortSignal, ms: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
  });
}

/** Creates the job that deletes old dead letters. */
export function createDeadLetterSweep(clock: Clock): Job {
  return {
    name: "event-dead-letters",
    problem: "old dead letters of events could not be deleted",
    intervalMs: SWEEP_INTERVAL_MS,
    waitsAfterClockJump: true,
    async run({ write, signal }) {
      const beforeMs = clock() - DEAD_LETTER_LIFE_MS;
      let deleted = 0;
      for (let count = SWEEP_BATCH; count === SWEEP_BATCH && !signal.aborted; deleted += count) {
        count = await write((tx) => tx.eventDeliveries.sweepDead(beforeMs, SWEEP_BATCH));
      }
      return deleted;
    },
  };
}
