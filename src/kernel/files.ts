// Files that operators name: what is wrong with them, and those with secrets, which other users must not read.
import { closeSync, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { describeDiskFault } from "./disk-errors.js";

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "is a directory",
  EEXIST: "is not a directory",
  ENOTSUP: "no directory can be created there",
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
