// Fair queueing of requests among peers. When more requests wait than one tick of the
// event loop can take, the next one comes from the peer with the least recent cost and
// the fewest open requests, so a peer with many requests delays only its own. Each tick
// also takes the request that has waited longest, so that none waits for ever.
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
}

interface QueuedTask {
  readonly task: Task;
  /** When it was queued, by `performance.now()`. */
  readonly sinceMs: number;
}

/** How long a request waits, in milliseconds, before it is taken whatever its peer has cost. */
const MAX_WAIT_MS = 500;
/** How long one tick may take requests before the event loop reads its sockets again, in milliseconds. */
const TICK_BUDGET_MS = 5;
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
  return peer.queue.length === 0 && spentBy(peer, performance.now()) < NEGLIGIBLE_MS;
}

const ready = new Set<Peer>();
let waiting = 0;
/** The moving average of what one request costs, in milliseconds. */
let costMs = 0.1;
/** The peers of the requests that the last tick took, one entry per request. */
let taken: Peer[] = [];

const schedule = onTick("requests", (lastTickMs) => {
  charge(lastTickMs);
  const room = Math.min(MAX_REQUESTS, Math.max(MIN_REQUESTS, Math.floor(TICK_BUDGET_MS / costMs)));
  if (waiting <= room) for (const peer of ready) while (peer.queue.length > 0) takeOne(peer);
  else takeFairly(room);
  return waiting > 0;
});

/** Queues a request of a peer; it is taken in the next tick of the event loop or in a later one. */
export function enqueue(peer: Peer, task: Task): void {
  peer.queue.push({ task, sinceMs: performance.now() });
  waiting++;
  ready.add(peer);
  schedule();
}

// Takes the request of the peer with the least load: its recent cost and what its open requests are expected to cost.
function takeFairly(room: number): void {
  const nowMs = performance.now();
  const peers = [...ready]
    .map((peer) => ({ peer, loadMs: spentBy(peer, nowMs) + (peer.open + peer.queue.length) * costMs }))
    .sort((a, b) => a.loadMs - b.loadMs);
  const longest = longestWaiting(nowMs);
  if (longest !== undefined) takeOne(longest);
  for (let left = longest === undefined ? room : room - 1; left > 0; left--) {
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

/** The peer of the request that has waited longest, if it has waited too long. */
function longestWaiting(nowMs: number): Peer | undefined {
  let longest: Peer | undefined;
  let leastMs = nowMs - MAX_WAIT_MS;
  for (const peer of ready) {
    const sinceMs = peer.queue[0]?.sinceMs ?? nowMs;
    if (sinceMs >= leastMs) continue;
    longest = peer;
    leastMs = sinceMs;
  }
  return longest;
}

function takeOne(peer: Peer): void {
  const task = peer.queue.shift()?.task;
  if (task === undefined) return;
  if (peer.queue.length === 0) ready.delete(peer);
  waiting--;
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
    peer.spentMs = spentBy(peer, nowMs) + shareMs;
    peer.atMs = nowMs;
  }
  taken = [];
}

function spentBy({ spentMs, atMs }: Peer, nowMs: number): number {
  return spentMs * 2 ** ((atMs - nowMs) / HALF_LIFE_MS);
}
