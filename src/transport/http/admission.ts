// Decides whether the service has time for a request, by how late the event loop is
// and by how long the request would wait. Nothing of a request is looked at for it, so
// it holds for every protocol and costs less than a microsecond.
import type { Logger } from "../../telemetry/logger.js";
import { hasTimeFor, type Peer } from "./fair-queue.js";

/** How often the event loop is looked at, in milliseconds: seldom while it is in time, often while it is late. */
const CHECK_MS = 50;
const LATE_CHECK_MS = 5;
/** How long it must be late without a break: a pause of the collector or a slow sync is none, in milliseconds. */
const LATE_FOR_MS = 1_000;
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

/** What {@link createAdmission} is made of. */
export interface AdmissionOptions {
  /** How long a request may wait in a queue that stands, in milliseconds; with an infinite time all are admitted. */
  readonly maxDelayMs: number;
  /** How long the event loop may take for a round, if `maxDelayMs` is less; longer than that is late, in milliseconds. */
  readonly maxRoundMs: number;
  readonly logger?: Logger | undefined;
}

/** Decides whether requests are handled. */
export type Admission = ReturnType<typeof createAdmission>;

/** Creates it; {@link Admission.stop} ends its timer. */
export function createAdmission({ maxDelayMs, maxRoundMs, logger }: AdmissionOptions) {
  const counts: RejectionCounts = { overload: 0, address_requests: 0, address_connections: 0, connections: 0 };
  const isOn = maxDelayMs !== Number.POSITIVE_INFINITY;
  const maxLateMs = Math.max(maxDelayMs, maxRoundMs);
  let isLate = false;
  let lateSinceMs = 0;
  let delayMs = 0;
  let loggedMs = Number.NEGATIVE_INFINITY;
  let loggedCount = 0;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  function check(sinceMs: number): void {
    const nowMs = performance.now();
    delayMs = nowMs - sinceMs;
    if (delayMs <= maxLateMs) lateSinceMs = 0;
    else if (lateSinceMs === 0) lateSinceMs = sinceMs;
    isLate = lateSinceMs !== 0 && nowMs - lateSinceMs >= LATE_FOR_MS;
    if (counts.overload > loggedCount && nowMs - loggedMs >= LOG_MS) {
      logger?.warn(
        { rejected: counts.overload - loggedCount, delayMs: Math.round(delayMs) },
        "overload: calls rejected",
      );
      loggedMs = nowMs;
      loggedCount = counts.overload;
    }
    schedule(lateSinceMs === 0 ? CHECK_MS : LATE_CHECK_MS);
  }

  // By way of an immediate, so that the next check is never in the same iteration of the event loop.
  function schedule(afterMs: number): void {
    const sinceMs = performance.now();
    setImmediate(() => {
      if (!isStopped) timer = setTimeout(check, afterMs, sinceMs).unref();
    }).unref();
  }

  if (isOn) schedule(CHECK_MS);

  return {
    /** Counts of what was rejected; who rejects counts. */
    counts: counts as Readonly<RejectionCounts>,
    /** Counts a rejection. */
    count(reason: RejectionReason): void {
      counts[reason]++;
    },
    /** Whether there is time for one more request of a peer. */
    admits: (peer: Peer): boolean => !isOn || (!isLate && hasTimeFor(peer, maxDelayMs)),
    /** Whether queued requests may be rejected later. */
    isOn,
    stop(): void {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

const HEALTH_SERVICE = "/grpc.health.v1.Health/";

/** Whether a path is one that tells of the health of the service, which is answered whatever the load. */
export function isHealthPath(path: string): boolean {
  // Most paths differ in their second character already.
  const code = path.charCodeAt(1);
  if (code === 104) return path === "/healthz" || path.startsWith("/healthz?");
  if (code === 114) return path === "/readyz" || path.startsWith("/readyz?");
  return code === 103 && path.startsWith(HEALTH_SERVICE);
}
