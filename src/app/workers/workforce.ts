// Keeps as many workers running as there are to be. Each has a seat, which is numbered from 1:
//
//               ┌────────── at once ──────────┐
//               ▼                             │ ended
//   empty ──> starting ──── ready ────────> ready
//               ▲   │
//    after 100 ms   │ ended before it was ready
//   to 10 s     │   ▼
//             pausing
//
// The workforce as a whole:
//
//   opening ──> running ──> stopping
//                  └──────> failed
//
// While it opens a worker that ends is not replaced, because the start has failed. It has failed later when no worker
// serves, and those of every seat have ended early several times in a row: before they were ready, or soon afterwards.
import type { Logger } from "../../telemetry/logger.js";
import type { FromWorker, ToWorker } from "./messages.js";
import { EndedMetrics } from "./metrics.js";
import { type WorkerEnd, type WorkerOptions, WorkerProcess } from "./worker-process.js";

/** The pauses before a worker is replaced that ended before it was ready, in milliseconds. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;
/** A worker has ended early if it has served for less, in milliseconds. */
const EARLY_MS = 10_000;
/** How many workers of a seat may end early in a row, where none of another seat serves. */
const MAX_EARLY_ENDS = 5;
const TICK_MS = 1_000;

/** How long a worker may take to get ready, in seconds, if it does not say that it makes progress. */
export interface StartLimits {
  /** The first workers, one of which may create or expand the database by statements that take minutes. */
  readonly firstS: number;
  /** Those that replace others. */
  readonly nextS: number;
}

/** Thrown when no worker can start. */
export class WorkerStartError extends Error {
  override readonly name = "WorkerStartError";
  /** That of the worker; 1 if it was killed. */
  readonly exitCode: number;

  constructor(worker: number, { code, cause }: Pick<WorkerEnd, "code" | "cause">, when: string) {
    super(`worker ${worker} ended ${when}: ${cause}`);
    this.exitCode = code || 1;
  }
}

interface Seat {
  readonly number: number;
  worker: WorkerProcess | undefined;
  /** How many of its workers have ended early, one after the other. */
  earlyEnds: number;
  /** The pause before its next worker; 0 unless the last one has ended before it was ready. */
  pauseMs: number;
  pause: NodeJS.Timeout | undefined;
}

export interface WorkforceDeps {
  readonly count: number;
  readonly start: WorkerOptions["start"];
  readonly limits: StartLimits;
  readonly logger: Logger;
  /** Called when a worker serves, and when it has ended. */
  readonly onChange: () => void;
  readonly onMessage: (worker: WorkerProcess, message: FromWorker) => void;
  /** Forgets a worker; returns how many connections it had. */
  readonly onEnd: (worker: WorkerProcess) => number;
  /** Called once, when no worker can start any more. Nothing is started after it. */
  readonly onFailed: (error: WorkerStartError) => void;
}

export class Workforce {
  /** What workers have counted that have ended. */
  readonly endedMetrics = new EndedMetrics();
  readonly #deps: WorkforceDeps;
  readonly #seats: readonly Seat[];
  readonly #ticks = setInterval(() => this.#tick(), TICK_MS);
  #state: "opening" | "running" | "stopping" | "failed" = "opening";
  #onEarlyEnd: ((error: WorkerStartError) => void) | undefined;
  #onWorkerReady: (() => void) | undefined;
  #exits = 0;

  constructor(deps: WorkforceDeps) {
    this.#deps = deps;
    this.#seats = Array.from({ length: deps.count }, (_, i) => ({
      ...{ number: i + 1, worker: undefined, earlyEnds: 0, pauseMs: 0, pause: undefined },
    }));
  }

  /** How many workers have ended by themselves. */
  get exits(): number {
    return this.#exits;
  }

  /** Those that run, whether they serve or not. */
  *workers(): Generator<WorkerProcess> {
    for (const { worker } of this.#seats) if (worker !== undefined) yield worker;
  }

  /** Those that serve. */
  ready(): WorkerProcess[] {
    return [...this.workers()].filter(({ isReady }) => isReady);
  }

  /** Whether a worker serves, or may do so shortly: its seat has not just seen one that could not start. */
  canServe(): boolean {
    if (this.#state === "failed") return false;
    return this.#seats.some(({ worker, pauseMs }) => worker?.isReady || pauseMs === 0);
  }

  /**
   * Starts the workers: the first one alone, because it creates or expands the database where that is needed.
   *
   * @throws WorkerStartError when one ends before all are ready
   */
  async open(): Promise<void> {
    const [first, ...others] = this.#seats;
    for (const seats of [[first as Seat], others]) {
      await new Promise<void>((resolve, reject) => {
        this.#onEarlyEnd = reject;
        this.#onWorkerReady = () => seats.every(({ worker }) => worker?.isReady) && resolve();
        for (const seat of seats) this.#start(seat);
        this.#onWorkerReady();
      });
    }
    this.#onEarlyEnd = this.#onWorkerReady = undefined;
    this.#state = "running";
  }

  tellAll(message: ToWorker, except?: WorkerProcess): void {
    for (const worker of this.workers()) if (worker !== except) worker.tell(message);
  }

  /** Replaces no worker any more. */
  stop(): void {
    if (this.#state !== "failed") this.#state = "stopping";
    for (const { pause } of this.#seats) clearTimeout(pause);
  }

  killAll(): void {
    for (const worker of this.workers()) worker.kill();
  }

  /** Resolves when all have ended. */
  async ended(): Promise<void> {
    await Promise.all([...this.workers()].map(({ ended }) => ended));
  }

  /** Kills those that run. */
  async close(): Promise<void> {
    this.stop();
    clearInterval(this.#ticks);
    this.killAll();
    await this.ended();
  }

  #tick(): void {
    for (const worker of this.workers()) worker.tick();
  }

  #start(seat: Seat): void {
    const { start, logger, limits, onChange, onMessage } = this.#deps;
    const options: WorkerOptions = {
      ...{ number: seat.number, start, logger },
      startTicks: this.#state === "opening" ? limits.firstS : limits.nextS,
      events: {
        onReady: () => {
          seat.pauseMs = 0;
          this.#onWorkerReady?.();
          onChange();
        },
        onMessage,
        onEnd: (worker, end) => this.#noteEnd(seat, end, worker),
      },
    };
    try {
      seat.worker = new WorkerProcess(options);
    } catch (error) {
      // Such as for a lack of memory.
      const cause = error instanceof Error ? error.message : String(error);
      setImmediate(() => this.#noteEnd(seat, { code: null, signal: null, cause, wasReady: false, servedMs: 0 }));
    }
  }

  #noteEnd(seat: Seat, end: WorkerEnd, worker?: WorkerProcess): void {
    const { code, signal, cause, wasReady, servedMs } = end;
    const { number } = seat;
    seat.worker = undefined;
    if (worker !== undefined) this.endedMetrics.add(worker.metrics);
    const connections = worker === undefined ? 0 : this.#deps.onEnd(worker);
    if (this.#state === "opening") this.#onEarlyEnd?.(new WorkerStartError(number, end, "before it was ready"));
    if (this.#state !== "running") return;
    this.#exits++;
    seat.earlyEnds = servedMs < EARLY_MS ? seat.earlyEnds + 1 : 0;
    seat.pauseMs = wasReady ? 0 : Math.min(Math.max(seat.pauseMs * 2, FIRST_PAUSE_MS), MAX_PAUSE_MS);
    const fields = { worker: number, code, signal, cause, connections };
    if (this.#hasFailed()) {
      this.#fail(fields, end);
      return;
    }
    this.#deps.logger.error({ ...fields, pauseMs: seat.pauseMs }, "a worker has ended and is replaced");
    if (seat.pauseMs === 0) this.#start(seat);
    else seat.pause = setTimeout(() => this.#start(seat), seat.pauseMs);
    this.#deps.onChange();
  }

  #hasFailed(): boolean {
    return this.ready().length === 0 && this.#seats.every(({ earlyEnds }) => earlyEnds >= MAX_EARLY_ENDS);
  }

  #fail(fields: { readonly worker: number }, end: WorkerEnd): void {
    this.stop();
    this.#state = "failed";
    const earlyEnds = this.#seats.reduce((sum, seat) => sum + seat.earlyEnds, 0);
    this.#deps.logger.fatal({ ...fields, earlyEnds }, "no worker can start: the service ends");
    this.#deps.onFailed(new WorkerStartError(fields.worker, end, "early, as all before it"));
  }
}
