// Writes, copies and renames files durably: a file has its name only when all of it is on the disk.
import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { createDirectories } from "../../kernel/directories.js";
import { failedPrecondition } from "../../kernel/errors.js";
import { assertOwnDirectory, openNewFile } from "../../kernel/new-file.js";

/** A file is read and written in chunks of this many bytes. */
const CHUNK_BYTES = 4 * 2 ** 20;

/** How far a step is. */
export interface StepProgress {
  readonly name: string;
  /** In MiB. */
  readonly done: number;
  readonly total: number;
}

/** The size and the hash of a file. */
export interface Digest {
  readonly bytes: number;
  readonly sha256: string;
}

/** Syncs a file, or the names in a directory, to the disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Creates a directory that only its owner can access, with its missing parents, and syncs their names to the disk.
 *
 * @throws ApiError FAILED_PRECONDITION when another user could put files into it
 */
export function createDirectory(directory: string): void {
  assertOwnDirectory(directory);
  const first = createDirectories(directory, 0o700);
  if (first === undefined) return;
  for (let path = resolve(directory); path !== dirname(resolve(first)); path = dirname(path)) syncPath(dirname(path));
}

/** Whether a path, which need not exist, is a directory or within it. Links are followed. */
export function isWithin(path: string, directory: string): boolean {
  const steps = relative(followLinks(directory), followLinks(path));
  return steps !== ".." && !steps.startsWith(`..${sep}`) && !isAbsolute(steps);
}

function followLinks(path: string): string {
  const full = resolve(path);
  if (existsSync(full)) return realpathSync(full);
  return full === dirname(full) ? full : join(followLinks(dirname(full)), basename(full));
}

/** Writes a file that only its owner can read, under a temporary name first. */
export function writeAtomically(file: string, contents: string | Uint8Array): void {
  const partial = `${file}.partial`;
  rmSync(partial, { force: true });
  const descriptor = openNewFile(partial);
  try {
    writeFileSync(descriptor, contents, { flush: true });
  } finally {
    closeSync(descriptor);
  }
  renameDurably(partial, file);
}

/** Renames a synced file, and syncs the directory. */
export function renameDurably(from: string, to: string): void {
  renameSync(from, to);
  syncPath(dirname(to));
}

export function digestFile(file: string, onBytes: (bytes: number) => void): Promise<Digest> {
  return readChunks(file, onBytes);
}

/** Copies a file to a new one that only its owner can read, and syncs it. Resolves to the digest of what was copied. */
export async function copyFile(from: string, to: string, onBytes: (bytes: number) => void): Promise<Digest> {
  const target = openNewFile(to);
  try {
    const digest = await readChunks(from, onBytes, target);
    fsyncSync(target);
    return digest;
  } finally {
    closeSync(target);
  }
}

async function readChunks(file: string, onBytes: (bytes: number) => void, target?: number): Promise<Digest> {
  const source = await open(file, "r");
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  let bytes = 0;
  try {
    for (;;) {
      const { bytesRead } = await source.read(buffer, 0, CHUNK_BYTES);
      if (bytesRead === 0) return { bytes, sha256: hash.digest("hex") };
      const chunk = buffer.subarray(0, bytesRead);
      hash.update(chunk);
      if (target !== undefined) writeFileSync(target, chunk);
      bytes += bytesRead;
      onBytes(bytes);
    }
  } finally {
    await source.close();
  }
}

/**
 * Rejects a directory whose file system has no room.
 *
 * @throws ApiError FAILED_PRECONDITION with what is needed and what is free
 */
export function requireSpace(directory: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(directory);
  const free = bavail * bsize;
  if (free > bytes) return;
  const rule = `${toMiB(bytes)} MiB are needed and ${Math.floor(free / 2 ** 20)} MiB are free`;
  throw failedPrecondition("DISK_SPACE", `${directory}: ${rule}`);
}

/** Bytes as MiB, rounded up. */
export function toMiB(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}
