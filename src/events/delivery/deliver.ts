// The background job that delivers events: it reads what the audit log has sealed, sends it to the sinks of subscriptions, and
// writes what came of it (docs/adr/0022-event-delivery.md). Sinks answer first, and then results are written: what is sent
// when a node ends is sent again.
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
import { SubscriptionQueue } from "./subscription-queue.js";

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
const POSITIONS_MS = 1_000;
const ADOPT_MS = 5_000;
/** How long results of requests in flight are awaited when the service stops, in milliseconds. */
const STOP_MS = 3_000;
const BATCH_ENTRIES = 128;
/** How many times entries are read in one unit of work. */
const MAX_READS = 100;
const ADOPTED = 100;
/** How long dead letters are kept, and how often and in what portions those are deleted that are older. */
const DEAD_LETTERS_MS = 30 * 24 * 3_600_000;
const SWEEP_MS = 3_600_000;
const SWEPT = 500;

/** Creates the job. */
export function createDelivery(deps: DeliveryDeps): Job {
  const { store, clock, events, send, onProblem, counts, random = Math.random } = deps;
  const queues = new Map<string, SubscriptionQueue>();
  /** Events that were taken, until their results are known. */
  const flights = new Set<Promise<void>>();
  /** Subscriptions that have an event to send and wait for a slot. */
  const waits = new Set<SubscriptionQueue>();
  /** Ends requests that this node may not send any more. */
  let lost = createLost();
  let fence = -1;
  let isStopping = false;
  let passes = -1;
  let positionsMs = Number.NEGATIVE_INFINITY;
  let checkedPasses = -1;
  let checkedMs = Number.NEGATIVE_INFINITY;
  let adoptMs = Number.NEGATIVE_INFINITY;
  let isReadDue = false;
  let isReported = false;
  let delivered = 0;
  const reportedGaps = new Set<string>();

  // Where it says no, nothing is written: neither the lease nor a record of the job.
  async function hasWork(): Promise<boolean> {
    if (flights.size > 0 || [...queues.values()].some(({ hasMoved }) => hasMoved)) return true;
    const now = performance.now();
    return store.read(async (tx) => {
      const seen = (await tx.auditChain.findSealer())?.passes ?? 0;
      const isCheckDue = now - checkedMs >= POSITIONS_MS;
      // Nothing was sealed since the last look where the sealer has made no pass.
      if ((seen !== checkedPasses || isCheckDue) && (await tx.eventPositions.listBehind()).length > 0) return true;
      checkedPasses = seen;
      if (!isCheckDue) return false;
      if ((await tx.eventPositions.listDue(clock())).length > 0) return true;
      checkedMs = now;
      return now - adoptMs >= ADOPT_MS && (await tx.eventPositions.listMissing(1)).length > 0;
    });
  }

  async function run(jobRun: JobRun): Promise<number> {
    if (jobRun.fence !== fence) forgetAll(jobRun.fence);
    isStopping = false;
    const beganMs = performance.now();
    // A run that finds nothing ends at once, and one that found something looks for more.
    let busyMs = Number.NEGATIVE_INFINITY;
    const before = delivered;
    try {
      await keepUp(jobRun);
      while (!jobRun.signal.aborted) {
        await readWork();
        startAll();
        if (hasDirty()) await flush(jobRun, false);
        const now = performance.now();
        if (flights.size > 0 || hasReady()) busyMs = now;
        if (now - beganMs >= MAX_RUN_MS || now - busyMs >= IDLE_MS) break;
        await pause(jobRun.signal);
      }
      if (jobRun.signal.aborted) await landFlights();
      await flush(jobRun, true);
      if (jobRun.signal.aborted) forgetAll(-1);
    } catch (error) {
      // Another node may deliver already.
      if (error instanceof LeaseLostError) forgetAll(-1);
      throw error;
    }
    return delivered - before;
  }

  function forgetAll(next: number): void {
    lost.abort();
    lost = createLost();
    queues.clear();
    positionsMs = Number.NEGATIVE_INFINITY;
    passes = -1;
    fence = next;
  }

  // Subscriptions of an older version have no position. What happened before they get one was never promised to them.
  async function keepUp({ write }: JobRun): Promise<void> {
    const now = performance.now();
    if (now - adoptMs >= ADOPT_MS) {
      adoptMs = now;
      for (let count = ADOPTED; count === ADOPTED; ) {
        const missing = await store.read((tx) => tx.eventPositions.listMissing(ADOPTED));
        if (missing.length > 0) await write((tx) => beginAll(tx, missing));
        count = missing.length;
      }
    }
  }

  async function beginAll(tx: Tx, uids: readonly string[]): Promise<void> {
    for (const uid of uids) await beginPosition(tx, uid);
  }

  async function readWork(): Promise<void> {
    const now = performance.now();
    const nowMs = clock();
    await store.read(async (tx) => {
      const seen = (await tx.auditChain.findSealer())?.passes ?? 0;
      if (seen !== passes || now - positionsMs >= POSITIONS_MS) {
        for (const position of await tx.eventPositions.listBehind()) {
          const known = queues.get(position.subscriptionUid);
          if (known?.revision === position.revision) known.headSeq = position.headSeq;
          else await load(tx, position);
        }
        passes = seen;
      }
      if (now - positionsMs >= POSITIONS_MS) {
        positionsMs = now;
        await dropChanged(tx);
        for (const position of await tx.eventPositions.listDue(nowMs)) {
          if (!queues.has(position.subscriptionUid)) await load(tx, position);
        }
      }
      await readEntries(tx, nowMs);
    });
  }

  // Of a subscription that a caller has suspended, deleted or moved back nothing more is sent.
  async function dropChanged(tx: Tx): Promise<void> {
    if (queues.size === 0) return;
    const revisions = await tx.eventPositions.listRevisions();
    for (const [uid, { revision }] of queues) if (revisions.get(uid) !== revision) queues.delete(uid);
  }

  async function load(tx: Tx, position: SubscribedPosition): Promise<void> {
    const uid = position.subscriptionUid;
    const queue = new SubscriptionQueue(position, await tx.eventDeliveries.listWaiting(uid), random);
    queue.checkBacklog();
    queues.set(uid, queue);
  }

  // Subscriptions of an organisation mostly stand at the same entry, so it is read once for all of them.
  async function readEntries(tx: Tx, nowMs: number): Promise<void> {
    const read = new Map<string, readonly SealedRow[]>();
    isReadDue = false;
    for (const [uid, queue] of [...queues]) {
      if (queue.readSeq >= queue.headSeq || !queue.hasRoom) continue;
      // The rest follows, so that other calls need not wait.
      if (read.size >= MAX_READS) {
        isReadDue = true;
        return;
      }
      queues.delete(uid);
      queues.set(uid, queue);
      const { rootUid, readSeq } = queue;
      const key = `${rootUid} ${readSeq}`;
      const entries = read.get(key) ?? (await tx.auditChain.listEntries(rootUid, readSeq, BATCH_ENTRIES));
      read.set(key, entries);
      reportGap(queue, entries);
      for (const { seq, row } of entries) {
        if (!queue.hasRoom) break;
        queue.readSeq = seq;
        if (row === null || !events.matches(row, queue.groupUid)) continue;
        queue.add({ seq, subjectUid: row.subjectUid, type: row.type }, nowMs);
      }
      isReadDue ||= queue.readSeq < queue.headSeq && queue.hasRoom;
    }
  }

  // Old rows are kept until all subscriptions have passed them, so this happens only to a log that was changed.
  function reportGap({ uid, rootUid, readSeq }: SubscriptionQueue, [first]: readonly SealedRow[]): void {
    if (first === undefined || first.seq === readSeq + 1 || reportedGaps.has(uid)) return;
    reportedGaps.add(uid);
    onProblem(`the subscription ${uid} misses events: the audit log of ${rootUid} begins at entry ${first.seq}`);
  }

  function startAll(): void {
    for (const queue of queues.values()) start(queue);
  }

  // A subscription waits for one slot at a time. What waits is not taken yet, and not counted: organisations that wait get
  // slots in turns, and their subscriptions.
  function start(queue: SubscriptionQueue): void {
    if (isStopping || waits.has(queue) || !queue.hasNext(clock())) return;
    waits.add(queue);
    const flight = deliver(queue, () => flights.add(flight)).finally(() => flights.delete(flight));
  }

  async function deliver(queue: SubscriptionQueue, begin: () => void): Promise<void> {
    const { signal } = lost;
    const isCurrent = () => !signal.aborted && !isStopping && queues.get(queue.uid) === queue;
    let seq: number | undefined;
    let timeMs = 0;
    const take = async () => {
      waits.delete(queue);
      // While it waited, a caller may have changed the subscription.
      seq = isCurrent() ? queue.takeNext(clock()) : undefined;
      if (seq === undefined) throw new NothingToSendError();
      begin();
      start(queue);
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
      isReported = false;
      // A sink that may not be reached is rejected before there is a slot. Its event was still tried.
      if (seq === undefined && attempt.kind !== "busy" && isCurrent()) seq = queue.takeNext(clock());
      if (seq === undefined) return queue.postpone(clock());
      queue.settle(seq, attempt, clock());
      if (attempt.kind === "busy") return;
      if (counts) counts.attempts[attempt.kind]++;
      if (attempt.kind === "accepted") {
        delivered++;
        counts?.seconds.observe(Math.max(0, clock() - timeMs) / 1_000);
      }
    } catch (error) {
      if (error instanceof NothingToSendError) return;
      if (seq === undefined) queue.postpone(clock());
      else queue.settle(seq, { kind: "busy", status: 0, error: "" }, clock());
      if (!isReported) onProblem("events could not be read and sent, and will be tried again", error);
      isReported = true;
    } finally {
      waits.delete(queue);
      // The next one of the same subscription need not wait for the next tick.
      if (isCurrent()) start(queue);
    }
  }

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

  function hasDirty(): boolean {
    for (const queue of queues.values()) if (queue.isDirty) return true;
    return false;
  }

  // Whether an event can be sent now. What waits for its time is found by the statement for due events.
  function hasReady(): boolean {
    const nowMs = clock();
    return isReadDue || [...queues.values()].some((queue) => (queue.nextTimeMs() ?? nowMs + 1) <= nowMs);
  }

  async function flush({ write }: JobRun, isLast: boolean): Promise<void> {
    const dirty = [...queues.values()].filter((queue) => queue.isDirty || (isLast && queue.hasMoved));
    const taken = dirty.map((queue) => ({ queue, changes: queue.takeChanges() }));
    if (taken.length > 0) {
      let changed: ReadonlySet<SubscriptionQueue>;
      try {
        changed = await write((tx) => writeAll(tx, taken));
      } catch (error) {
        for (const { queue, changes } of taken) queue.keep(changes.seqs);
        throw error;
      }
      for (const { queue, changes } of taken) {
        queue.wrote(changes);
        // A caller has changed it, which is read anew.
        if (changed.has(queue) || queue.isSuspended) queues.delete(queue.uid);
      }
    }
    for (const queue of queues.values()) {
      if (queue.isEmpty && queue.readSeq >= queue.headSeq) queues.delete(queue.uid);
    }
  }

  // Returns those that a caller has changed, of which nothing is written.
  async function writeAll(
    tx: Tx,
    taken: readonly {
      readonly queue: SubscriptionQueue;
      readonly changes: ReturnType<SubscriptionQueue["takeChanges"]>;
    }[],
  ): Promise<ReadonlySet<SubscriptionQueue>> {
    const changed = new Set<SubscriptionQueue>();
    for (const { queue, changes } of taken) {
      const { uid: subscriptionUid, revision } = queue;
      if (!(await tx.eventPositions.advance({ subscriptionUid, revision, ...changes.position }))) {
        changed.add(queue);
        continue;
      }
      for (const row of changes.rows) await tx.eventDeliveries.put(row);
      for (const seq of changes.removed) await tx.eventDeliveries.delete(subscriptionUid, seq);
      if (changes.position.state === "suspended") await tx.eventDeliveries.hold(subscriptionUid);
    }
    return changed;
  }

  async function pause(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, isReadDue ? 0 : TICK_MS);
      signal.addEventListener("abort", end, { once: true });
    });
  }

  async function landFlights(): Promise<void> {
    isStopping = true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, STOP_MS);
    });
    await Promise.race([Promise.allSettled([...flights]), late]);
    clearTimeout(timer);
  }

  return {
    name: DELIVERY_JOB,
    problem: "events could not be delivered",
    intervalMs: INTERVAL_MS,
    maxBackoffMs: 5_000,
    hasWork,
    run,
  };
}

/** There is no event to send any more. */
class NothingToSendError extends Error {}

function createLost(): AbortController {
  const lost = new AbortController();
  // All requests in flight listen.
  setMaxListeners(0, lost.signal);
  return lost;
}

/** Creates the job that deletes old dead letters. */
export function createDeadLetterSweep(clock: Clock): Job {
  return {
    name: "event-dead-letters",
    problem: "old dead letters of events could not be deleted",
    intervalMs: SWEEP_MS,
    waitsAfterClockJump: true,
    async run({ write, signal }) {
      const beforeMs = clock() - DEAD_LETTERS_MS;
      let deleted = 0;
      for (let count = SWEPT; count === SWEPT && !signal.aborted; deleted += count) {
        count = await write((tx) => tx.eventDeliveries.sweepDead(beforeMs, SWEPT));
      }
      return deleted;
    },
  };
}
