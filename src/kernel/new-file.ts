// New files with secrets, which other users must not be able to put in place or replace.
import { constants, lstatSync, openSync, readlinkSync, type Stats, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { failedPrecondition } from "./errors.js";

const { O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_WRONLY } = constants;
const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/**
 * Creates a file that only its owner can read, for secrets and for what is kept with them. A file or a link that is
 * there already is never opened, because another user may have put it there.
 *
 * @returns its descriptor, for writing
 * @throws Error with the code EEXIST when there is something
 * @throws ApiError FAILED_PRECONDITION when another user could put a file in its place
 */
export function openNewFile(file: string): number {
  assertOwnDirectory(dirname(resolve(file)));
  return openSync(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
}

/**
 * Checks that no other user but root can put files into a directory, or another directory in its place: it walks the
 * path as the operating system does, through its symbolic links. Of a directory that is missing, the closest that exists
 * is checked.
 *
 * @throws ApiError FAILED_PRECONDITION with the directory and what is wrong with it
 */
export function assertOwnDirectory(directory: string): void {
  const own = process.getuid?.();
  if (own === undefined) return;
  const reject = (path: string, problem: string) => {
    const rule = "another user could replace what is written there; name another directory";
    throw failedPrecondition("DIRECTORY", `${directory}: ${path} ${problem}: ${rule}`);
  };
  let [at, links] = ["/", 0];
  const names = namesIn(resolve(directory));
  for (;;) {
    const problem = describeWriters(statSync(at), own, names.length === 0);
    if (problem !== undefined) reject(at, problem);
    const name = names.shift();
    if (name === undefined) return;
    const next = join(at, name);
    const found = lstatSync(next, { throwIfNoEntry: false });
    if (found === undefined) return;
    if (!found.isSymbolicLink()) {
      at = next;
      continue;
    }
    if (found.uid !== own && found.uid !== 0) reject(next, `is a link of user ${found.uid}`);
    // The operating system follows as many.
    if (++links > MAX_LINKS) reject(next, "has too many symbolic links");
    names.unshift(...namesIn(resolve(at, readlinkSync(next))));
    at = "/";
  }
}

const MAX_LINKS = 40;

function namesIn(path: string): string[] {
  return path.split("/").filter((name) => name !== "");
}

// Directories above may be writable for a group, as those are that platforms mount volumes at, and for all where nobody
// can rename what others have there.
function describeWriters({ mode, uid, gid }: Stats, own: number, isTarget: boolean): string | undefined {
  if (uid !== own && uid !== 0) return `belongs to user ${uid}`;
  const isOpen = isTarget
    ? (mode & OTHERS_WRITE) !== 0 || ((mode & GROUP_WRITES) !== 0 && !isPrivateGroup(uid, gid))
    : (mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0;
  return isOpen ? `can be written by other users (mode ${(mode & 0o7777).toString(8).padStart(4, "0")})` : undefined;
}

// Most systems give each person a group with the same number, and let it write to what that person creates.
function isPrivateGroup(uid: number, gid: number): boolean {
  return uid === gid;
}
