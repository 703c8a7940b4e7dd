// The process that is fuzzed: the service as users start it, or one that has a planted fault.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { stopChild } from "../../support/child-process.js";
import { tempDir } from "../../support/temp-dir.js";

/** A process to be fuzzed. */
export interface Target {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** A token of the owner of {@link organisation}. */
  readonly token: string;
  /** The uid of a root group. */
  readonly organisation: string;
  /** What the log says that it must not say: errors, and answers of UNKNOWN or 500. At most 20. */
  readonly complaints: readonly string[];
  /** How the process ended; undefined while it runs. */
  describeEnd(): string | undefined;
  /** The resident memory in bytes, now and at most so far; zero where the system does not tell. */
  memory(): { readonly now: number; readonly peak: number };
  /** The processor time that it has taken, in milliseconds; zero where the system does not tell. */
  cpuMs(): number;
  /** Ends the process: by SIGTERM, by SIGKILL where that does not help within 15 s. */
  stop(): Promise<void>;
}

const here = fileURLToPath(new URL("../../../", import.meta.url));
const MAX_COMPLAINTS = 20;
const KEPT_LINES = 30;
const STOP_MS = 15_000;

function node(root: string, args: readonly string[]): ChildProcess {
  const env = { ...process.env };
  for (const name of Object.keys(env)) if (name.startsWith("ARBOR_") || name === "NODE_TEST_CONTEXT") delete env[name];
  return spawn(process.execPath, ["--import", "tsx", ...args], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
}

/**
 * Starts `arbor serve` on an empty data directory with one organisation. The access log is on, as it
 * is for users, and `x-forwarded-for` counts, since reading it is work that peers can cause.
 *
 * @param root the checkout whose service is started
 */
export async function startArbor(root = process.env.HOSTILE_ROOT ?? here): Promise<Target> {
  const data = tempDir();
  const args = ["--data", data, "--listen", "127.0.0.1:0", "--trusted-proxies", "127.0.0.0/8"];
  const target = await targetOf(node(root, ["src/main.ts", "serve", ...args]));
  const made = node(root, ["src/main.ts", "bootstrap", "--org", "acme.example", "--data", data, "--json"]);
  const [stdout, stderr] = await Promise.all([textOf(made.stdout), textOf(made.stderr), once(made, "close")]);
  if (made.exitCode !== 0) {
    await target.stop();
    throw new Error(`bootstrap: ${stderr}`);
  }
  const { group, token } = JSON.parse(stdout) as { readonly group: string; readonly token: string };
  return { ...target, organisation: group, token };
}

/** Starts the server with the fault that is planted for a kind of input; see faulty-server.ts. */
export function startFaulty(kind: string): Promise<Target> {
  return targetOf(node(here, ["test/hostile/wire/faulty-server.ts", kind]));
}

function textOf(stream: NodeJS.ReadableStream | null): Promise<string> {
  return stream === null ? Promise.resolve("") : text(stream);
}

async function targetOf(child: ChildProcess): Promise<Target> {
  const { stdout, stderr, pid } = child;
  if (stdout === null || stderr === null || pid === undefined) throw new Error("the process did not start");
  const complaints: string[] = [];
  const last: string[] = [];
  let ended: string | undefined;

  // Every line passes here; only those that may matter are parsed.
  createInterface({ input: stderr }).on("line", (line) => {
    last.push(line.slice(0, 2_000));
    if (last.length > KEPT_LINES) last.shift();
    if (!isComplaint(line)) return;
    // The lines of a trace belong together.
    if (!line.startsWith("{") && complaints.length > 0) complaints.push(`${complaints.pop()}\n${line}`.slice(0, 4_000));
    else if (complaints.length < MAX_COMPLAINTS) complaints.push(line.slice(0, 2_000));
  });
  const closed = once(child, "close").then(([code, signal]) => {
    ended = `ended with ${code ?? signal}; the log ends:\n${last.filter((line) => !isRequest(line)).join("\n")}`;
  });
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: stdout }).on("line", (line) => {
      const found = /^arbor listening on (http:\/\/127\.0\.0\.1:\d+)$/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    void closed.then(() => reject(new Error(`the process ${ended}`)));
  });
  return {
    url,
    port: Number(new URL(url).port),
    pid,
    token: "token",
    organisation: "0123456789abcdef",
    complaints,
    describeEnd: () => ended,
    memory: () => memoryOf(pid),
    cpuMs: () => cpuMsOf(pid),
    stop: () => stopChild(child, closed, STOP_MS),
  };
}

function isRequest(line: string): boolean {
  return line.startsWith("{") && line.endsWith(',"msg":"request"}');
}

/** The text of INTERNAL where the service is at fault; it stands in the log as an error too. */
export const SERVICE_FAILED = /the(?: |%20)service(?: |%20)failed/;

// Code 2 is UNKNOWN, of which no peer may be the cause. What is no JSON is a warning of Node or the trace of an
// uncaught exception.
function isComplaint(line: string): boolean {
  if (isRequest(line)) return /"status":500\b|"grpcCode":2\b/.test(line);
  return !/^\{"level":"(?:info|debug|trace)"/.test(line);
}

function memoryOf(pid: number): { now: number; peak: number } {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0) * 1024;
    return { now: bytes("VmRSS"), peak: bytes("VmHWM") };
  } catch {
    return { now: 0, peak: 0 };
  }
}

// In hundredths of a second, as the system counts for users (proc(5)).
function cpuMsOf(pid: number): number {
  try {
    const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /, "")
      .split(" ")
      .slice(11, 13)
      .map(Number);
    return (user + system) * 10;
  } catch {
    return 0;
  }
}
