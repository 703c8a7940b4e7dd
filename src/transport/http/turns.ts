// Whose request is taken next, when more wait than the event loop can take at once:
// one of the peer that has cost least lately and has the fewest under way. Peers that
// send more than their part wait for themselves, and others do not wait for them. The
// request that has waited longest has its turn in each tick, so that nobody waits for ever.
import { onTick } from "./tick.js";

/** Somebody whose requests wait for each other: an address, mostly. */
export interface Peer {
  readonly waiting: WaitingTurn[];
  /** How many of its requests are not over. */
  open: number;
  /** What its requests have cost, in milliseconds of the event loop, halved every {@link HALF_LIFE_MS}. */
  spentMs: number;
  /** When {@link spentMs} was worked out, by `performance.now()`. */
  atMs: number;
}

/** A request that waits for its turn. */
export interface Turn {
  /** Takes it. */
  run(): void;
  /** Told of what {@link run} throws, which keeps no other request from its turn. */
  onError(error: unknown): void;
}

/** A request in its peer's queue. */
interface WaitingTurn {
  readonly turn: Turn;
  /** Since when it waits, by `performance.now()`. */
  readonly sinceMs: number;
}

/** How long a request waits, in milliseconds, before it comes first whatever its peer has cost. */
const LONG_MS = 500;
/** How long the event loop may be busy with requests before it looks at its sockets again, in milliseconds. */
const TURN_MS = 5;
/** At least so many requests are taken in a tick, however dear those before were, and at most so many. */
const MIN_REQUESTS = 4;
const MAX_REQUESTS = 256;
/** What is forgotten of the cost of a peer's requests: half of it in so many milliseconds. */
const HALF_LIFE_MS = 1_000;
/** How much the requests of one tick tell of what the next ones cost, 0 to 1. */
const WEIGHT = 0.25;
/** A peer that cost less than this lately is as good as new, in milliseconds. */
const RESTED_MS = 1;

/** Makes a peer that has cost nothing yet. */
export function newPeer(): Peer {
  return { waiting: [], open: 0, spentMs: 0, atMs: 0 };
}

/** Whether a peer may be forgotten: nothing of it waits, and it has cost next to nothing lately. */
export function isRested(peer: Peer): boolean {
  return peer.waiting.length === 0 && spentBy(peer, performance.now()) < RESTED_MS;
}

const ready = new Set<Peer>();
let waiting = 0;
/** What one request costs, as far as the last ticks tell, in milliseconds. */
let costMs = 0.1;
/** Whose requests the last tick took, a peer for each. */
let taken: Peer[] = [];

const schedule = onTick("requests", (lastTickMs) => {
  charge(lastTickMs);
  const room = Math.min(MAX_REQUESTS, Math.max(MIN_REQUESTS, Math.floor(TURN_MS / costMs)));
  if (waiting <= room) for (const peer of ready) while (peer.waiting.length > 0) takeOne(peer);
  else takeFairly(room);
  return waiting > 0;
});

/** Lets a request of a peer wait for its turn, which comes in the next tick of the event loop or in one after it. */
export function waitForTurn(peer: Peer, turn: Turn): void {
  peer.waiting.push({ turn, sinceMs: performance.now() });
  waiting++;
  ready.add(peer);
  schedule();
}

// Each time one of the peer that has cost least, with what its open requests are about to cost: whoever has many
// under way waits for them, and whoever calls now and then does not pay for the ticks that others make long.
function takeFairly(room: number): void {
  const nowMs = performance.now();
  const queue = [...ready]
    .map((peer) => ({ peer, loadMs: spentBy(peer, nowMs) + (peer.open + peer.waiting.length) * costMs }))
    .sort((a, b) => a.loadMs - b.loadMs);
  const longest = longestWaiting(nowMs);
  if (longest !== undefined) takeOne(longest);
  for (let left = longest === undefined ? room : room - 1; left > 0; left--) {
    const [first] = queue;
    if (first === undefined) return;
    takeOne(first.peer);
    first.loadMs += costMs;
    queue.shift();
    if (first.peer.waiting.length === 0) continue;
    const place = queue.findIndex(({ loadMs }) => loadMs > first.loadMs);
    queue.splice(place < 0 ? queue.length : place, 0, first);
  }
}

/** The peer whose first request has waited longest, and long. */
function longestWaiting(nowMs: number): Peer | undefined {
  let longest: Peer | undefined;
  let leastMs = nowMs - LONG_MS;
  for (const peer of ready) {
    const sinceMs = peer.waiting[0]?.sinceMs ?? nowMs;
    if (sinceMs >= leastMs) continue;
    longest = peer;
    leastMs = sinceMs;
  }
  return longest;
}

function takeOne(peer: Peer): void {
  const turn = peer.waiting.shift()?.turn;
  if (turn === undefined) return;
  if (peer.waiting.length === 0) ready.delete(peer);
  waiting--;
  taken.push(peer);
  try {
    turn.run();
  } catch (error) {
    turn.onError(error);
  }
}

// What a tick took is shared by all whose requests it took: what each of them leads to later is not to be told apart.
function charge(lastTickMs: number): void {
  if (taken.length === 0) return;
  const nowMs = performance.now();
  const each = lastTickMs / taken.length;
  costMs += (each - costMs) * WEIGHT;
  for (const peer of taken) {
    peer.spentMs = spentBy(peer, nowMs) + each;
    peer.atMs = nowMs;
  }
  taken = [];
}

function spentBy({ spentMs, atMs }: Peer, nowMs: number): number {
  return spentMs * 2 ** ((atMs - nowMs) / HALF_LIFE_MS);
}
