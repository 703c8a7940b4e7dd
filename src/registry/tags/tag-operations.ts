// What befalls tags, whoever asks for it: the API or the registry. Both leave
// the same rows and the same history.
import type { Ids } from "../../kernel/ids.js";
import type { TagRow, Tx } from "../../store/port.js";
import { familyOf } from "./tag.js";

/** A tag as it shall be. */
export interface NewTag {
  readonly repoUid: string;
  readonly name: string;
  readonly digest: string;
  /** When it points there, in epoch milliseconds. */
  readonly nowMs: number;
  readonly ids: Ids;
  /** Absent: as it was, false for a new tag. */
  readonly deprecated?: boolean;
  /** Absent: as they were, none for a new tag. */
  readonly bundles?: readonly string[];
}

/**
 * Makes the tag of this name in a repo, which must exist, or changes the one there is; `digest` gets
 * into its history where it did not point there already. Leaves a tag that is as it shall be alone.
 */
export async function upsertTag(tx: Tx, tag: NewTag): Promise<TagRow> {
  const { repoUid, name, digest, nowMs, ids } = tag;
  const before = await tx.tags.named(repoUid, name);
  const { deprecated = before?.deprecated ?? false, bundles = before?.bundles ?? [] } = tag;
  const wanted = { digest, deprecated, bundles: [...bundles], updateTimeMs: nowMs };
  if (before === undefined) {
    const row: TagRow = {
      uid: ids.newUid(repoUid),
      repoUid,
      name,
      family: familyOf(name),
      ...wanted,
      createTimeMs: nowMs,
    };
    await tx.tags.insert(row);
    await tx.tags.moved({ tagUid: row.uid, timeMs: nowMs, digest });
    return row;
  }
  if (before.digest === digest && before.deprecated === deprecated && sameList(before.bundles, bundles)) return before;
  const row: TagRow = { ...before, ...wanted };
  await tx.tags.replace(row);
  if (before.digest !== digest) await tx.tags.moved({ tagUid: row.uid, timeMs: nowMs, digest });
  return row;
}

/** Deletes the tag of this name with its history; returns what it was, undefined when there was none. */
export async function removeTag(tx: Tx, repoUid: string, name: string): Promise<TagRow | undefined> {
  const row = await tx.tags.named(repoUid, name);
  if (row !== undefined) await tx.tags.delete(row.uid);
  return row;
}

function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
