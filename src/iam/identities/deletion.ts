// The deletion of identities, in short units of work however many role bindings they have. The first unit takes all rights
// of an identity away: it deletes the identity where that is short, and marks it otherwise. Further units delete the
// bindings, and the last one the row. What a process that ended left behind, a background job deletes.
import { unavailable } from "../../kernel/errors.js";
import { identityKind } from "../../store/iam/identities.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
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
export async function beginDeletion(tx: Tx, uid: string, nowMs: number): Promise<boolean> {
  await requireNotSoleOwner(tx, uid);
  if (!uid.includes("/")) await notePersonDeleted(tx, uid, nowMs);
  if (await deletePart(tx, uid)) return true;
  await tx.table(identityKind).markDeleted(uid, nowMs);
  return false;
}

// The uid of a person follows from who they are, so a person who registers again has it again. Their tokens from before
// are rejected by the second of their registration, so it must be a later one than that of the deletion.
async function notePersonDeleted(tx: Tx, uid: string, nowMs: number): Promise<void> {
  const expireTimeMs = (Math.floor(nowMs / 1000) + 1) * 1000;
  await tx.tickets.put({ hash: deletedKey(uid), kind: "deleted", data: {}, expireTimeMs });
}

function deletedKey(uid: string): string {
  return `deleted ${uid}`;
}

// Deletes some of the bindings of an identity, and the identity with the last of them.
async function deletePart(tx: Tx, uid: string): Promise<boolean> {
  const bindings = await tx.table(roleBindingKind).findByIdentity(uid, MAX_DELETED + 1);
  for (const binding of bindings.slice(0, MAX_DELETED)) await tx.table(roleBindingKind).delete(binding.uid);
  if (bindings.length > MAX_DELETED) return false;
  await tx.refreshTokens.deleteOf(uid);
  await tx.table(identityKind).delete(uid);
  return true;
}

/**
 * Makes sure that nothing is left of a person who was deleted, before the person is stored again, and that the second of
 * the deletion is over.
 *
 * @throws ApiError UNAVAILABLE
 */
export async function requireNotInDeletion(tx: Tx, uid: string, nowMs: number): Promise<void> {
  if (await tx.table(identityKind).isMarked(uid)) throw unavailable("this account is being deleted", RETRY_MS);
  const { expireTimeMs = 0 } = (await tx.tickets.find("deleted", deletedKey(uid))) ?? {};
  const waitMs = expireTimeMs - nowMs;
  // After the clock was set back, the ticket would hold for longer.
  if (waitMs > 0 && waitMs <= 1000) throw unavailable("this account was deleted a moment ago", waitMs);
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
  return write(async (tx) => !(await tx.table(identityKind).isMarked(uid)) || (await deletePart(tx, uid)));
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
    const uids = await read((tx) => tx.table(identityKind).findMarked(MAX_READ));
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
