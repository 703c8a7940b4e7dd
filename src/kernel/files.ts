// Files that operators name: what is wrong with them, and those with secrets, which other users must neither read nor put
// in their place.
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describeDiskFault } from "./disk-errors.js";
import { failedPrecondition } from "./errors.js";

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "is a directory",
  EEXIST: "is not a directory",
  SQLITE_CANTOPEN: "the database cannot be opened",
  ELOOP: "too many symbolic links",
  EMFILE: "too many open files",
};

/** Describes why a file cannot be read, such as `cannot read /etc/arbor.json: no such file`. */
export function describeReadError(file: string, error: unknown): string {
  const { code = "" } = (error ?? {}) as { readonly code?: string };
  return `cannot read ${file}: ${describeDiskFault(error) ?? reasons[code] ?? (code === "" ? String(error) : code)}`;
}

/**
 * Describes an error of the file system, such as `permission denied`.
 *
 * @returns undefined for any other error
 */
export function describeFileFault(error: unknown): string | undefined {
  const { code = "", syscall } = (error ?? {}) as { readonly code?: string; readonly syscall?: string };
  if (syscall === undefined && code !== "SQLITE_CANTOPEN") return undefined;
  return describeDiskFault(error) ?? reasons[code] ?? code;
}

/** Describes what is wrong with the content of a file, of which an error has a line for each problem. */
export function describeContent(file: string, { message }: Error): string[] {
  return message.split("\n").map((problem) => `${file}${problem.startsWith("must ") ? "" : ":"} ${problem}`);
}

/**
 * Describes why a file with a secret is not private. As with libpq, root may give a group the right to read, which is
 * how secrets are mounted into containers.
 *
 * @returns undefined for a private file
 */
export function describeExposure({ mode, uid }: Pick<Stats, "mode" | "uid">): string | undefined {
  const own = process.getuid?.();
  if (own === undefined) return undefined;
  if (uid === 0) return (mode & 0o027) === 0 ? undefined : "must not be readable by others (mode 0600 or 0640)";
  if (uid !== own) return "belongs to another user";
  return (mode & 0o077) === 0 ? undefined : "must be readable by its owner alone (mode 0600)";
}

/**
 * Reads a file that other users must not be able to read.
 *
 * @throws Error whose message names the file and the reason
 */
export function readSecretFile(file: string): string {
  let descriptor: number | undefined;
  let exposure: string | undefined;
  try {
    descriptor = openSync(file, "r");
    exposure = describeExposure(fstatSync(descriptor));
    if (exposure === undefined) return readFileSync(descriptor, "utf8");
  } catch (cause) {
    throw new Error(describeReadError(file, cause), { cause });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
  throw new Error(`${file} ${exposure}`);
}

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

/** 32 bytes in base64. */
const KEY = /^[A-Za-z0-9+/]{43}=$/;
const KEY_RULE = "must hold lines of 32 bytes in base64";

/** @throws Error with the rule that the text violates */
export function parseMasterKey(text: string): readonly [Buffer, ...Buffer[]] {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  // Checked by form, because decoders accept any text and would derive another key from it.
  if (!lines.every((line) => KEY.test(line))) throw new Error(KEY_RULE);
  const [first, ...others] = lines.map((line) => Buffer.from(line, "base64"));
  if (first === undefined) throw new Error(KEY_RULE);
  return [first, ...others];
}

const MIN_CHARACTERS = 32;
const PRINTABLE = /^[\x21-\x7e]+$/;

/** Parses the secret of a registry, which may end in a line break. @throws Error with the rule that the text violates */
export function parseRegistrySecret(text: string): string {
  const secret = text.replace(/\r?\n$/, "");
  if (secret.length >= MIN_CHARACTERS && PRINTABLE.test(secret)) return secret;
  throw new Error(`must hold one word of at least ${MIN_CHARACTERS} printable ASCII characters`);
}
