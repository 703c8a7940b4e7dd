// The ends of a call that come from outside: its caller goes away, or its time is up.

import { Code, ConnectError } from "@connectrpc/connect";
import { ApiError, callerGone, deadlineExceeded, unavailable } from "../kernel/errors.js";
import type { Clock } from "../kernel/time.js";
import type { CallContext } from "./call.js";

// Timers hold 31 bits of milliseconds and fire at once beyond them.
const LONGEST_TIMER_MS = 2_147_483_647;

/** How long a stream may have nothing to send while the service stops, in milliseconds: one that follows changes ends. */
const IDLE_STOP_MS = 1_000;
const RETRY_MS = 1_000;

/** The end of a call that comes from outside: see {@link watchEnd}. */
export interface CallEnd {
  /**
   * Fires at that end and at {@link close}. At that end its reason is a ConnectError CANCELED or DEADLINE_EXCEEDED, as in
   * connect's own servers.
   */
  readonly signal: AbortSignal;

  /** What ended the call; undefined before that. */
  readonly reason: Error | undefined;

  /**
   * What `work` resolves to, or a rejection with the reason as soon as the call ends before it; does
   * not begin after the end. One at a time.
   */
  or<T>(work: () => Promise<T>): Promise<T>;

  /** Stops watching. */
  close(): void;
}

/**
 * Watches for the caller to go away ({@link callerGone}) and for the time
 * it allowed to be up (ApiError DEADLINE_EXCEEDED).
 *
 * @param stopping aborted when the service begins to stop; then the call ends where work takes longer than a second
 */
export function watchEnd(call: CallContext, clock: Clock, stopping?: AbortSignal): CallEnd {
  const controller = new AbortController();
  const { signal } = controller;
  const gone = call.inbound.signal?.();
  let timer: NodeJS.Timeout | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let interrupt: ((reason: Error) => void) | undefined;
  let ended: Error | undefined;
  let isWorking = false;

  function end(reason: Error): void {
    ended = reason;
    controller.abort(reason instanceof ApiError ? new ConnectError(reason.message, reason.code) : reason);
    interrupt?.(reason);
    close();
  }

  // A front end that keeps time itself may find out first.
  function onGone(): void {
    const late = ConnectError.from(gone?.reason).code === Code.DeadlineExceeded;
    end(late ? deadlineExceeded() : callerGone());
  }

  // Asks the clock again when the timer fires: timers end early, and clocks are set.
  function arm(): void {
    const leftMs = call.deadlineMs - clock();
    if (leftMs < 0) end(deadlineExceeded());
    else timer = setTimeout(arm, Math.min(Math.ceil(leftMs), LONGEST_TIMER_MS));
  }

  // Only while work goes on: a caller that reads slowly gets the rest.
  function armIdle(): void {
    clearTimeout(idleTimer);
    if (!isWorking) return;
    idleTimer = setTimeout(() => end(unavailable("the service is stopping", RETRY_MS)), IDLE_STOP_MS);
  }

  function close(): void {
    clearTimeout(timer);
    clearTimeout(idleTimer);
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
    close,
    or(work) {
      if (ended !== undefined) return Promise.reject(ended);
      return new Promise((resolve, reject) => {
        // Not Promise.race, which would keep something of every answer until the call is over.
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
