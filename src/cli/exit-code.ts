import { Code, ConnectError } from "@connectrpc/connect";

const byCode: Partial<Record<Code, number>> = {
  [Code.InvalidArgument]: 2,
  [Code.Unauthenticated]: 3,
  [Code.PermissionDenied]: 4,
  [Code.NotFound]: 5,
  [Code.AlreadyExists]: 6,
  [Code.FailedPrecondition]: 6,
  [Code.Aborted]: 6,
  [Code.ResourceExhausted]: 7,
  [Code.Unavailable]: 8,
  [Code.DeadlineExceeded]: 8,
};

/** The exit code of the `arbor` command for an error: one per class of status, 1 for all others. */
export function exitCodeOf(error: unknown): number {
  const code = error instanceof ConnectError ? error.code : (error as { code?: unknown } | undefined)?.code;
  return (typeof code === "number" ? byCode[code as Code] : undefined) ?? 1;
}
