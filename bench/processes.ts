// Starting servers and load generators, each on its own processor.
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { accessSync, constants, readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** The processor of the servers, and that of the load generators. */
export const SERVER_CPU = 0;
export const LOAD_CPU = 1;
/** The processors that a program may use, as `taskset` has them. */
export type Cpus = string | number;
/** Ticks of the processor time in /proc are hundredths of a second on every Linux that Node runs on. */
const TICK_US = 10_000;

const packages: Readonly<Record<string, string>> = {
  wrk: "wrk",
  h2load: "nghttp2-client",
  taskset: "util-linux",
};

/** Ends the process with a message if one of these programs is not installed. */
export function requireTools(...tools: readonly string[]): void {
  const missing = tools.filter(
    (tool) => !(process.env.PATH ?? "").split(delimiter).some((dir) => isProgram(dir, tool)),
  );
  if (missing.length === 0) return;
  for (const tool of missing) {
    console.error(
      `${tool} is needed for this benchmark and is not installed (Debian package ${packages[tool] ?? tool})`,
    );
  }
  process.exit(2);
}

function isProgram(directory: string, name: string): boolean {
  try {
    accessSync(join(directory, name), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Fills the time that load generators leave of their processor, so that all phases of a benchmark have the same: on many
 * machines a busy processor slows the one beside it, by 10 to 18 % where this was measured.
 *
 * @returns a function that ends it
 */
export function keepLoadCpuBusy(): () => void {
  const spin = ["-n", "19", "taskset", "-c", String(LOAD_CPU), process.execPath, "-e", "for (;;);"];
  const child = spawn("nice", spin, { stdio: "ignore" });
  const stop = () => void child.kill("SIGKILL");
  process.once("exit", stop);
  return stop;
}

/** A server under load. */
export interface Running {
  /** Processor time that it and its child processes used so far, in microseconds. */
  cpuUs(): number;
  /** Peak memory so far, in megabytes. */
  peakMegabytes(): number;
  /** Memory in use now, in megabytes. */
  residentMegabytes(): number;
  stop(): Promise<void>;
}

/**
 * Starts a server on its processor, in the current directory by default; resolves when it writes its first line.
 *
 * @param variables is added to the variables of this process
 * @param cpus where it runs
 */
export async function startServer(
  args: readonly string[],
  cwd?: string,
  variables: Readonly<Record<string, string>> = {},
  cpus: Cpus = SERVER_CPU,
): Promise<Running> {
  // Variables of benchmarks and tests are not settings, and a server rejects what is none.
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ARBOR_")));
  const child = spawn("taskset", ["-c", String(cpus), process.execPath, ...args], {
    env: { ...inherited, ...variables },
    stdio: ["ignore", "pipe", "inherit"],
    ...(cwd !== undefined && { cwd }),
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await firstLine(child);
  return {
    cpuUs: () => cpuUsOfTree(child.pid ?? 0),
    peakMegabytes: () => Math.round(kilobytesOf(child.pid ?? 0, "VmHWM") / 1000),
    residentMegabytes: () => Math.round(kilobytesOf(child.pid ?? 0, "VmRSS") / 1000),
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

function kilobytesOf(pid: number, field: "VmHWM" | "VmRSS"): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

function firstLine(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${child.spawnargs.join(" ")} ended with code ${code}`)));
    if (child.stdout) createInterface({ input: child.stdout }).once("line", () => resolve());
  });
}

/** Processor time that a process and its child processes used so far, in microseconds. */
export function cpuUsOfTree(pid: number): number {
  return [pid, ...childrenOf(pid)].reduce((sum, each) => sum + cpuUsOf(each), 0);
}

function childrenOf(pid: number): number[] {
  const running = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return running.map(Number).filter((each) => parentOf(each) === pid);
}

/** The parent of a process; undefined when the process has ended. */
export function parentOf(pid: number): number | undefined {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  } catch {
    return undefined;
  }
}

// The scheduler counts nanoseconds per thread, if the kernel exposes it. A slice of half a second is too
// short for hundredths of a second. Threads of a server do not end while it runs.
function cpuUsOf(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  try {
    const nanoseconds = readdirSync(tasks).map((id) => readFileSync(`${tasks}/${id}/schedstat`, "utf8").split(" ")[0]);
    return nanoseconds.reduce((sum, each) => sum + Number(each), 0) / 1000;
  } catch {
    return cpuTicks(pid) * TICK_US;
  }
}

// User and system time are the 14th and 15th field, those of children that have ended the two after them; the second, a name,
// may hold blanks.
function cpuTicks(pid: number, withEnded = false): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return fields.slice(11, withEnded ? 15 : 13).reduce((sum, each) => sum + Number(each), 0);
}

/** Time that the processor of the servers spent on all programs, steal time included, in microseconds. */
export function serverCpuUs(): number {
  return busyUs(SERVER_CPU);
}

/** Time that a processor, or all of them, spent on all programs, steal time included, in microseconds. */
export function busyUs(cpu: number | "" = ""): number {
  const line = new RegExp(`^cpu${cpu} +(.+)$`, "m").exec(readFileSync("/proc/stat", "utf8"))?.[1] ?? "";
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line.split(" ").map(Number);
  return (user + nice + system + irq + softirq + steal) * TICK_US;
}

/** Processor time of this process and of the load generators that it has run, in microseconds. */
export function usedByGeneratorUs(): number {
  return cpuTicks(process.pid, true) * TICK_US;
}

/** A collector of traces; see `trace-sink.ts`. */
export interface TraceSink {
  readonly endpoint: string;
  /** Ends it; resolves to how many spans it got. */
  stop(): Promise<number>;
}

/** Starts a collector of traces on the processor of the load generators. */
export async function startTraceSink(): Promise<TraceSink> {
  const script = fileURLToPath(new URL("./trace-sink.ts", import.meta.url));
  const child = spawn("taskset", ["-c", String(LOAD_CPU), process.execPath, "--import", "tsx", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const nextLine = () => new Promise<string>((resolve) => lines.once("line", resolve));
  return {
    endpoint: await nextLine(),
    async stop() {
      const last = nextLine();
      child.kill("SIGTERM");
      return Number(await last);
    },
  };
}

/** Runs a load generator on its processor and returns what it prints. */
export async function runLoad(command: string, args: readonly string[], cpus: Cpus = LOAD_CPU): Promise<string> {
  const { stdout } = await promisify(execFile)("taskset", ["-c", String(cpus), command, ...args]);
  return stdout;
}

/** A port that is free at the time of the call. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** Moves this process, with all its threads, to the processor of the load generators. */
export function pinSelf(): void {
  execFileSync("taskset", ["-a", "-cp", String(LOAD_CPU), String(process.pid)], { stdio: "ignore" });
}
