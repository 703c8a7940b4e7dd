// Runs background jobs. Each job has a lease, so that one node runs it for all nodes that share the database.
import type { Store, UnitOptions } from "../store/store.js";
import type { JobRow } from "../store/tables/tables.js";
import type { Tx } from "../store/transaction.js";
import {
  isLeasedByOther,
  type JobState,
  LEASE_MS,
  type Lease,
  LeaseLostError,
  readJob,
  releaseLease,
  takeLease,
} from "./lease.js";
import { computeBackoffMs, createSchedule, type Pauses, type Schedule, waitAtMost } from "./schedule.js";

/** Work that one node repeats for all nodes: a plain object, which others copy to change its run. */
export interface Job extends Pauses {
  /** Unique; the key of the job in the database and its name in `arbor admin jobs list`. */
  readonly name: string;
  /** What the operator's log says of a failure, such as "expired rows could not be deleted". */
  readonly problem: string;
  /** Whether the job also runs when the service stops. */
  readonly runsAtStop?: boolean;
  /** Whether it deletes or changes rows by the clock for good, so that it must wait after a jump of the clock. */
  readonly waitsAfterClockJump?: boolean;
  /**
   * Whether there is anything to do, without writing; true unless set. It saves the writes of the lease. A job without
   * work still runs once a minute, so that its record stays up to date.
   */
  hasWork?(): Promise<boolean>;
  /** The pause until the next run in milliseconds, where it is now another than the interval; undefined otherwise. */
  nextPauseMs?(): number | undefined;
  /** Called each time that another node turns out to have the lease. */
  onOtherLeader?(): void;
  /** Does the work, and resolves to how many rows or other things it changed. */
  run(run: JobRun): Promise<number>;
}

export interface JobRun {
  /** The fencing number. It is larger than that of every node that ran the job before. */
  readonly fence: number;
  /** The name of this process. */
  readonly holder: string;
  /** Aborted when the service stops, and when another node may have taken over. */
  readonly signal: AbortSignal;
  /**
   * Runs `unit` as {@link Store.write} does, unless another node took over. All that a job writes goes through here.
   *
   * @throws LeaseLostError when another node took over; nothing is written then. The job lets it pass.
   */
  write<T>(unit: (tx: Tx) => Promise<T>, options?: UnitOptions): Promise<T>;
}

export interface JobsDeps {
  readonly store: Store;
  /** The name of this process among all that share the store; no other has the same. */
  readonly holder: string;
  /** Called with failures for the operator's log, once until the job succeeds again. */
  readonly onProblem: (problem: string, error: unknown) => void;
  /** How long a lease lasts unless it is renewed, in milliseconds. */
  readonly leaseMs?: number;
  /** From 0 to below 1; replaced in tests. */
  readonly random?: () => number;
}

/** Runs of jobs with shorter intervals are recorded once a minute, to save writes. */
const SHORT_INTERVAL_MS = 10_000;
const RECORD_MS = 60_000;
/** How often a node looks whether the job of another node is due, in milliseconds, where the interval is longer. */
const POLL_MS = 30_000;
/** How long `stop` waits for the run of one job, in milliseconds. */
const STOP_MS = 5_000;
/** The longest text of an error that is stored. */
const MAX_ERROR_LENGTH = 500;

/** Creates the runner of jobs, which runs nothing before it is started. */
export function createJobs(deps: JobsDeps) {
  const runners: JobRunner[] = [];
  return {
    /** Adds a job. Jobs stop in the reverse order. */
    add(job: Job): void {
      runners.push(new JobRunner(deps, job));
    },
    /** Starts: each job runs now if it is due, then at its interval. */
    start(): void {
      for (const runner of runners) runner.start();
    },
    /**
     * Runs a job now, also when it is not due, unless another node has the lease. Concurrent calls share a run.
     *
     * @returns how many things it changed
     */
    async runNow(name: string): Promise<number> {
      const runner = runners.find((one) => one.name === name);
      if (runner === undefined) throw new RangeError(`there is no job ${name}`);
      return runner.runNow();
    },
    /** Stops all jobs and releases their leases. A run in progress has five seconds to end. */
    async stop(): Promise<void> {
      for (const runner of [...runners].reverse()) await runner.stop();
    },
  };
}

interface Outcome {
  readonly changes: number;
  /** Until the next attempt, in milliseconds, where it is another than the interval. */
  readonly pauseMs?: number;
  /** Whether the job was not run, and failed the last time that any node ran it. */
  readonly isFailing?: boolean;
}

/**
 * Runs one job on this node:
 *
 *             it is due and has work, and this node gets the lease
 *   waiting ──────────────────────────────────────────────────────> running
 *      │    <──────────────────────────────────────────────────────    │
 *      │ stop                                                          │ stop: its signal is aborted
 *      └────────────────────────> stopping <───────────────────────────┘
 *                                 runs jobs with `runsAtStop` once more, and releases the lease
 */
class JobRunner {
  readonly #deps: JobsDeps;
  readonly #job: Job;
  readonly #leaseMs: number;
  readonly #random: () => number;
  readonly #leaseDeps: Parameters<typeof takeLease>[0];
  readonly #schedule: Schedule;
  /** The attempt in progress, which may find nothing to do. */
  #attempt: Promise<Outcome> | undefined;
  /** Ends the run in progress. */
  #current: AbortController | undefined;
  #wasLeader = false;
  #isStopping = false;
  #isReported = false;

  constructor(deps: JobsDeps, job: Job) {
    const { store, holder, onProblem, leaseMs = LEASE_MS, random = Math.random } = deps;
    this.#deps = deps;
    this.#job = job;
    this.#leaseMs = leaseMs;
    this.#random = random;
    this.#leaseDeps = { store, name: job.name, holder, leaseMs };
    this.#schedule = createSchedule({
      ...job,
      random,
      run: async () => {
        const { pauseMs = job.nextPauseMs?.(), isFailing = false } = await this.#runIfIdle(false);
        this.#isReported &&= isFailing;
        return pauseMs;
      },
      onFailure: (error) => {
        if (!this.#isReported) onProblem(`${job.problem} and will be tried again`, error);
        this.#isReported = true;
      },
    });
  }

  get name(): string {
    return this.#job.name;
  }

  start(): void {
    this.#schedule.start();
  }

  async runNow(): Promise<number> {
    return (await this.#runIfIdle(true)).changes;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#current?.abort(new Error("the service is stopping"));
    await Promise.all([this.#schedule.stop(), waitAtMost(this.#attempt, STOP_MS)]);
    try {
      if (this.#job.runsAtStop) await this.#runAtStop();
    } catch (error) {
      this.#deps.onProblem(`${this.#job.problem} before the service stopped`, error);
    }
    // Where this fails, the lease ends by itself.
    if (this.#wasLeader) await releaseLease(this.#leaseDeps).catch(() => {});
  }

  // Concurrent callers share an attempt.
  #runIfIdle(isForced: boolean): Promise<Outcome> {
    this.#attempt ??= this.#runIfDue(isForced).finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async #runIfDue(isForced: boolean): Promise<Outcome> {
    const { store, holder } = this.#deps;
    const job = this.#job;
    const state = await store.read((tx) => readJob(tx, job.name));
    const notRun = { changes: 0, isFailing: state.row.failures > 0 };
    if (isLeasedByOther(state, holder)) {
      job.onOtherLeader?.();
      return { ...notRun, pauseMs: Math.min(job.intervalMs, POLL_MS) };
    }
    const leftMs = isForced ? 0 : computeDelayMs(state, job);
    if (leftMs > 0) return { ...notRun, pauseMs: Math.min(leftMs, POLL_MS) };
    const mustRun = job.hasWork === undefined || (!isForced && isRecordDue(state, job));
    if (!mustRun && !(await job.hasWork?.())) return { changes: 0 };
    const lease = await takeLease(this.#leaseDeps, state);
    if (lease === undefined) return notRun;
    this.#wasLeader = true;
    // Before the run there is no signal that tells it to end.
    if (this.#isStopping && !isForced) return { changes: 0 };
    try {
      return { changes: await this.#run(lease, state) };
    } catch (error) {
      if (error instanceof LeaseLostError) return { changes: 0 };
      throw error;
    }
  }

  async #run(lease: Lease, before: JobState): Promise<number> {
    const job = this.#job;
    const controller = new AbortController();
    this.#current = controller;
    const renewal = setInterval(() => void this.#renew(lease, controller), this.#leaseMs / 3);
    const startMs = performance.now();
    const record = (finish: (state: JobState) => JobRow) =>
      lease.write((tx, state) =>
        tx.jobs.put({ ...finish(state), startTimeMs: before.nowMs, durationMs: msSinceStart() }),
      );
    const msSinceStart = () => Math.round(performance.now() - startMs);
    try {
      const changes = await job.run({
        fence: lease.fence,
        holder: this.#deps.holder,
        signal: controller.signal,
        write: (unit, options) => lease.write(unit, options),
      });
      if (isRecordDue(before, job)) {
        await record(({ row }) => ({ ...row, changes, failures: 0, nextTimeMs: before.nowMs + job.intervalMs }));
      }
      return changes;
    } catch (error) {
      if (error instanceof LeaseLostError) throw error;
      // The log has the error in any case.
      await record((state) => this.#buildFailedRow(state, error)).catch(() => {});
      throw error;
    } finally {
      clearInterval(renewal);
      this.#current = undefined;
    }
  }

  #buildFailedRow({ row, nowMs }: JobState, error: unknown): JobRow {
    const failures = row.failures + 1;
    return {
      ...row,
      ...{ failures, changes: null, errorTimeMs: nowMs },
      error: String(error instanceof Error ? error.message : error).slice(0, MAX_ERROR_LENGTH),
      nextTimeMs: nowMs + Math.round(computeBackoffMs(this.#job, failures, this.#random)),
    };
  }

  async #renew(lease: Lease, controller: AbortController): Promise<void> {
    // What the job writes renews the lease as well.
    if (lease.ageMs() < this.#leaseMs / 3) return;
    try {
      await lease.write(async () => {});
    } catch (error) {
      if (error instanceof LeaseLostError || lease.ageMs() >= this.#leaseMs) controller.abort(error);
    }
  }

  async #runAtStop(): Promise<void> {
    const last = this.#runIfIdle(true);
    if (!(await waitAtMost(last, STOP_MS))) {
      this.#current?.abort();
      throw new Error(`it took longer than ${STOP_MS / 1_000} s`);
    }
    await last;
  }
}

/** In how many milliseconds the job is due. A time that is too far away was written with a wrong clock. */
function computeDelayMs({ row, nowMs }: JobState, { intervalMs, maxBackoffMs = 60_000 }: Pauses): number {
  const leftMs = (row.nextTimeMs ?? 0) - nowMs;
  return leftMs > Math.max(intervalMs, maxBackoffMs) ? 0 : leftMs;
}

function isRecordDue({ row, nowMs }: JobState, { intervalMs }: Pauses): boolean {
  if (intervalMs >= SHORT_INTERVAL_MS || row.failures > 0 || row.startTimeMs === null) return true;
  return Math.abs(nowMs - row.startTimeMs) >= RECORD_MS;
}
