// Files that several processes change: they are replaced atomically, under a lock. Node has no locks that end with
// their process, so a lock is a file with the id of its process, and is removed when that process has ended.
import { randomUUID } from "node:crypto";
import { closeSync, fchmodSync, fsyncSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDiskFault } from "../kernel/disk-errors.js";
import { openNewFile } from "../kernel/new-file.js";
import { Code, CommandError, invalidFlag } from "./errors.js";

/** The age at which a lock is stale, in milliseconds. The requests under one take at most 10 s each. */
const STALE_MS = 30_000;
/**
 * The same for a file without its text, which is written at once, and for the guard, which is removed at once: the process
 * was killed between, or the disk is full.
 */
const UNFINISHED_MS = 5_000;

/** How long to wait for a lock, in milliseconds: until one that nobody holds is stale, and its guard as well. */
const WAIT_MS = STALE_MS + 3 * UNFINISHED_MS;

const POLL_MS = 50;

/** The signals with which a person or a closing shell stops a command. */
const INTERRUPTS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Runs `work` under a lock that one process can hold at a time. The first interrupt takes effect after `work`, the
 * second one ends the process at once.
 *
 * @param lock the path of the lock, in an existing directory
 * @param waitMs how long to wait for the lock, in milliseconds
 * @throws CommandError UNAVAILABLE when other processes hold it all the time
 */
export async function withLock<T>(lock: string, work: () => Promise<T>, waitMs = WAIT_MS): Promise<T> {
  const owner = `${pidNamespace()} ${process.pid} ${randomUUID()}`;
  await acquire(lock, owner, waitMs);
  const releaseInterrupts = deferInterrupts();
  try {
    return await work();
  } finally {
    // Not removed if it is the lock of another process, which took over because this one was suspended for too long.
    if ((await readText(lock)) === owner) await rm(lock, { force: true });
    releaseInterrupts();
  }
}

async function acquire(lock: string, owner: string, waitMs: number): Promise<void> {
  const endMs = performance.now() + waitMs;
  while (!(await createFile(lock, owner))) {
    if (await isStale(lock)) await breakStale(lock);
    if (performance.now() > endMs) {
      const advice = `if none does, remove it and ${guardPath(lock)}`;
      throw new CommandError(Code.Unavailable, `another process holds the lock ${lock}; ${advice}`);
    }
    await sleep(POLL_MS);
  }
}

async function createFile(file: string, text: string): Promise<boolean> {
  try {
    await writeFile(file, text, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    // On a full disk the file exists, and has no text.
    if (isDiskFault(error)) await rm(file, { force: true }).catch(() => {});
    throw error;
  }
}

async function isStale(lock: string): Promise<boolean> {
  const found = await stat(lock).catch(() => undefined);
  if (found === undefined) return false;
  if (Date.now() - found.mtimeMs > (found.size === 0 ? UNFINISHED_MS : STALE_MS)) return true;
  const [namespace, pid = ""] = (await readText(lock)).split(" ");
  return namespace === pidNamespace() && /^[1-9]\d*$/.test(pid) && !isRunning(Number(pid));
}

// When several processes find the same stale lock, the second could remove the new lock of the first. So only the
// process that creates the guard file checks again and removes the lock.
async function breakStale(lock: string): Promise<void> {
  const guard = guardPath(lock);
  if (!(await createFile(guard, ""))) {
    if (await isStale(guard)) await rm(guard, { force: true });
    return;
  }
  try {
    if (await isStale(lock)) await rm(lock, { force: true });
  } finally {
    await rm(guard, { force: true });
  }
}

function guardPath(lock: string): string {
  return `${lock}.break`;
}

async function readText(file: string): Promise<string> {
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

// A pid is unique within its host and namespace only, and containers may share a home directory and even a host name.
function pidNamespace(): string {
  let namespace = "";
  try {
    namespace = readlinkSync("/proc/self/ns/pid");
  } catch {
    // Only Linux has namespaces.
  }
  return encodeURIComponent(hostname() + namespace);
}

// An interrupt after a new refresh token was received and before it was written would end the login.
function deferInterrupts(): () => void {
  const arrived: NodeJS.Signals[] = [];
  const record = (signal: NodeJS.Signals) => {
    arrived.push(signal);
  };
  for (const signal of INTERRUPTS) process.once(signal, record);
  return () => {
    for (const signal of INTERRUPTS) process.off(signal, record);
    for (const signal of arrived) process.kill(process.pid, signal);
  };
}

/**
 * Replaces a file atomically: it has its old or its new text, even when the process or the machine stops. Of two
 * concurrent calls, one fails.
 *
 * @param mode the permissions of the file afterwards, whatever the umask is
 * @throws ApiError FAILED_PRECONDITION when another user could put a file in its place
 */
export async function replaceFile(file: string, text: string, mode: number): Promise<void> {
  const draft = `${file}.new`;
  // A killed process may have left its draft.
  await rm(draft, { force: true });
  try {
    const descriptor = openNewFile(draft);
    try {
      writeFileSync(descriptor, text);
      fchmodSync(descriptor, mode);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncDirectory(dirname(file));
}

/** A file for a secret, which is empty until it is written. */
export interface SecretFile {
  /** Its whole path. */
  readonly path: string;
  /** Writes the text durably. */
  write(text: string): void;
  /** Closes it, and removes it unless it was written. */
  close(): void;
}

/**
 * Creates a file that only its owner can read, where there is neither a file nor a link.
 *
 * @throws CommandError INVALID_ARGUMENT when there is, or it cannot be created
 * @throws ApiError FAILED_PRECONDITION when another user could put a file in its place
 */
export function createSecretFile(flag: string, file: string): SecretFile {
  const path = resolve(file);
  const descriptor = openFlagFile(flag, path);
  let isWritten = false;
  return {
    path,
    write(text) {
      writeFileSync(descriptor, text);
      fsyncSync(descriptor);
      isWritten = true;
    },
    close() {
      closeSync(descriptor);
      if (!isWritten) rmSync(path, { force: true });
    },
  };
}

function openFlagFile(flag: string, path: string): number {
  try {
    return openNewFile(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST")
      throw invalidFlag(flag, `${path} exists already, and a secret is written to a new file alone`);
    if (typeof code === "string" && /^E[A-Z]+$/.test(code))
      throw invalidFlag(flag, `${path} cannot be created (${code})`);
    throw error;
  }
}

/**
 * Finds out whether {@link replaceFile} can write a file of some size.
 *
 * @throws Error of the operating system when it cannot
 */
export async function assertReplaceable(file: string, bytes: number): Promise<void> {
  const draft = `${file}.new`;
  await rm(draft, { force: true });
  try {
    const descriptor = openNewFile(draft);
    try {
      // Not zeros, for which some file systems need no room.
      writeFileSync(descriptor, Buffer.alloc(bytes, "x"));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } finally {
    await rm(draft, { force: true }).catch(() => {});
  }
}

// Makes the rename durable. Errors are ignored, because some file systems cannot sync directories.
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, "r");
  await handle.sync().catch(() => {});
  await handle.close();
}
