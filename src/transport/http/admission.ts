// Decides whether the service has time for a request, by the delay of the event loop and the expected waiting time. It
// reads nothing of the request, so it is the same for every protocol and takes less than a microsecond.
import type { Logger } from "../../telemetry/logger.js";
import { hasTimeFor, hasTimeForAll, type Peer } from "./fair-queue.js";

/**
 * How often the delay of the event loop is measured, in milliseconds: seldom while it is small, often while it is late.
 */
const CHECK_MS = 50;
const LATE_CHECK_MS = 5;
/**
 * How long it must be late without interruption, in milliseconds: a garbage collection or a slow sync does not count as
 * overload.
 */
const LATE_FOR_MS = 1_000;
/**
 * A request may wait so many times `maxDelayMs` before it is rejected after all, and at least so long in milliseconds: a
 * peer that sends more than others waits longer than the queue is long.
 */
const WAIT_FACTOR = 3;
const MIN_MAX_WAIT_MS = 60;
/** How often rejected requests are logged, in milliseconds. */
const LOG_MS = 10_000;

/** Why a request or a connection was rejected before it was handled. */
export type RejectionReason =
  /** The event loop is late, or the request would wait too long. */
  | "overload"
  /** The address has too many requests open. */
  | "address_requests"
  /** The address has too many connections. */
  | "address_connections"
  /** The process has as many connections as it may have. */
  | "connections";

/** How many were rejected since the start, by reason. */
export type RejectionCounts = Record<RejectionReason, number>;

export interface AdmissionOptions {
  /**
   * How long a request may wait in a standing queue (see fair-queue.ts), in milliseconds; if infinite, all are
   * admitted.
   */
  readonly maxDelayMs: number;
  /**
   * How long an iteration of the event loop may take before it counts as late, in milliseconds; at least `maxDelayMs`.
   */
  readonly maxRoundMs: number;
  readonly logger?: Logger | undefined;
}

/** Decides whether requests are handled. */
export type Admission = ReturnType<typeof createAdmission>;

/** Creates the admission control; {@link Admission.stop} ends its timer. */
export function createAdmission({ maxDelayMs, maxRoundMs, logger }: AdmissionOptions) {
  const counts: RejectionCounts = { overload: 0, address_requests: 0, address_connections: 0, connections: 0 };
  const isOn = maxDelayMs !== Number.POSITIVE_INFINITY;
  const maxLateMs = Math.max(maxDelayMs, maxRoundMs);
  let isLate = false;
  let lateSinceMs = 0;
  let delayMs = 0;
  const log = createRejectionLog(() => counts.overload);
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  function check(sinceMs: number): void {
    const nowMs = performance.now();
    delayMs = nowMs - sinceMs;
    if (delayMs <= maxLateMs) lateSinceMs = 0;
    else if (lateSinceMs === 0) lateSinceMs = sinceMs;
    isLate = lateSinceMs !== 0 && nowMs - lateSinceMs >= LATE_FOR_MS;
    log((rejected) => logger?.warn({ rejected, delayMs: Math.round(delayMs) }, "overload: calls rejected"));
    schedule(lateSinceMs === 0 ? CHECK_MS : LATE_CHECK_MS);
  }

  // The immediate makes sure that the next check is in another iteration of the event loop.
  function schedule(afterMs: number): void {
    const sinceMs = performance.now();
    setImmediate(() => {
      if (!isStopped) timer = setTimeout(check, afterMs, sinceMs).unref();
    }).unref();
  }

  if (isOn) schedule(CHECK_MS);

  return {
    /** Counts of rejections, which the code that rejects counts by `count`. */
    counts: counts as Readonly<RejectionCounts>,
    /** Counts a rejection. */
    count(reason: RejectionReason): void {
      counts[reason]++;
    },
    /** Whether there is time for one more request, of any peer. */
    admitsAll: (): boolean => !isOn || (!isLate && hasTimeForAll(maxDelayMs)),
    /** Whether there is time for one more request of a peer. */
    admits: (peer: Peer): boolean => !isOn || (!isLate && hasTimeFor(peer, maxDelayMs)),
    /** How long an admitted request may wait in a standing queue before it is rejected, in milliseconds. */
    maxWaitMs: Math.max(WAIT_FACTOR * maxDelayMs, MIN_MAX_WAIT_MS),
    stop(): void {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/**
 * Creates a function that calls `write` with how many were rejected since it did so before: if any were, and at most
 * every ten seconds.
 */
export function createRejectionLog(readCount: () => number): (write: (rejected: number) => void) => void {
  let loggedMs = Number.NEGATIVE_INFINITY;
  let loggedCount = 0;
  return (write) => {
    const count = readCount();
    const nowMs = performance.now();
    if (count === loggedCount || nowMs - loggedMs < LOG_MS) return;
    write(count - loggedCount);
    loggedMs = nowMs;
    loggedCount = count;
  };
}

const HEALTH_SERVICE = "/grpc.health.v1.Health/";

/** Whether a path is a health check, which is answered under any load. */
export function isHealthPath(path: string): boolean {
  // Most paths differ in their second character already.
  const code = path.charCodeAt(1);
  if (code === 104) return path === "/healthz" || path.startsWith("/healthz?");
  if (code === 114) return path === "/readyz" || path.startsWith("/readyz?");
  return code === 103 && path.startsWith(HEALTH_SERVICE);
}
