// How many workers `--workers auto` means: what the machine, the container or the unit gives this process.
import { readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { dirname, join } from "node:path";

const MAX_WORKERS = 8;
/** The memory of one worker under load; docs/operations.md says what it is made of. */
const WORKER_BYTES = 400 * 1024 * 1024;

/** What a machine has; replaced in tests. */
export interface Machine {
  readonly processors: number;
  readonly memoryBytes: number;
  /** Where the control groups (version 2) are. */
  readonly cgroupRoot: string;
  /** The file that names the group of this process. */
  readonly ownCgroup: string;
}

const thisMachine = (): Machine => ({
  processors: availableParallelism(),
  memoryBytes: totalmem(),
  cgroupRoot: "/sys/fs/cgroup",
  ownCgroup: "/proc/self/cgroup",
});

/** Counts the workers for a value of the setting. */
export function countWorkers(workers: number | "auto", machine = thisMachine()): number {
  if (workers !== "auto") return workers;
  const limits = readCgroupLimits(machine);
  const processors = Math.min(machine.processors, limits.processors);
  const byMemory = Math.min(machine.memoryBytes, limits.memoryBytes) / WORKER_BYTES;
  return Math.max(1, Math.floor(Math.min(processors, MAX_WORKERS, byMemory)));
}

// Of the group of this process and of all above it. Where they cannot be read there are none.
function readCgroupLimits({ cgroupRoot, ownCgroup }: Machine) {
  const limits = { processors: Number.POSITIVE_INFINITY, memoryBytes: Number.POSITIVE_INFINITY };
  const own = /^0::(\/.*)$/m.exec(readText(ownCgroup))?.[1] ?? "/";
  for (let path = own; ; path = dirname(path)) {
    const [quota, period] = readText(join(cgroupRoot, path, "cpu.max"))
      .trim()
      .split(" ")
      .map(Number);
    // "max" is none.
    if (quota && period) limits.processors = Math.min(limits.processors, quota / period);
    const memory = Number(readText(join(cgroupRoot, path, "memory.max")).trim());
    if (memory) limits.memoryBytes = Math.min(limits.memoryBytes, memory);
    if (path === "/") return limits;
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
