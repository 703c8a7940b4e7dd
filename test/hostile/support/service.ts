// The service as a process of its own on one processor, as it was built in this
// tree or in another one.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { stopChild } from "../../support/child-process.js";
import { waitUntil } from "../../support/wait-until.js";
import { workersOf } from "../../support/workers.js";

const HERE = fileURLToPath(new URL("../../../", import.meta.url));
const REPORT_MEMORY = new URL("./report-memory.mjs", import.meta.url).href;
const SERVER_CPU = 0;
const LOAD_CPU = 1;
/** Small, so that what attacks keep on the heap ends the process as it would end one in a small container. */
const HEAP = "--max-old-space-size=512";
const START_MS = 30_000;
const MEMORY_MS = 20_000;
const LOG_LINES = 40;

/** The tree whose service is attacked: this one, unless HOSTILE_ROOT names another that has `node_modules`. */
export const ROOT = process.env.HOSTILE_ROOT ?? HERE;

/** How many workers the service has; undefined where it is one process. */
export const WORKERS = process.env.HOSTILE_WORKERS;

/** A running service. */
export interface ServiceProcess {
  readonly url: string;
  readonly port: number;
  /** Of the first process, if it has workers. */
  readonly pid: number;
  /** Where its data is. */
  readonly data: string;
  /** Whether it still runs. */
  alive(): boolean;
  /** How it ended, and its last log lines; empty while it runs. */
  ending(): string;
  /** How many workers have ended since this was asked last; 0 where there are none. */
  takeWorkerEnds(): number;
  /** Resident memory in bytes, of all its processes; 0 when it is gone. */
  rssBytes(): number;
  /** The most resident memory since {@link resetPeak}, in bytes. */
  peakBytes(): number;
  resetPeak(): void;
  /** Collects its garbage and tells what is left. */
  memory(): Promise<NodeJS.MemoryUsage>;
  signal(name: NodeJS.Signals): void;
  stop(): Promise<void>;
}

let isBuilt = process.env.HOSTILE_BUILT !== undefined;

/** Compiles the service, once a process; not at all where HOSTILE_BUILT says that it just was. */
export function build(): void {
  if (isBuilt && existsSync(join(ROOT, "dist", "main.js"))) return;
  execFileSync("npm", ["run", "-s", "build"], { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  isBuilt = true;
}

/** The words to put before a command that is to run on the processor of the load, or of the service. */
export function onCpu(side: "service" | "load"): readonly string[] {
  if (availableParallelism() < 2 || spawnSync("taskset", ["-V"]).status !== 0) return [];
  return ["taskset", "-c", String(side === "service" ? SERVER_CPU : LOAD_CPU)];
}

function spawnNode(
  side: "service" | "load",
  args: readonly string[],
  options: { readonly ipc: boolean; readonly output: "pipe" | "inherit" },
): ChildProcess {
  const [program = process.execPath, ...before] = [...onCpu(side), process.execPath];
  const env = { ...process.env };
  for (const name of Object.keys(env)) if (name.startsWith("ARBOR_") || name === "NODE_TEST_CONTEXT") delete env[name];
  return spawn(program, [...before, ...args], {
    cwd: HERE,
    env,
    stdio: ["ignore", options.output, options.output, ...(options.ipc ? (["ipc"] as const) : [])],
  });
}

/** Runs a program of this folder beside the service, on the other processor, with a channel to it. */
export function spawnLoad(file: string, ...args: readonly string[]): ChildProcess {
  const path = fileURLToPath(new URL(file, import.meta.url));
  return spawnNode("load", ["--import", "tsx", path, ...args], { ipc: true, output: "inherit" });
}

/** How urgent processes are, as `nice` says it. */
const NICENESS = { measured: -10, attack: 15 } as const;

/**
 * Makes what is measured more urgent than whatever else the machine does, where the system allows it, and
 * attackers less urgent than the good client, whose processor they share.
 */
export function setUrgency({ pid }: ChildProcess, urgency: keyof typeof NICENESS): void {
  try {
    if (pid !== undefined) setPriority(pid, NICENESS[urgency]);
  } catch {
    // Only root may have more than others.
  }
}

/** Runs an `arbor` command on the host and returns what it prints. */
export function arbor(...args: readonly string[]): Promise<string> {
  const child = spawnNode("load", [join(ROOT, "dist", "main.js"), ...args], { ipc: false, output: "pipe" });
  let [stdout, stderr] = ["", ""];
  child.stdout?.on("data", (chunk) => (stdout += chunk));
  child.stderr?.on("data", (chunk) => (stderr += chunk));
  return new Promise((resolve, reject) => {
    child.on("close", (code) => {
      if (code === 0) resolve(stdout.trim());
      else reject(new Error(`arbor ${args[0]} ended with ${code}: ${stderr}`));
    });
  });
}

/** Starts `arbor serve` on a free port of 127.0.0.1 and waits until it says that it is ready. */
export async function startService(data: string, ...args: readonly string[]): Promise<ServiceProcess> {
  build();
  const command = ["serve", "--data", data, "--listen", "127.0.0.1:0", "--log-level", "warn"];
  if (WORKERS !== undefined) command.push("--workers", WORKERS);
  command.push(...args);
  const node = [HEAP, "--expose-gc", "--import", REPORT_MEMORY, join(ROOT, "dist", "main.js")];
  const child = spawnNode("service", [...node, ...command], { ipc: true, output: "pipe" });
  const { stdout, stderr, pid } = child;
  if (stdout === null || stderr === null || pid === undefined) throw new Error("the service did not start");
  const log: string[] = [];
  let workerEnds = 0;
  createInterface({ input: stderr }).on("line", (line) => {
    if (line.includes('"msg":"a worker has ended and is replaced"')) workerEnds++;
    log.push(line.slice(0, 300));
    if (log.length > LOG_LINES) log.shift();
  });
  setUrgency(child, "measured");
  const closed = once(child, "close");
  closed.catch(() => {});
  const ending = () => {
    if (child.exitCode === null && child.signalCode === null) return "";
    return `it ended with ${child.signalCode ?? child.exitCode}\n${log.join("\n")}`;
  };
  const url = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the service took too long to start")), START_MS);
    createInterface({ input: stdout }).on("line", (line) => {
      const found = /^arbor listening on (https?:\/\/127\.0\.0\.1:\d+)$/.exec(line)?.[1];
      if (found === undefined) return;
      clearTimeout(timer);
      resolve(found);
    });
    closed.then(() => reject(new Error(ending())), reject);
  });
  const processes = () => [pid, ...(WORKERS === undefined ? [] : workersOf(pid))];
  const statusLine = (name: string) => {
    let bytes = 0;
    try {
      for (const one of processes()) {
        const status = readFileSync(`/proc/${one}/status`, "utf8");
        bytes += Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0) * 1024;
      }
    } catch {
      // It is gone.
    }
    return bytes;
  };
  return {
    url,
    port: Number(new URL(url).port),
    pid,
    data,
    alive: () => ending() === "",
    ending,
    rssBytes: () => statusLine("VmRSS"),
    peakBytes: () => statusLine("VmHWM"),
    takeWorkerEnds() {
      const ends = workerEnds;
      workerEnds = 0;
      return ends;
    },
    resetPeak() {
      // Linux: 5 sets the peak back to what is resident now (proc_pid_clear_refs).
      if (child.exitCode === null) for (const one of processes()) writeFileSync(`/proc/${one}/clear_refs`, "5");
    },
    async memory() {
      const usage = new Promise<NodeJS.MemoryUsage>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error("the service does not tell its memory")), MEMORY_MS);
        child.once("message", (usage) => {
          clearTimeout(timer);
          resolve(usage as NodeJS.MemoryUsage);
        });
        child.send("memory", (error) => error && reject(error));
      });
      const [own, ...workers] = await Promise.all([usage, ...processes().slice(1).map(readWorkerMemory)]);
      for (const worker of workers)
        for (const [name, bytes] of Object.entries(worker)) own[name as keyof NodeJS.MemoryUsage] += bytes;
      return own;
    },
    signal: (name) => void child.kill(name),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGCONT");
      await stopChild(child, closed, 15_000);
    },
  };
}

async function readWorkerMemory(pid: number): Promise<NodeJS.MemoryUsage> {
  const file = join(tmpdir(), `arbor-memory-${pid}.json`);
  rmSync(file, { force: true });
  process.kill(pid, "SIGUSR2");
  const text = await waitUntil(() => existsSync(file) && readFileSync(file, "utf8"), MEMORY_MS);
  rmSync(file);
  return JSON.parse(text) as NodeJS.MemoryUsage;
}
