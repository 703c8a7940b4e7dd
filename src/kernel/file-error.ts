// How errors of files are told to operators.
import type { Stats } from "node:fs";

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "is a directory",
  ELOOP: "too many symbolic links",
  EMFILE: "too many open files",
};

/** Describes why a file cannot be read, such as `cannot read /etc/arbor.json: no such file`. */
export function cannotRead(file: string, error: unknown): string {
  const { code = "" } = (error ?? {}) as { readonly code?: string };
  return `cannot read ${file}: ${reasons[code] ?? (code === "" ? String(error) : code)}`;
}

/**
 * Describes why a file with a secret is not private. As with libpq, root may give a group the right to read, which is how
 * secrets are mounted into containers.
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
