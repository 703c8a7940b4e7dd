// The service and its commands as processes of their own.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { spawn } from "../support/child-process.js";
import { type Finished, runCommand } from "../support/command.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";

export type { Finished };

/** A running service. */
export interface Service {
  /** Where it listens, as it said itself. */
  readonly url: string;
  readonly pid: number;
  /** Whether it still runs. */
  alive(): boolean;
  /** Sends a signal. */
  signal(name: NodeJS.Signals): void;
  /** Resolves with the first line of the log from now or before that contains this text, after so many others that do. */
  waitForLog(message: string, after?: number): Promise<Record<string, unknown>>;
  /** How it ended, once it has. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** Sends SIGTERM; tells how it ended and after how many milliseconds. */
  stop(): Promise<Finished & { readonly signal: NodeJS.Signals | null; readonly ms: number }>;
}

function node(args: readonly string[], settings: Readonly<Record<string, string>> = {}): ChildProcess {
  return spawn(process.execPath, args, {
    cwd: PROJECT,
    env: { ...environmentWithoutSettings(), ...settings },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

function outputOf(child: ChildProcess): Promise<[stdout: string, stderr: string]> {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new TypeError("the process has no output");
  return Promise.all([text(stdout), text(stderr)]);
}

/** Runs `arbor` with these arguments. */
export async function arbor(...args: readonly string[]): Promise<Finished> {
  const child = node([...scriptArguments("src/main.ts"), ...args]);
  const [[stdout, stderr], [code]] = await Promise.all([outputOf(child), once(child, "close")]);
  return { code, stdout, stderr };
}

/** `arbor` commands on the host, in the process of the test. */
export interface Host {
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Finished>;
  /** Runs `arbor bootstrap`. */
  bootstrap(data: string, name: string): Promise<Organisation>;
  close(): void;
}

/** Prepares to run commands. */
export function startHost(): Host {
  return {
    run: runCommand,
    async bootstrap(data, name) {
      const made = await runCommand(["bootstrap", "--org", name, "--data", data, "--json"]);
      if (made.code !== 0) throw new Error(made.stderr);
      return JSON.parse(made.stdout) as Organisation;
    },
    close() {},
  };
}

/** What `arbor bootstrap --json` prints. */
export interface Organisation {
  readonly group: string;
  readonly identity: string;
  readonly roleBinding: string;
  readonly token: string;
}

/** Starts `arbor serve` on a free port and waits until it says that it is ready. */
export async function startService(data: string, ...args: readonly string[]): Promise<Service> {
  const child = node([...scriptArguments("src/main.ts"), "serve", "--data", data, "--listen", "127.0.0.1:0", ...args]);
  const { stdout, stderr, pid } = child;
  if (stdout === null || stderr === null || pid === undefined) throw new Error("the service did not start");
  const log = text(stderr);
  const closed = once(child, "close");
  const logLines: string[] = [];
  createInterface({ input: stderr }).on("line", (line) => logLines.push(line));
  const lines: string[] = [];
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: stdout }).on("line", (line) => {
      lines.push(line);
      const url = /^arbor listening on (https?:\/\/127\.0\.0\.1:\d+)$/.exec(line)?.[1];
      if (url !== undefined) resolve(url);
    });
    void closed.then(async ([code]) => reject(new Error(`the service ended with ${code}: ${await log}`)));
  });
  return {
    url: await ready,
    pid,
    alive: () => child.exitCode === null && child.signalCode === null,
    signal: (name) => void child.kill(name),
    async waitForLog(message, after = 0) {
      const deadlineMs = performance.now() + 20_000;
      for (;;) {
        const found = logLines.filter((line) => line.includes(message))[after];
        if (found !== undefined) return JSON.parse(found) as Record<string, unknown>;
        if (performance.now() > deadlineMs) throw new Error(`not logged: ${message}\n${logLines.join("\n")}`);
        await delay(20);
      }
    },
    ended: closed.then(([code, signal]) => ({ code, signal })),
    async stop() {
      const startMs = performance.now();
      child.kill("SIGTERM");
      const [code, signal] = await closed;
      return { code, signal, stdout: lines.join("\n"), stderr: await log, ms: performance.now() - startMs };
    },
  };
}
