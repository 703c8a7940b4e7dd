// Begins the HTTP/2 sessions of an address one at a time while it resets too many streams. Node handles all frames of a
// packet before anything can end their session, so each new session of such an address may take a tenth of a second.
import type { Socket } from "node:net";

export interface PacerOptions {
  /** The pause between two sessions, in milliseconds. */
  readonly pauseMs: number;
  /** How long a connection waits before it is cut, in milliseconds. */
  readonly maxWaitMs: number;
  /** Whether none of an address may begin now; never unless given. */
  readonly isPaused?: (key: string) => boolean;
}

interface Waiting {
  readonly socket: Socket;
  readonly begin: () => void;
  readonly sinceMs: number;
}

/** Creates the pacer. */
export function createSessionPacer({ pauseMs, maxWaitMs, isPaused = never }: PacerOptions) {
  const queues = new Map<string, Set<Waiting>>();

  function beginFirst(key: string, queue: Set<Waiting>): void {
    const oldestMs = performance.now() - maxWaitMs;
    for (const waiting of queue) {
      if (waiting.sinceMs >= oldestMs && isPaused(key)) break;
      queue.delete(waiting);
      if (waiting.sinceMs < oldestMs) waiting.socket.destroy();
      if (waiting.socket.destroyed) continue;
      waiting.begin();
      break;
    }
  }

  function beginNext(key: string, queue: Set<Waiting>): void {
    beginFirst(key, queue);
    if (queue.size > 0) setTimeout(beginNext, pauseMs, key, queue);
    else queues.delete(key);
  }

  return {
    /** Begins one connection of an address whose pause has ended, if one waits: the next pause may begin before its turn. */
    beginOne(key: string): void {
      const queue = queues.get(key);
      if (queue !== undefined) beginFirst(key, queue);
    },
    /** Whether connections of an address wait. */
    isBusy: (key: string) => queues.has(key),
    /** Begins a session when it is its turn. Its socket must not be read until then. */
    begin(key: string, socket: Socket, begin: () => void): void {
      const destroy = () => socket.destroy();
      socket.on("error", destroy);
      const waiting = {
        socket,
        sinceMs: performance.now(),
        begin() {
          begin();
          // Removed only now, when the session has its own listener: without one, an error would end the process.
          socket.off("error", destroy);
        },
      };
      const queue = queues.get(key);
      if (queue !== undefined) {
        queue.add(waiting);
        socket.once("close", () => queue.delete(waiting));
        return;
      }
      const fresh = new Set([waiting]);
      queues.set(key, fresh);
      setTimeout(beginNext, pauseMs, key, fresh);
    },
  };
}

function never(): boolean {
  return false;
}
