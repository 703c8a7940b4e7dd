// Fair queueing of requests among peers. When more requests wait than one tick of the event loop can take, the next one
// is of the peer with the least recent cost and the fewest open requests, so a peer with many requests delays only its
// own. Each tick also takes the request that has waited longest, so that none waits for ever.
//
// A queue that becomes empty again absorbs a burst. A standing queue, one that is never empty, delays every request
// without any benefit (CoDel, RFC 8289, section 3). It is kept short: a request that would wait too long is rejected
// when it arrives, and one that has waited too long is rejected later.
import { onTick } from "./tick.js";

/** The unit of fairness whose requests share one queue, usually an address. */
export interface Peer {
  readonly queue: QueuedTask[];
  /** How many of its requests have not ended. */
  open: number;
  /** What its requests have cost, in milliseconds of the event loop, with exponential decay. */
  spentMs: number;
  /** When {@link spentMs} was computed, by `performance.now()`. */
  atMs: number;
}

/** The handling of a request that is queued. */
export interface Task {
  run(): void;
  /** Gets what {@link run} throws; the tasks after it run all the same. */
  onError(error: unknown): void;
  /** Rejects the request instead of {@link run}. */
  reject?(): void;
}

interface QueuedTask {
  readonly task: Task;
  /** When it was queued, by `performance.now()`. */
  readonly sinceMs: number;
  /** How long it may wait in a standing queue before it is rejected, in milliseconds; infinite if it must not be. */
  readonly maxWaitMs: number;
}

/** How long the queue must not have been empty before it counts as standing, in milliseconds. */
const STANDING_MS = 200;
/**
 * How long it must have been empty before it no longer does, in milliseconds: a short pause of the callers does not end
 * it.
 */
const CLEAR_MS = 200;
/** No request is rejected while fewer than this wait: as many may arrive in one tick by chance. */
const MIN_WAITING = 32;
/** How many requests of one tick are rejected because they have waited too long. */
const MAX_REJECTED = 256;
/** How many peers are searched for one with more requests, whose last request is rejected instead. */
const MAX_LOOKS = 64;
/** After this wait, in milliseconds, one such request is taken in each tick, whatever its peer has cost. */
const MAX_WAIT_MS = 500;
/**
 * The same in a standing queue, where half of a tick is for such requests. By cost alone, a peer that was charged for a
 * pause of the process would wait until the others have cost as much.
 */
const MAX_FAIR_WAIT_MS = 20;
/** How long one tick takes requests before the event loop reads its sockets again, in milliseconds. */
const TICK_BUDGET_MS = 5;
/**
 * The same for a standing queue: more requests share a commit, and reading and rejecting others takes less of the time.
 */
const STANDING_BUDGET_MS = 20;
/**
 * While connections wait to be accepted, ticks take no requests for as long as a tick may take them, if the requests would
 * take longer than this, in milliseconds. libuv accepts one connection in each iteration of the event loop, so new
 * callers, health checks too, would otherwise wait for seconds.
 */
const ACCEPTING_BUDGET_MS = 1;
/** The least and the most requests that one tick takes, whatever they cost. */
const MIN_REQUESTS = 4;
const MAX_REQUESTS = 256;
/** The half-life of a peer's cost, in milliseconds. */
const HALF_LIFE_MS = 1_000;
/** The smoothing factor of the mean cost of a request, 0 to 1. */
const SMOOTHING = 0.25;
/** A peer whose cost has decayed below this is forgotten, in milliseconds. */
const NEGLIGIBLE_MS = 1;

/** Creates a peer that has cost nothing. */
export function createPeer(): Peer {
  return { queue: [], open: 0, spentMs: 0, atMs: 0 };
}

/** Whether a peer can be forgotten: its queue is empty and its cost has decayed. */
export function isIdlePeer(peer: Peer): boolean {
  return peer.queue.length === 0 && usageOf(peer, performance.now()) < NEGLIGIBLE_MS;
}

const ready = new Set<Peer>();
let waiting = 0;
/** How many of them may be rejected. Only these are compared with limits: there may be thousands of health checks. */
let waitingRejectable = 0;
/** Since when requests have been waiting at the end of every tick, by `performance.now()`; 0 when none waits. */
let waitingSinceMs = 0;
/** Since when none has been waiting, by `performance.now()`; 0 while some are. */
let clearSinceMs = 0;
/** Whether the queue is a standing queue, so that requests are rejected. */
let isStanding = false;
/** Whether a request was rejected since the last tick, so that an empty queue does not mean the end of the load. */
let isCut = false;
/** Whether a connection was accepted since the last tick; others may wait. */
let isAccepting = false;
/** Since when ticks have taken no requests for that reason, by `performance.now()`; 0 if they take requests. */
let pausedSinceMs = 0;
/** How long this tick may take requests, in milliseconds. */
let budgetMs = TICK_BUDGET_MS;
/** The moving average of what one request costs, in milliseconds. */
let costMs = 0.1;
/** The peers of the requests that the last tick took, one entry per request. */
let taken: Peer[] = [];

const schedule = onTick("requests", (lastTickMs) => {
  charge(lastTickMs);
  const nowMs = performance.now();
  budgetMs = TICK_BUDGET_MS;
  if (updateStanding(nowMs)) {
    rejectOverdue(nowMs);
    budgetMs = STANDING_BUDGET_MS;
  }
  const room = isPaused(nowMs) ? 0 : Math.min(MAX_REQUESTS, Math.max(MIN_REQUESTS, Math.floor(budgetMs / costMs)));
  if (waiting <= room) for (const peer of ready) while (peer.queue.length > 0) takeOne(peer);
  else if (room > 0) takeFairly(room);
  const takenMs = performance.now();
  if (waiting === 0 && !isCut) {
    waitingSinceMs = 0;
    if (clearSinceMs === 0) clearSinceMs = takenMs;
  } else {
    clearSinceMs = 0;
    if (waitingSinceMs === 0) waitingSinceMs = takenMs;
  }
  isCut = false;
  return waiting > 0;
});

// Whether this tick takes no requests, so that the event loop soon accepts the next connection.
function isPaused(nowMs: number): boolean {
  const isPause =
    isAccepting && waiting * costMs > ACCEPTING_BUDGET_MS && (pausedSinceMs === 0 || nowMs - pausedSinceMs < budgetMs);
  isAccepting = false;
  if (!isPause) pausedSinceMs = 0;
  else if (pausedSinceMs === 0) pausedSinceMs = nowMs;
  return isPause;
}

/**
 * Queues a request of a peer; it is taken in the next tick of the event loop or in a later one.
 *
 * @param maxWaitMs how long it may wait in a standing queue before it is rejected, in milliseconds. Unless it is infinite,
 *   the request may also be rejected for one of a peer with fewer requests.
 */
export function enqueue(peer: Peer, task: Task, maxWaitMs = Number.POSITIVE_INFINITY): void {
  const queued = { task, sinceMs: performance.now(), maxWaitMs };
  peer.queue.push(queued);
  waiting++;
  if (isRejectable(queued)) waitingRejectable++;
  ready.add(peer);
  schedule();
}

/** Notes that a connection was accepted: the next tick is short, because others may wait. */
export function noteConnection(): void {
  isAccepting = true;
}

/** Whether so few requests wait that none is rejected, whatever peer sends one more. */
export function hasTimeForAll(maxWaitMs: number): boolean {
  return waitingRejectable < MIN_WAITING || waitingRejectable * costMs <= Math.max(maxWaitMs, budgetMs);
}

/**
 * Whether there is time for one more request of a peer: in a standing queue, requests must be handled within
 * `maxWaitMs` at the rate of the last ticks. If there is none, the last request of a peer with more requests is
 * rejected instead, if there is such a peer.
 */
export function hasTimeFor(peer: Peer, maxWaitMs: number): boolean {
  if (hasTimeForAll(maxWaitMs)) return true;
  if (!updateStanding(performance.now())) return true;
  isCut = true;
  const queued = peer.queue.length + 1;
  // Peers that send about as much do not replace each other's requests: that would only take time.
  if (2 * queued * ready.size >= waiting) return false;
  let looks = 0;
  for (const other of ready) {
    if (other.queue.length > queued && isRejectable(other.queue.at(-1))) {
      rejectFrom(other, other.queue.pop());
      return true;
    }
    if (++looks === MAX_LOOKS) break;
  }
  return false;
}

function updateStanding(nowMs: number): boolean {
  if (isStanding) isStanding = clearSinceMs === 0 || nowMs - clearSinceMs <= CLEAR_MS;
  else isStanding = waitingSinceMs !== 0 && nowMs - waitingSinceMs > STANDING_MS;
  return isStanding;
}

// A burst may have been queued before the queue counted as standing.
function rejectOverdue(nowMs: number): void {
  let left = MAX_REJECTED;
  for (const peer of ready) {
    for (let first = peer.queue[0]; first !== undefined; first = peer.queue[0]) {
      if (nowMs - first.sinceMs <= first.maxWaitMs) break;
      if (left-- === 0) return;
      rejectFrom(peer, peer.queue.shift());
    }
  }
}

function rejectFrom(peer: Peer, queued: QueuedTask | undefined): void {
  if (queued === undefined) return;
  forgetQueued(peer, queued);
  try {
    queued.task.reject?.();
  } catch (error) {
    queued.task.onError(error);
  }
}

function forgetQueued(peer: Peer, queued: QueuedTask): void {
  if (peer.queue.length === 0) ready.delete(peer);
  waiting--;
  if (isRejectable(queued)) waitingRejectable--;
}

function isRejectable(queued: QueuedTask | undefined): boolean {
  return queued !== undefined && queued.maxWaitMs !== Number.POSITIVE_INFINITY;
}

// Takes the request of the peer with the least load: its recent cost and what its open requests are expected to cost.
function takeFairly(room: number): void {
  const nowMs = performance.now();
  let left = room - takeLongestWaiting(room, nowMs);
  const peers = [...ready]
    .map((peer) => ({ peer, loadMs: usageOf(peer, nowMs) + (peer.open + peer.queue.length) * costMs }))
    .sort((a, b) => a.loadMs - b.loadMs);
  for (; left > 0; left--) {
    const [first] = peers;
    if (first === undefined) return;
    takeOne(first.peer);
    first.loadMs += costMs;
    peers.shift();
    if (first.peer.queue.length === 0) continue;
    const index = peers.findIndex(({ loadMs }) => loadMs > first.loadMs);
    peers.splice(index < 0 ? peers.length : index, 0, first);
  }
}

/** Takes requests that have waited too long, longest first; returns how many. */
function takeLongestWaiting(room: number, nowMs: number): number {
  const most = isStanding ? Math.ceil(room / 2) : 1;
  const leastMs = nowMs - (isStanding ? MAX_FAIR_WAIT_MS : MAX_WAIT_MS);
  for (let count = 0; count < most; count++) {
    const longest = findLongestWaiting(leastMs);
    if (longest === undefined) return count;
    takeOne(longest);
  }
  return most;
}

/** Finds the peer of the request that has waited longest, if it was queued before `beforeMs`. */
function findLongestWaiting(beforeMs: number): Peer | undefined {
  let longest: Peer | undefined;
  let leastMs = beforeMs;
  for (const peer of ready) {
    const sinceMs = peer.queue[0]?.sinceMs ?? beforeMs;
    if (sinceMs >= leastMs) continue;
    longest = peer;
    leastMs = sinceMs;
  }
  return longest;
}

function takeOne(peer: Peer): void {
  const queued = peer.queue.shift();
  if (queued === undefined) return;
  const { task } = queued;
  forgetQueued(peer, queued);
  taken.push(peer);
  try {
    task.run();
  } catch (error) {
    task.onError(error);
  }
}

// The time of a tick is divided equally among its requests, because the asynchronous work of each cannot be measured.
function charge(lastTickMs: number): void {
  if (taken.length === 0) return;
  const nowMs = performance.now();
  const shareMs = lastTickMs / taken.length;
  costMs += (shareMs - costMs) * SMOOTHING;
  for (const peer of taken) {
    peer.spentMs = usageOf(peer, nowMs) + shareMs;
    peer.atMs = nowMs;
  }
  taken = [];
}

/** Charges a peer for work outside of the queue, in milliseconds. */
export function chargePeer(peer: Peer, costMs: number): void {
  const nowMs = performance.now();
  peer.spentMs = usageOf(peer, nowMs) + costMs;
  peer.atMs = nowMs;
}

function usageOf({ spentMs, atMs }: Peer, nowMs: number): number {
  return spentMs * 2 ** ((atMs - nowMs) / HALF_LIFE_MS);
}
