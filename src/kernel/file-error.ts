// Describes errors of files for operators.
import type { Stats } from "node:fs";

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "is a directory",
  EEXIST: "is not a directory",
  EROFS: "read-only file system",
  ENOSPC: "no space left",
  SQLITE_CANTOPEN: "the database cannot be opened",
  ELOOP: "too many symbolic links",
  EMFILE: "too many open files",
};

/** Describes why a file cannot be read, such as `cannot read /etc/arbor.json: no such file`. */
export function describeReadError(file: string, error: unknown): string {
  const { code = "" } = (error ?? {}) as { readonly code?: string };
  return `cannot read ${file}: ${reasons[code] ?? (code === "" ? String(error) : code)}`;
}

/**
 * Describes an error of the file system, such as `permission denied`.
 *
 * @returns undefined for any other error
 */
export function describeFileFault(error: unknown): string | undefined {
  const { code = "", syscall } = (error ?? {}) as { readonly code?: string; readonly syscall?: string };
  if (syscall === undefined && code !== "SQLITE_CANTOPEN") return undefined;
  return reasons[code] ?? code;
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
