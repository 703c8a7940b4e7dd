// How long something takes, whatever else the machine does meanwhile. A limit of wall-clock time fails on a machine with more
// to do than processors, so tests measure processor time, or time without what this process waited for a processor.
// test/architecture.test.ts finds tests that compare times otherwise.
import { openSync, readdirSync, readFileSync, readSync } from "node:fs";

const TASKS = "/proc/self/task";

/**
 * Starts to measure.
 *
 * @returns tells how much time has passed, in milliseconds, without that in which threads of this process were ready to run
 * and waited for a processor. On other systems than Linux it is all time that has passed.
 */
export function startStopwatch(): () => number {
  const [startMs, waitedMs] = [performance.now(), readWaitedMs()];
  return () => performance.now() - startMs - (readWaitedMs() - waitedMs);
}

/** How much processor time a computation takes, in milliseconds. */
export function measureProcessorMs(compute: () => unknown): number {
  const startMs = readProcessorMs();
  compute();
  return readProcessorMs() - startMs;
}

/** The processor time of a computation in its best try: the garbage collector and a cold cache lengthen others. */
export function measureLeastProcessorMs(compute: () => unknown, tries = 10): number {
  return Math.min(...Array.from({ length: tries }, () => measureProcessorMs(compute)));
}

const threadUsage = (process as { threadCpuUsage?: () => NodeJS.CpuUsage }).threadCpuUsage;

/** The processor time of this thread so far, or else of the process, in milliseconds. */
export function readProcessorMs(): number {
  return toMs((threadUsage ?? process.cpuUsage).call(process));
}

/**
 * The processor time of the main thread so far, in milliseconds, without threads that work at the same time. Where Node does
 * not tell it (before 22.19), Linux does, exact to a few milliseconds.
 */
export const readMainThreadMs = createThreadReader();

function createThreadReader(): () => number {
  if (threadUsage !== undefined) return readProcessorMs;
  try {
    // Kept open, since every turn of the event loop reads it.
    const [file, bytes] = [openSync(`${TASKS}/${process.pid}/schedstat`, "r"), Buffer.alloc(128)];
    return () => Number.parseInt(bytes.toString("latin1", 0, readSync(file, bytes, 0, bytes.length, 0)), 10) / 1e6;
  } catch {
    return readProcessorMs;
  }
}

function toMs({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1000;
}

// The second number of `schedstat` is how long a thread has waited for a processor, in nanoseconds.
function readWaitedMs(): number {
  try {
    return readdirSync(TASKS).reduce((sum, task) => sum + readWaitOf(task), 0);
  } catch {
    return 0;
  }
}

function readWaitOf(task: string): number {
  try {
    return Number(readFileSync(`${TASKS}/${task}/schedstat`, "latin1").split(" ")[1]) / 1e6;
  } catch {
    // A thread that has ended.
    return 0;
  }
}
