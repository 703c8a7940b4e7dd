// The deletion of identities, in short units of work however many role bindings they have. The first unit takes all rights
// of an identity away: it deletes the identity where that is short, and marks it otherwise. Further units delete the
// bindings, and the last one the row. What a process that ended left behind, a background job deletes.
import { unavailable } from "../../kernel/errors.js";
import type { Store, Tx } from "../../store/port.js";
import { requireNotSoleOwner } from "../rights.js";

/** How many bindings a unit of work deletes: some milliseconds on SQLite. */
const MAX_DELETED = 100;
/** How many identities are read at a time. */
const MAX_READ = 100;
/** How long a call waits for the units after its own; the job does the rest. */
const MAX_WAIT_MS = 5_000;
/** When a person whose deletion has not ended may register again, in milliseconds. */
const RETRY_MS = 2_000;

/**
 * Takes all rights of an identity away, and deletes it where that takes one unit of work.
 *
 * @returns whether it is deleted; otherwise {@link finishDeletion} continues
 * @throws ApiError FAILED_PRECONDITION where an organisation would be left without an owner.
 */
export async function beginDeletion(tx: Tx, uid: string): Promise<boolean> {
  await requireNotSoleOwner(tx, uid);
  if (await deletePart(tx, uid)) return true;
  await tx.identities.markDeleted(uid);
  return false;
}

// Deletes some of the bindings of an identity, and the identity with the last of them.
async function deletePart(tx: Tx, uid: string): Promise<boolean> {
  const bindings = await tx.roleBindings.findByIdentity(uid, MAX_DELETED + 1);
  for (const binding of bindings.slice(0, MAX_DELETED)) await tx.roleBindings.delete(binding.uid);
  if (bindings.length > MAX_DELETED) return false;
  await tx.refreshTokens.deleteOf(uid);
  await tx.identities.delete(uid);
  return true;
}

/**
 * Makes sure that nothing is left of a person who was deleted, before the person is stored again.
 *
 * @throws ApiError UNAVAILABLE
 */
export async function requireNotInDeletion(tx: Tx, uid: string): Promise<void> {
  if (await tx.identities.isMarked(uid)) throw unavailable("this account is being deleted", RETRY_MS);
}

/** Deletes what is left of a marked identity. It does not throw, because the job continues. */
export async function finishDeletion({ write }: Pick<Store, "write">, uid: string): Promise<void> {
  const untilMs = performance.now() + MAX_WAIT_MS;
  try {
    while (performance.now() < untilMs && !(await continueDeletion(write, uid)));
  } catch {
    // The rights of the identity are gone, which is what the caller asked for.
  }
}

/** Deletes what is left of marked identities, as {@link finishDeletion} does. */
export async function finishDeletions({ read, write }: Pick<Store, "read" | "write">): Promise<void> {
  const untilMs = performance.now() + MAX_WAIT_MS;
  try {
    await deleteMarked({ read, write }, () => performance.now() >= untilMs);
  } catch {
    // As above.
  }
}

function continueDeletion(write: Store["write"], uid: string): Promise<boolean> {
  // Another process may have deleted it, and the person may have registered again.
  return write(async (tx) => !(await tx.identities.isMarked(uid)) || (await deletePart(tx, uid)));
}

/**
 * Deletes what is left of all marked identities.
 *
 * @param isStopped checked before each unit of work
 * @returns how many identities were deleted
 */
export async function deleteMarked(
  { read, write }: Pick<Store, "read" | "write">,
  isStopped: () => boolean,
): Promise<number> {
  let deleted = 0;
  for (;;) {
    const uids = await read((tx) => tx.identities.findMarked(MAX_READ));
    for (const uid of uids) {
      let isDone = false;
      while (!isDone) {
        if (isStopped()) return deleted;
        isDone = await continueDeletion(write, uid);
      }
      deleted++;
    }
    if (uids.length < MAX_READ) return deleted;
  }
}
