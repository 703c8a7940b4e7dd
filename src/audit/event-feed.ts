// Reads the rows that are added to the audit log: once for all readers, and only while there are readers.
import { resourceExhausted } from "../kernel/errors.js";
import { Shares } from "../kernel/shares.js";
import type { AuditEventRow } from "../store/audit/events.js";
import type { Store } from "../store/store.js";
import type { Tx } from "../store/transaction.js";

export interface EventFeedDeps {
  readonly store: Pick<Store, "read" | "lateCommitMs">;
  readonly onProblem: (problem: string, error?: unknown) => void;
  /** How often the log is read, in milliseconds. */
  readonly pollMs?: number;
  /** Monotonic time in milliseconds. */
  readonly monotonic?: () => number;
}

export interface EventReader {
  /** Resolves when every row that is added from then on will be read, and when `gone` aborts. */
  begin(gone: AbortSignal): Promise<void>;
  /**
   * Resolves with the rows since the last call, as soon as there are any; with none after `waitMs`, and when `gone`
   * aborts.
   *
   * @throws ApiError RESOURCE_EXHAUSTED when the reader was too slow and rows were lost
   */
  next(waitMs: number, gone: AbortSignal): Promise<readonly AuditEventRow[]>;
  /** Must be called when the reader reads no more. */
  close(): void;
}

export interface EventFeed {
  /** Follows the rows of an organisation, or of all where undefined, that `matches` accepts, from now on. */
  follow(rootUid: string | undefined, matches: (row: AuditEventRow) => boolean): EventReader;
}

const POLL_MS = 1_000;
/** Rows of one read: half of what may wait for a reader, so that none that keeps up loses some of a burst. */
const ROWS_PER_READ = 500;
/** How soon the log is read again when a read did not reach its end, in milliseconds. */
const BURST_POLL_MS = 50;
/** Rows that wait for one reader. */
const MAX_QUEUED = 1_000;
/** How many missing ids are looked up again. */
const MAX_MISSING = 1_024;

interface Batch {
  /** All rows up to this id are known. */
  readonly floor: number;
  /** Later rows that existed before the first reader. */
  readonly known: readonly AuditEventRow[];
  /** Rows that were missing. */
  readonly late: readonly AuditEventRow[];
  readonly added: readonly AuditEventRow[];
}

interface Follower {
  readonly matches: (row: AuditEventRow) => boolean;
  queue: AuditEventRow[];
  overflown: boolean;
  wake: () => void;
}

/** Creates the feed. It reads nothing until it is followed. */
export function createEventFeed(deps: EventFeedDeps): EventFeed {
  const { store, onProblem, pollMs = POLL_MS, monotonic = () => performance.now() } = deps;
  const followers = new Map<string | undefined, Set<Follower>>();
  /** The highest id that was read; undefined while nobody follows. */
  let highestId: number | undefined;
  /**
   * Ids that may still be committed, and when each was first missed: writers commit in another order than they begin.
   */
  const missing = new Map<number, number>();
  let timer: NodeJS.Timeout | undefined;
  let polling = false;

  async function poll(): Promise<void> {
    polling = true;
    let isAtEnd = true;
    try {
      const batch = await store.read((tx) => readNew(tx));
      const isFirst = highestId === undefined;
      noteBatch(batch);
      isAtEnd = batch.added.length < ROWS_PER_READ;
      if (isFirst) for (const ofRoot of followers.values()) for (const { wake } of ofRoot) wake();
      for (const row of [...batch.late, ...batch.added]) deliver(row);
    } catch (error) {
      onProblem("the audit log could not be read for streams of events", error);
    }
    polling = false;
    if (followers.size > 0) timer = setTimeout(poll, isAtEnd ? pollMs : Math.min(pollMs, BURST_POLL_MS));
    else stop();
  }

  // A unit of work may run again, so it changes nothing here.
  async function readNew({ auditEvents }: Tx): Promise<Batch> {
    if (highestId === undefined) {
      const startId = await auditEvents.lastId();
      // Some of the last ids may belong to transactions that have not ended.
      const floor = store.lateCommitMs === 0 ? startId : Math.max(0, startId - MAX_MISSING);
      return { floor, known: await auditEvents.listAfter(floor, MAX_MISSING), late: [], added: [] };
    }
    const late = missing.size === 0 ? [] : await auditEvents.findByIds([...missing.keys()]);
    return { floor: highestId, known: [], late, added: await auditEvents.listAfter(highestId, ROWS_PER_READ) };
  }

  function noteBatch({ floor, known, late, added }: Batch): void {
    const rows = [...known, ...added];
    highestId = rows.at(-1)?.id ?? floor;
    for (const { id } of late) missing.delete(id);
    if (store.lateCommitMs === 0) return;
    noteMissing(rows, floor);
    forgetMissing();
  }

  function noteMissing(rows: readonly AuditEventRow[], afterId: number): void {
    let expected = afterId + 1;
    const nowMs = monotonic();
    for (const { id } of rows) {
      for (expected = Math.max(expected, id - MAX_MISSING); expected < id; expected++) missing.set(expected, nowMs);
      expected = id + 1;
    }
  }

  // Rows of transactions that were rolled back never appear.
  function forgetMissing(): void {
    const nowMs = monotonic();
    for (const [id, sinceMs] of missing) {
      if (missing.size <= MAX_MISSING && nowMs - sinceMs <= store.lateCommitMs) return;
      missing.delete(id);
    }
  }

  function deliver(row: AuditEventRow): void {
    for (const follower of [...(followers.get(row.rootUid) ?? []), ...(followers.get(undefined) ?? [])]) {
      if (follower.overflown || !follower.matches(row)) continue;
      if (follower.queue.length === MAX_QUEUED) {
        follower.overflown = true;
        follower.queue = [];
      } else follower.queue.push(row);
      follower.wake();
    }
  }

  function stop(): void {
    clearTimeout(timer);
    timer = undefined;
    if (polling) return;
    highestId = undefined;
    missing.clear();
  }

  return {
    follow(rootUid, matches) {
      const follower: Follower = { matches, queue: [], overflown: false, wake: () => {} };
      const ofRoot = followers.get(rootUid) ?? new Set();
      followers.set(rootUid, ofRoot.add(follower));
      if (timer === undefined && !polling) void poll();
      return {
        async begin(gone) {
          while (highestId === undefined && !gone.aborted) await waitFor(follower, pollMs, gone);
        },
        async next(waitMs, gone) {
          if (follower.queue.length === 0 && !follower.overflown && !gone.aborted)
            await waitFor(follower, waitMs, gone);
          if (follower.overflown) throw resourceExhausted("events occur faster than this stream is read");
          const rows = follower.queue;
          follower.queue = [];
          return rows;
        },
        close() {
          ofRoot.delete(follower);
          if (ofRoot.size === 0 && followers.get(rootUid) === ofRoot) followers.delete(rootUid);
          if (followers.size === 0) stop();
        },
      };
    },
  };
}

function waitFor(follower: Follower, waitMs: number, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      gone.removeEventListener("abort", wake);
      follower.wake = () => {};
      resolve();
    };
    const timer = setTimeout(wake, waitMs);
    gone.addEventListener("abort", wake, { once: true });
    follower.wake = wake;
  });
}

/** Limits the streams of events: each holds memory and a connection for as long as its caller likes. */
export type EventStreams = Shares<"identity" | "organisation" | "founder">;

/**
 * Creates the limit. An organisation has a fifth, and so have all organisations that one person created: callers of five
 * would have to agree to leave nothing.
 */
export function createEventStreams(
  total = 1_000,
  each = { identity: 50, organisation: 200, founder: 200 },
): EventStreams {
  return new Shares("streams of audit events", { total, each });
}
