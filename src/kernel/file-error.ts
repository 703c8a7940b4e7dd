// How errors of files are told to operators.

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
