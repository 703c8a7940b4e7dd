// Ends a call from outside: its caller disconnects, its deadline passes, or the service stops.

import { ConnectError } from "@connectrpc/connect";
import { ApiError, callerGone, deadlineExceeded, unavailable } from "../kernel/errors.js";
import type { Clock } from "../kernel/time.js";
import type { CallContext } from "./call.js";

// A timer with more than 31 bits of milliseconds fires at once.
const LONGEST_TIMER_MS = 2_147_483_647;

/**
 * How long a stream may have nothing to send once the service stops, in milliseconds. It ends streams that follow
 * changes.
 */
const IDLE_STOP_MS = 1_000;
const RETRY_MS = 1_000;

/** The end of a call that comes from outside: see {@link watchEnd}. */
export interface CallEnd {
  /**
   * Fires at that end and at {@link close}. At that end its reason is a ConnectError CANCELED or DEADLINE_EXCEEDED, as
   * in connect's own servers.
   */
  readonly signal: AbortSignal;

  /** What ended the call; undefined before that. */
  readonly reason: Error | undefined;

  /**
   * Runs `work` unless the call has ended. Settles as `work` does, or rejects with the reason as soon as the call ends.
   * One at a time.
   */
  race<T>(work: () => Promise<T>): Promise<T>;

  /** Ends the call at a time, in epoch milliseconds, for a reason of the caller's rights. */
  endAt(timeMs: number, reason: ApiError): void;

  /** Stops watching. */
  close(): void;
}

/**
 * Watches for the end of a call: {@link callerGone} when the caller disconnects, ApiError DEADLINE_EXCEEDED when its
 * deadline passes, ApiError UNAVAILABLE when the service stops.
 *
 * @param stopping aborted when the service begins to stop; then the call ends where work takes longer than a second
 */
export function watchEnd(call: CallContext, clock: Clock, stopping?: AbortSignal): CallEnd {
  const controller = new AbortController();
  const { signal } = controller;
  const gone = call.inbound.signal?.();
  let timer: NodeJS.Timeout | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let rightsTimer: NodeJS.Timeout | undefined;
  let interrupt: ((reason: Error) => void) | undefined;
  let ended: Error | undefined;
  let isWorking = false;

  function end(reason: Error): void {
    ended = reason;
    controller.abort(reason instanceof ApiError ? new ConnectError(reason.message, reason.code) : reason);
    interrupt?.(reason);
    close();
  }

  function onGone(): void {
    end(callerGone());
  }

  // Reads the clock again when the timer fires, because timers fire early and clocks are set.
  function arm(): void {
    const leftMs = call.deadlineMs - clock();
    if (leftMs < 0) end(deadlineExceeded());
    else timer = setTimeout(arm, Math.min(Math.ceil(leftMs), LONGEST_TIMER_MS));
  }

  function endAt(timeMs: number, reason: ApiError): void {
    if (ended !== undefined) return;
    const leftMs = timeMs - clock();
    if (leftMs <= 0) end(reason);
    else rightsTimer = setTimeout(() => endAt(timeMs, reason), Math.min(Math.ceil(leftMs), LONGEST_TIMER_MS));
  }

  // Armed only while work runs, so that a caller that reads slowly gets the rest.
  function armIdle(): void {
    clearTimeout(idleTimer);
    if (!isWorking) return;
    idleTimer = setTimeout(() => end(unavailable("the service is stopping", RETRY_MS)), IDLE_STOP_MS);
  }

  function close(): void {
    clearTimeout(timer);
    clearTimeout(idleTimer);
    clearTimeout(rightsTimer);
    stopping?.removeEventListener("abort", armIdle);
    gone?.removeEventListener("abort", onGone);
    controller.abort();
  }

  if (gone?.aborted) onGone();
  else gone?.addEventListener("abort", onGone, { once: true });
  if (!signal.aborted && call.deadlineMs !== Number.POSITIVE_INFINITY) arm();

  if (!signal.aborted) stopping?.addEventListener("abort", armIdle, { once: true });

  return {
    signal,
    get reason() {
      return ended;
    },
    endAt,
    close,
    race(work) {
      if (ended !== undefined) return Promise.reject(ended);
      return new Promise((resolve, reject) => {
        // Promise.race would retain something of every response until the call ends.
        interrupt = reject;
        isWorking = true;
        if (stopping?.aborted) armIdle();
        work()
          .finally(() => {
            isWorking = false;
            clearTimeout(idleTimer);
          })
          .then(resolve, reject);
      });
    },
  };
}
