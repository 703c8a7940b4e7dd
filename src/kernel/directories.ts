// Directories that operators name. Node's own recursive `mkdir` never ends where the system says of a new directory that a
// part of its path is missing although its parent exists, as below /proc. This file loads no RPC library, because the
// credential helper of docker uses it.
import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Creates a directory with its missing parents.
 *
 * @param mode the permissions of each, less the umask
 * @returns the topmost directory that was created; undefined where there was nothing to create
 * @throws Error of the operating system with its code, such as EACCES, EROFS, ENOSPC, or EEXIST for a file; ENOTSUP where
 * the parent accepts no directories
 */
export function createDirectories(directory: string, mode = 0o777): string | undefined {
  const missing: string[] = [];
  for (let path = resolve(directory); statSync(path, { throwIfNoEntry: false }) === undefined; path = dirname(path)) {
    missing.push(path);
    // The root itself cannot be read.
    if (path === dirname(path)) break;
  }
  // For one that exists the system says whether it is a directory.
  if (missing.length === 0 && statSync(directory).isDirectory()) return undefined;
  const created = missing.length === 0 ? [resolve(directory)] : missing.reverse();
  return created.filter((path) => createOne(path, mode))[0];
}

// Returns whether it was created here: another process may create the same.
function createOne(path: string, mode: number): boolean {
  try {
    mkdirSync(path, { mode });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && statSync(path, { throwIfNoEntry: false })?.isDirectory()) return false;
    const parent = dirname(path);
    if (code !== "ENOENT" || statSync(parent, { throwIfNoEntry: false }) === undefined) throw error;
    const text = `no directory can be created in ${parent}`;
    throw Object.assign(new Error(text, { cause: error }), { code: "ENOTSUP", syscall: "mkdir", path });
  }
}
