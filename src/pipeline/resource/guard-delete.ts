import { failedPrecondition, type ResourceKind } from "../../kernel/errors.js";
import type { Awaitable, Tx } from "../../store/port.js";

/** Something that may lie below a resource and keeps it from being deleted. */
export interface DeleteGuard {
  /** What the error calls it, in the plural. */
  readonly children: string;
  /** Whether there is any below `uid` that counts at `nowMs`. */
  readonly any: (tx: Tx, uid: string, nowMs: number) => Awaitable<boolean>;
}

/**
 * Makes sure that nothing is left below what is to be deleted.
 *
 * @throws ApiError FAILED_PRECONDITION of type RESOURCE_NOT_EMPTY naming the first kind that is (spec
 * section 7).
 */
export async function guardDelete(
  { noun }: ResourceKind,
  guards: readonly DeleteGuard[],
  uid: string,
  tx: Tx,
  nowMs: number,
): Promise<void> {
  for (const { children, any } of guards) {
    if (!(await any(tx, uid, nowMs))) continue;
    throw failedPrecondition("RESOURCE_NOT_EMPTY", `cannot delete ${noun} with child ${children}`);
  }
}
