// One process at a time, between processes that only share a directory. Node
// has no locks that end with a process, so a lock is a file that says whose it
// is, and that of a process which is gone is taken away.
import { randomUUID } from "node:crypto";
import { readlinkSync } from "node:fs";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { failure } from "./failure.js";

/** Nobody works under a lock for this long, in milliseconds: every request under it has a deadline far shorter. */
const STALE_MS = 60_000;

/** How long to wait for a lock unless told otherwise, in milliseconds. */
const WAIT_MS = 30_000;

const POLL_MS = 50;

/** Those that end a command by the hand of a person or of a shell that goes away. */
const INTERRUPTS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Runs `work` while no other process does under the same lock. The first interrupt meanwhile takes
 * effect when it is done; a second ends the process at once.
 *
 * @param lock the file of the lock, in a directory that exists
 * @param waitMs how long to wait for others, in milliseconds
 * @throws ConnectError UNAVAILABLE when others hold it all that time
 */
export async function withLock<T>(lock: string, work: () => Promise<T>, waitMs = WAIT_MS): Promise<T> {
  const mark = `${place()} ${process.pid} ${randomUUID()}`;
  await acquire(lock, mark, waitMs);
  const interrupt = holdInterrupts();
  try {
    return await work();
  } finally {
    // Another's, if this process stood still until its own was taken for that of a dead one.
    if ((await textOf(lock)) === mark) await rm(lock, { force: true });
    interrupt();
  }
}

async function acquire(lock: string, mark: string, waitMs: number): Promise<void> {
  const endMs = performance.now() + waitMs;
  while (!(await made(lock, mark))) {
    if (await isStale(lock)) await breakStale(lock);
    if (performance.now() > endMs) {
      const advice = `if none does, remove it and ${guardOf(lock)}`;
      throw failure(Code.Unavailable, `another process holds the lock ${lock}; ${advice}`);
    }
    await sleep(POLL_MS);
  }
}

async function made(file: string, text: string): Promise<boolean> {
  try {
    await writeFile(file, text, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function isStale(lock: string): Promise<boolean> {
  const found = await stat(lock).catch(() => undefined);
  if (found === undefined) return false;
  if (Date.now() - found.mtimeMs > STALE_MS) return true;
  const [where, pid = ""] = (await textOf(lock)).split(" ");
  return where === place() && /^[1-9]\d*$/.test(pid) && !isRunning(Number(pid));
}

// Of several who find the same stale lock, the second would take away the new lock of the first. So
// only whoever makes the guard looks again and takes it away.
async function breakStale(lock: string): Promise<void> {
  const guard = guardOf(lock);
  if (!(await made(guard, ""))) return;
  try {
    if (await isStale(lock)) await rm(lock, { force: true });
  } finally {
    await rm(guard, { force: true });
  }
}

function guardOf(lock: string): string {
  return `${lock}.break`;
}

async function textOf(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

// Where a pid means something: containers that share a home directory, even a host name, count their own.
function place(): string {
  let namespace = "";
  try {
    namespace = readlinkSync("/proc/self/ns/pid");
  } catch {
    // Not Linux: there are no others.
  }
  return encodeURIComponent(hostname() + namespace);
}

// Between the answer that changes a refresh token and the write of the new one an interrupt would end the login.
function holdInterrupts(): () => void {
  const arrived: NodeJS.Signals[] = [];
  const hold = (signal: NodeJS.Signals) => {
    arrived.push(signal);
  };
  for (const signal of INTERRUPTS) process.once(signal, hold);
  return () => {
    for (const signal of INTERRUPTS) process.off(signal, hold);
    for (const signal of arrived) process.kill(process.pid, signal);
  };
}
