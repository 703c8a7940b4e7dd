// Runs programs in a root file system of their own, with processes, network and mounts that end with them.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
const START_MS = 60_000;

/** Where and as whom programs run. */
export interface Sandbox {
  /** The root file system. */
  readonly root: string;
  /** Whether nothing below the root can be written to, except `/tmp` and the mounts. */
  readonly readOnly?: boolean;
  /** Directories of this machine by their paths in the sandbox. */
  readonly mounts?: Readonly<Record<string, string>>;
  /** Numbers of user and group, separated by a colon. Without them, root with all its rights. */
  readonly user?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** How a program ended. */
export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program that runs as the first process of its sandbox. */
export interface Running {
  /** What comes before a command of this machine to run it in the network of the sandbox. */
  readonly inNetwork: readonly string[];
  /** Resolves when a line of standard output matches. @throws Error when the program ends before. */
  waitForOutput(pattern: RegExp): Promise<RegExpExecArray>;
  /** Runs a command beside the program, as the same user. */
  execute(command: readonly string[]): Promise<Outcome>;
  /** Of the first process, from `/proc`. */
  readStatus(): string;
  /** Sends SIGTERM, and tells how the program ended. */
  stop(): Promise<{ readonly code: number | null; readonly stderr: string }>;
  kill(): void;
}

/** Runs a command to its end in a sandbox. One that does not end is killed after a minute, and its code is null. */
export async function runIn(sandbox: Sandbox, command: readonly string[]): Promise<Outcome> {
  const child = spawn("bwrap", [...argumentsOf(sandbox), ...command], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: START_MS,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code, stdout, stderr };
}

/** Starts a command as the first process of a sandbox. */
export async function startIn(sandbox: Sandbox, command: readonly string[]): Promise<Running> {
  const args = ["--info-fd", "3", "--as-pid-1", ...argumentsOf(sandbox), ...command];
  const child = spawn("bwrap", args, { stdio: ["ignore", "pipe", "pipe", "pipe"] });
  const ended = once(child, "close");
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.on("data", (chunk: Buffer) => {
      output[name] += chunk.toString();
    });
  }
  const { "child-pid": pid } = JSON.parse(await text(child.stdio[3] as Readable)) as { "child-pid": number };
  const enter = ["nsenter", `--target=${pid}`];
  return {
    inNetwork: [...enter, "--net"],
    waitForOutput: (pattern) => waitFor(() => pattern.exec(output.stdout), child, output),
    async execute(command) {
      const all = [...enter, "--mount", "--pid", "--net", "--ipc", "--uts", "--root", "--wd", ...asUser(sandbox)];
      const env = Object.entries(sandbox.env).map(([name, value]) => `${name}=${value}`);
      const [program = "", ...args] = [...all, "env", "-i", ...env, ...command];
      return run(program, args, { timeout: START_MS }).then(
        ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
        ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
      );
    },
    readStatus: () => readFileSync(`/proc/${pid}/status`, "utf8"),
    async stop() {
      process.kill(pid, "SIGTERM");
      const [code] = await ended;
      return { code, stderr: output.stderr };
    },
    kill: () => child.exitCode === null && process.kill(pid, "SIGKILL"),
  };
}

async function waitFor(
  find: () => RegExpExecArray | null,
  child: ChildProcess,
  output: { stderr: string },
): Promise<RegExpExecArray> {
  const deadlineMs = performance.now() + START_MS;
  while (performance.now() < deadlineMs) {
    const found = find();
    if (found !== null) return found;
    if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}: ${output.stderr}`);
    await sleep(20);
  }
  throw new Error(`did not print it: ${output.stderr}`);
}

function argumentsOf(sandbox: Sandbox): string[] {
  const { root, readOnly = false, mounts = {}, env, cwd = "/" } = sandbox;
  return [
    ...[readOnly ? "--ro-bind" : "--bind", root, "/", "--proc", "/proc", "--dev", "/dev"],
    ...["--perms", "1777", "--tmpfs", "/tmp"],
    ...Object.entries(mounts).flatMap(([path, source]) => ["--bind", source, path]),
    ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--die-with-parent", "--cap-add", "ALL"],
    ...["--clearenv", ...Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value])],
    ...["--chdir", cwd, "--", ...asUser(sandbox)],
  ];
}

// As container engines start a process: without any right, and without a way to gain one.
function asUser({ user }: Sandbox): string[] {
  if (user === undefined) return [];
  const [uid, gid] = user.split(":");
  return [
    "setpriv",
    `--reuid=${uid}`,
    `--regid=${gid}`,
    "--clear-groups",
    "--inh-caps=-all",
    "--bounding-set=-all",
    "--no-new-privs",
  ];
}
