// A worker as its parent sees it: one process, from its start to its end.
//
//   starting ──> ready ──> ended
//       └──────────────────> ended    it could not start, was killed, or was not ready in time
//
// A worker that does not answer, or does not get ready, is killed.
import { type ChildProcess, fork } from "node:child_process";
import type { Socket } from "node:net";
import { waitAtMost } from "../../jobs/schedule.js";
import { type Logger, relayLog } from "../../telemetry/logger.js";
import type { Receiver } from "./connections.js";
import { type FromWorker, type ToWorker, WORKER_ARGUMENT } from "./messages.js";
import { WorkerMetrics } from "./metrics.js";

/** How often a worker that serves may be asked in vain whether it is alive: once a second. */
const MAX_UNANSWERED = 10;

/** How a worker has ended. */
export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why, as far as it is known. */
  readonly cause: string;
  /** Whether it has served. */
  readonly wasReady: boolean;
  /** How long it has served, in milliseconds; 0 if it has not. */
  readonly servedMs: number;
}

/** What a worker tells that is not for this class alone. */
export interface WorkerEvents {
  onReady(worker: WorkerProcess): void;
  onMessage(worker: WorkerProcess, message: FromWorker): void;
  /** Called once, when all that it has told was heard, and all that it has logged was read. */
  onEnd(worker: WorkerProcess, end: WorkerEnd): void;
}

export interface WorkerOptions {
  readonly number: number;
  readonly start: Omit<Extract<ToWorker, { kind: "start" }>, "kind" | "worker">;
  /** For how many ticks it may start without any progress. */
  readonly startTicks: number;
  readonly logger: Logger;
  readonly events: WorkerEvents;
}

export class WorkerProcess implements Receiver {
  readonly number: number;
  /** What it counted. */
  readonly metrics: WorkerMetrics;
  readonly ended: Promise<void>;
  readonly #options: WorkerOptions;
  readonly #child: ChildProcess;
  readonly #collecting = new Map<number, () => void>();
  #state: "starting" | "ready" | "ended" = "starting";
  /** How many ticks have passed since it told something that counts in its state. */
  #silentTicks = 0;
  #readyMs = 0;
  /** Why it ends, where it has said so or was killed from here. */
  #cause: string | undefined;

  /** Starts the process. */
  constructor(options: WorkerOptions) {
    const { number, logger, start } = options;
    this.number = number;
    this.#options = options;
    this.metrics = new WorkerMetrics(number);
    const child = fork(process.argv[1] ?? "", [WORKER_ARGUMENT], { stdio: ["ignore", "ignore", "pipe", "ipc"] });
    this.#child = child;
    const log = relayLog(logger);
    child.stderr?.on("data", (chunk: Buffer) => log?.write(chunk));
    child.on("message", (message: FromWorker) => this.#hear(message));
    this.ended = new Promise((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null) => {
        if (this.#state === "ended") return;
        log?.end();
        this.#end(code, signal);
        resolve();
      };
      // Unlike at "exit", all that it has told was heard.
      child.once("close", end);
      child.on("error", (err) => {
        logger.error({ err, worker: number }, "a worker cannot be started or reached");
        this.#cause ??= err.message;
        // What could not be started does not close.
        if (child.pid === undefined) end(null, null);
      });
    });
    this.tell({ kind: "start", worker: number, ...start });
  }

  get isReady(): boolean {
    return this.#state === "ready" && this.#child.connected;
  }

  tell(message: ToWorker, socket?: Socket, onError?: () => void): void {
    // Where no process could be started there is no channel.
    if (!this.#child.connected) {
      if (onError !== undefined) setImmediate(onError);
      return;
    }
    this.#child.send(message, socket, { keepOpen: true }, (error) => {
      if (error !== null) onError?.();
    });
  }

  kill(cause?: string): void {
    this.#cause ??= cause;
    this.#child.kill("SIGKILL");
  }

  /**
   * Asks for its metrics.
   *
   * @returns whether it answered within `limitMs`, or has ended; {@link metrics} has the answer
   */
  async collect(scrape: number, limitMs: number): Promise<boolean> {
    const answered = new Promise<void>((resolve) => this.#collecting.set(scrape, resolve));
    this.tell({ kind: "collect", id: scrape });
    const isAnswered = await waitAtMost(answered, limitMs);
    this.#collecting.delete(scrape);
    return isAnswered;
  }

  /**
   * Notes that a second has passed. These are counted, so that no worker is killed because the machine slept.
   */
  tick(): void {
    if (this.#state === "ended") return;
    const { number, logger, startTicks } = this.#options;
    const limit = this.#state === "ready" ? MAX_UNANSWERED : startTicks;
    if (this.#silentTicks++ < limit) {
      if (this.#state === "ready") this.tell({ kind: "ping" });
    } else if (this.#state === "ready") {
      logger.error({ worker: number }, "a worker hangs and is killed");
      this.kill("it hung");
    } else {
      logger.error({ worker: number, seconds: limit }, "a worker does not get ready and is killed");
      this.kill(`it was not ready after ${limit} s`);
    }
  }

  #hear(message: FromWorker): void {
    if (this.#state === "ready" || message.kind === "progress") this.#silentTicks = 0;
    if (message.kind === "ready") {
      this.#state = "ready";
      this.#silentTicks = 0;
      this.#readyMs = performance.now();
      this.#options.events.onReady(this);
    } else if (message.kind === "failed") this.#cause ??= message.reason;
    else if (message.kind === "collected") {
      this.metrics.note(message.id, message.families);
      this.#collecting.get(message.id)?.();
    } else this.#options.events.onMessage(this, message);
  }

  #end(code: number | null, signal: NodeJS.Signals | null): void {
    const wasReady = this.#state === "ready";
    this.#state = "ended";
    for (const resolve of this.#collecting.values()) resolve();
    const cause = this.#cause ?? (signal === null ? `it ended with exit code ${code}` : `it was killed by ${signal}`);
    const servedMs = wasReady ? performance.now() - this.#readyMs : 0;
    this.#options.events.onEnd(this, { code, signal, cause, wasReady, servedMs });
  }
}
