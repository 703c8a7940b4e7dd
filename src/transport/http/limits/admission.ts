// Decides when requests are handled, and which are refused. Requests wait in a queue for each address and are served in turn
// by what they cost. A request is refused only when it has waited for too long, or when too many wait. It reads nothing of
// a request but its path, its timeout and the address, so it is the same for every protocol.
import type { IncomingHttpHeaders } from "node:http";
import { FairQueue, type Turn } from "../../../kernel/fair-queue.js";
import type { RejectReason } from "../../../kernel/reject-reason.js";
import type { Logger } from "../../../telemetry/logger.js";
import { parseConnectTimeout, parseGrpcTimeout } from "../grpc-fields.js";
import type { Limits } from "./limits.js";

/** Why a waiting request is refused because the service is busy. */
type BusyReason = Extract<RejectReason, "max_wait" | "queue_full" | "unread_bytes">;

/** Why a request has waited for too long: for the service, or for its caller, whose own timeout is over. */
export type LateReason = "max_wait" | "timeout";

/** Why a waiting request is refused. */
export type RefusalReason = BusyReason | LateReason;

/** Why a request or a connection is rejected before it is handled. */
export type RejectionReason = BusyReason | ConnectionReason | "address_requests" | "pieces";

/** Why a connection is rejected. */
export type ConnectionReason = Extract<RejectReason, "address_connections" | "connections">;

/** How many were rejected since the start, by reason. */
export type RejectionCounts = Record<RejectionReason, number>;

/** A request that waits. */
export interface WaitingRequest extends Turn {
  /** What is said of it if it has not begun by then. */
  readonly lateReason: LateReason;
  /** Handles it. */
  run(): void;
  /** Answers that the service has no time for it, instead of {@link run}. */
  refuse(reason: RefusalReason): void;
  /** Gets what the other two throw. */
  onError(error: unknown): void;
  /** How many bytes of its body Node holds unread. */
  countUnread(): number;
}

/** How long one turn of the event loop takes requests before it reads sockets again, in milliseconds. */
const TURN_MS = 5;
/** How often unread bytes are counted, in milliseconds, and from how many waiting requests on: fewer hold too little. */
const COUNT_UNREAD_MS = 20;
const MIN_COUNTED = 256;
/** How many requests one turn refuses because they have waited too long; the others follow, or are refused in their turn. */
const MAX_REFUSED = 64;
/** How often refused requests are logged, in milliseconds. */
const LOG_MS = 10_000;

export interface AdmissionOptions {
  readonly limits: Pick<Limits, "maxWaitMs" | "waitingRequests" | "unreadBytes" | "requestsPerAddress">;
  readonly logger?: Logger | undefined;
}

/**
 * The admission of a server. It takes one turn after another while requests wait:
 *
 *             enter              setImmediate
 *     idle ──────────> scheduled ────────────> health checks ──> calls
 *      ▲                   ▲                        │              │
 *      │ none waits        │ requests wait          │ to accept    │
 *      └───────────────────┴────────────────────────┴──────────────┘
 *
 * A turn has many ticks, so requests enter while it is under way. It serves them as well, if it has the time.
 */
export class Admission {
  readonly #limits: AdmissionOptions["limits"];
  readonly #logger: Logger | undefined;
  readonly #counts: RejectionCounts = {
    max_wait: 0,
    queue_full: 0,
    unread_bytes: 0,
    address_requests: 0,
    address_connections: 0,
    pieces: 0,
    connections: 0,
  };
  /** How many were rejected, by reason. */
  readonly counts: Readonly<RejectionCounts> = this.#counts;
  readonly #calls: FairQueue<WaitingRequest>;
  // Health checks come first. Those of an address that sends too many delay each other only.
  readonly #checks = new FairQueue<WaitingRequest>();
  readonly #openByKey = new Map<string, number>();
  readonly #logRefused = createRejectionLog(
    () => this.#counts.max_wait + this.#counts.queue_full + this.#counts.unread_bytes,
  );
  /** Whether a turn is scheduled or under way. The end of a turn resets it, and sets it again if requests wait. */
  #isScheduled = false;
  /** Whether a connection was accepted since a turn last reset it, which each does after its health checks. */
  #isAccepting = false;
  /** How many turns have begun. */
  #turns = 0;
  /** When a turn last ended in which a call was taken. */
  #servedMs = 0;
  /** When unread bytes were last counted. */
  #countedMs = 0;

  constructor({ limits, logger }: AdmissionOptions) {
    this.#limits = limits;
    this.#logger = logger;
    this.#calls = new FairQueue(limits.waitingRequests);
  }

  /** Counts a rejection. */
  count(reason: RejectionReason): void {
    this.#counts[reason]++;
  }

  /** How many turns have begun: a request is handled after the next one has. */
  countTurns(): number {
    return this.#turns;
  }

  /** How many requests wait. */
  countWaiting(): number {
    return this.#calls.size + this.#checks.size;
  }

  /** Lets a request wait for its turn; a health check is answered in the next one. */
  enter(request: WaitingRequest, isHealth: boolean): void {
    this.#push(isHealth ? this.#checks : this.#calls, request);
  }

  /** Lets an admitted request wait for another turn. It is not refused any more. */
  waitAgain({ key }: Pick<Turn, "key">, run: () => void): void {
    const startByMs = Number.POSITIVE_INFINITY;
    this.#push(this.#calls, {
      key,
      startByMs,
      lateReason: "max_wait",
      run,
      refuse: run,
      onError: throwLater,
      countUnread: none,
    });
  }

  /** Charges an address for work outside of its turns, in milliseconds. */
  charge(key: string, costMs: number): void {
    this.#calls.charge(key, costMs);
  }

  /** Notes that a connection was accepted. More of them may wait. */
  noteConnection(): void {
    this.#isAccepting = true;
  }

  /** Counts a request of an address as open. */
  open(key: string): void {
    this.#openByKey.set(key, (this.#openByKey.get(key) ?? 0) + 1);
  }

  /** Whether the newest request of an address may be served: half of its places are for health checks alone. */
  mayServe(key: string, isHealth: boolean): boolean {
    return (this.#openByKey.get(key) ?? 0) <= this.#limits.requestsPerAddress * (isHealth ? 2 : 1);
  }

  /** Counts a request as ended. */
  close(key: string): void {
    const open = this.#openByKey.get(key) ?? 0;
    if (open > 1) this.#openByKey.set(key, open - 1);
    else this.#openByKey.delete(key);
  }

  #push(queue: FairQueue<WaitingRequest>, request: WaitingRequest): void {
    const dropped = queue.push(request);
    if (dropped !== undefined) this.#refuse(dropped, "queue_full");
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#takeTurn);
  }

  // The steps of a turn are callbacks, so they are bound once.
  readonly #takeTurn = (): void => {
    const nowMs = performance.now();
    this.#turns++;
    for (const request of this.#calls.expired(nowMs, MAX_REFUSED)) this.#refuse(request, request.lateReason);
    this.#refuseUnread(nowMs);
    this.#serve(this.#checks, this.#serveCalls);
  };

  readonly #serveCalls = (): void => {
    if (this.#hasToAccept()) this.#endTurn();
    else this.#serve(this.#calls, this.#endTurn);
  };

  readonly #endTurn = (): void => {
    this.#isScheduled = false;
    if (this.countWaiting() > 0) this.#schedule();
  };

  // libuv accepts one connection in each turn of the event loop. While connections wait, half of the time is for turns
  // without calls: new callers, health checks too, would otherwise wait for seconds.
  #hasToAccept(): boolean {
    const isLate = performance.now() - this.#servedMs >= TURN_MS;
    const hasTo = this.#isAccepting && !isLate;
    this.#isAccepting = false;
    return hasTo;
  }

  // Each request begins when the promises of the one before it have settled as far as they can, so the time between the
  // two is what that one costs.
  #serve(queue: FairQueue<WaitingRequest>, onEnd: () => void): void {
    const endMs = performance.now() + TURN_MS;
    let served: WaitingRequest | undefined;
    let sinceMs = 0;
    const serveNext = () => {
      const nowMs = performance.now();
      if (served !== undefined) queue.charge(served.key, nowMs - sinceMs);
      const request = served !== undefined && nowMs >= endMs ? undefined : queue.take();
      if (request === undefined) {
        if (served !== undefined && queue === this.#calls) this.#servedMs = nowMs;
        onEnd();
        return;
      }
      served = request;
      sinceMs = nowMs;
      if (queue === this.#calls && request.startByMs <= nowMs) this.#refuse(request, request.lateReason);
      else run(request);
      queueMicrotask(serveSoon);
    };
    // Node runs all microtasks before the next of these.
    const serveSoon = () => process.nextTick(serveNext);
    serveNext();
  }

  #refuse(request: WaitingRequest, reason: RefusalReason): void {
    if (reason !== "timeout") {
      this.#counts[reason]++;
      this.#logRefused((refused) =>
        this.#logger?.warn({ refused, waiting: this.#calls.size, reason }, "calls were refused, because too many wait"),
      );
    }
    try {
      request.refuse(reason);
    } catch (error) {
      request.onError(error);
    }
  }

  // Refuses the newest requests of whose peer has sent most, until the rest is small enough.
  #refuseUnread(nowMs: number): void {
    if (this.#calls.size < MIN_COUNTED || nowMs - this.#countedMs < COUNT_UNREAD_MS) return;
    this.#countedMs = nowMs;
    let total = 0;
    const byKey = new Map<string, number>();
    for (const request of this.#calls) {
      const unread = request.countUnread();
      total += unread;
      if (unread > 0) byKey.set(request.key, (byKey.get(request.key) ?? 0) + unread);
    }
    while (total > this.#limits.unreadBytes) {
      const [largest] = [...byKey].reduce((a, b) => (b[1] > a[1] ? b : a));
      const newest = this.#calls.takeNewest(largest);
      if (newest === undefined) return;
      const unread = newest.countUnread();
      total -= unread;
      byKey.set(largest, (byKey.get(largest) ?? 0) - unread);
      this.#refuse(newest, "unread_bytes");
    }
  }
}

function run(request: WaitingRequest): void {
  try {
    request.run();
  } catch (error) {
    request.onError(error);
  }
}

// What `run` throws here is an error of the program, for which there is no response. It must not end the turn.
function throwLater(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

const none = () => 0;

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

/** How long the caller of a request waits, in milliseconds, over any protocol; Infinity when it did not say. */
export function findCallersTimeout(headers: IncomingHttpHeaders): number {
  const { "grpc-timeout": grpc, "connect-timeout-ms": connect, "x-server-timeout": server } = headers;
  if (grpc === undefined && connect === undefined && server === undefined) return Number.POSITIVE_INFINITY;
  const waits = [
    grpc && parseGrpcTimeout(String(grpc)),
    connect && parseConnectTimeout(String(connect)),
    server && Number(server) * 1_000,
  ];
  // One that is malformed is rejected when the request is handled.
  return Math.min(...waits.filter((ms): ms is number => typeof ms === "number" && ms >= 0));
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
