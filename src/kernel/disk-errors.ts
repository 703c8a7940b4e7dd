// The errors of a disk that is lost, read-only or full, as commands name them.

/** Errors of a disk that is lost, read-only or full. They may end without a change of settings or of rights. */
const diskReasons: Readonly<Record<string, string>> = {
  EROFS: "read-only file system",
  ENOSPC: "no space left",
  EDQUOT: "the quota of the disk is used up",
  EIO: "the disk does not read or write",
  ENXIO: "no such device",
  ENODEV: "no such device",
  ENOMEDIUM: "no medium in the device",
  ESTALE: "the file system of the server is gone",
  ENOTCONN: "the file system is not connected",
};

/**
 * Describes a fault of the disk, with the name of the error, such as `no space left (ENOSPC)`.
 *
 * @returns undefined for any other error
 */
export function describeDiskFault(error: unknown): string | undefined {
  const { code = "" } = (error ?? {}) as { readonly code?: unknown };
  const reason = typeof code === "string" ? diskReasons[code] : undefined;
  return reason === undefined ? undefined : `${reason} (${code})`;
}

/** Whether an error, of the operating system or of SQLite, comes from a fault of the disk. */
export function isDiskFault(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return describeDiskFault(error) !== undefined || /^SQLITE_(FULL|IOERR|READONLY)/.test(String(code));
}
