// An honest caller as a process of its own: 100 calls a second, evenly mixed of
// reads, lists, writes, gRPC and token exchanges, from an address of its own. It
// calls at its pace however slow the responses are. Its parent tells it when to
// begin and to end counting.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { type Caller, callerOf } from "./caller.js";
import { type Figures, figuresOf, JUDGES_TIMES, punctual, type Sample, SLICE_MS } from "./figures.js";
import { startIssuers } from "./issuers.js";
import type { GoodWorld } from "./world.js";

/** What the parent says. */
export type Order =
  /** Calls, unless it does so already; a new service is called from the beginning. */
  | { readonly id: number; readonly do: "call"; readonly world: GoodWorld; readonly isNew: boolean }
  | { readonly id: number; readonly do: "begin" }
  /** Ends counting; answered with the figures once the last call is over. */
  | { readonly id: number; readonly do: "end" }
  /** Answered with how many calls are over and count so far. */
  | { readonly id: number; readonly do: "count" }
  | { readonly id: number; readonly do: "rest" };

const INTERVAL_MS = 10;
const CALL_MS = 5_000;
const RETRY_MS = 200;
const MIX = ["get", "list", "grpc", "create", "get", "exchange", "list", "grpc", "get", "delete"] as const;
/** How long a start that was due while this process was late is made up for, in calls. */
const MAX_BACKLOG = 25;

const issuers = await startIssuers();
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const lags = new Map<number, number>();
let samples: Sample[] = [];
let counting = false;
let countedUnderWay = 0;
let firstSlice = 0;
let caller: Caller | undefined;
let timer: NodeJS.Timeout | undefined;

setInterval(() => {
  const slice = Math.floor(performance.now() / SLICE_MS);
  // A timer of the histogram takes a millisecond when nothing is late.
  lags.set(slice, Math.max(lags.get(slice) ?? 0, delay.max / 1e6 - 1));
  delay.reset();
}, SLICE_MS / 5).unref();

function startCalling(): void {
  stopCalling();
  let n = 0;
  let dueMs = performance.now();
  timer = setInterval(() => {
    const nowMs = performance.now();
    if (nowMs - dueMs > MAX_BACKLOG * INTERVAL_MS) dueMs = nowMs;
    for (; dueMs <= nowMs; dueMs += INTERVAL_MS) void callOnce(MIX[n++ % MIX.length] ?? "get");
  }, INTERVAL_MS);
}

function stopCalling(): void {
  clearInterval(timer);
}

async function callOnce(kind: (typeof MIX)[number]): Promise<void> {
  if (caller === undefined) return;
  const isCounted = counting;
  const startMs = performance.now();
  if (isCounted) countedUnderWay++;
  let failure = await failureOf(caller, kind);
  while (!JUDGES_TIMES && isOverload(failure) && performance.now() - startMs < CALL_MS) {
    await sleep(RETRY_MS);
    failure = await failureOf(caller, kind);
  }
  if (!isCounted) return;
  countedUnderWay--;
  samples.push({ kind, startMs, ms: performance.now() - startMs, failure });
}

function failureOf(from: Caller, kind: (typeof MIX)[number]): Promise<string | undefined> {
  return from[kind]().then(
    () => undefined,
    (error: Error) => error.message,
  );
}

function isOverload(failure: string | undefined): boolean {
  return failure !== undefined && /^(HTTP 503|grpc-status 14)\b/.test(failure);
}

async function finish(): Promise<Figures> {
  counting = false;
  while (countedUnderWay > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  return figuresOf(samples, new Map([...lags].filter(([slice]) => slice >= firstSlice)));
}

process.on("message", async (order: Order) => {
  const response = (value: unknown) => process.send?.({ id: order.id, value });
  if (order.do === "call") {
    if (order.isNew) caller?.close();
    if (order.isNew) caller = callerOf(order.world, issuers, CALL_MS);
    startCalling();
    response(true);
  } else if (order.do === "rest") {
    stopCalling();
    response(true);
  } else if (order.do === "begin") {
    samples = [];
    firstSlice = Math.floor(performance.now() / SLICE_MS);
    counting = true;
    response(true);
  } else if (order.do === "count") {
    response(punctual(samples, lags).length);
  } else response(await finish());
});
process.on("disconnect", () => process.exit(0));
process.send?.({ id: 0, value: issuers.origin });
