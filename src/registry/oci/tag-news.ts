// What becomes of a tag when news of it come in any order, more than once, or
// late. The newest word on a tag counts, and so does the newest on the deletion
// of a manifest; both are remembered as marks, also of what is gone. A digest has
// a colon, which no tag has, so that their marks never meet.
import type { Ids } from "../../kernel/ids.js";
import type { TagRow, Tx } from "../../store/port.js";
import { removeTag, upsertTag } from "../tags/tag-operations.js";

/** How many tags are looked at together. */
const PAGE = 200;

/** That a tag points to a manifest from a time on. */
export interface TagPush {
  readonly repoUid: string;
  readonly name: string;
  readonly digest: string;
  /** In epoch milliseconds. */
  readonly timeMs: number;
}

/** What became of a tag: what it is now, or was when it went. Undefined: nothing did. */
export type Outcome = { readonly change: "put" | "removed"; readonly tag: TagRow } | undefined;

/**
 * Takes in that a tag was pushed. Older news than are known change nothing; of two in the same
 * millisecond a push wins over a deletion and the greater digest over the other, whichever came first.
 */
export async function tagPushed(tx: Tx, push: TagPush, ids: Ids): Promise<Outcome> {
  const { repoUid, name, digest, timeMs } = push;
  const row = await tx.tags.named(repoUid, name);
  const knownMs = await lastWordMs(tx, repoUid, name, row);
  if (timeMs < knownMs || (timeMs === knownMs && row !== undefined && row.digest >= digest)) return undefined;
  await tx.tags.putMark(repoUid, name, timeMs);
  if (((await tx.tags.mark(repoUid, digest)) ?? 0) > timeMs) return removed(await removeTag(tx, repoUid, name));
  const tag = await upsertTag(tx, { repoUid, name, digest, nowMs: timeMs, ids });
  return row?.digest === digest ? undefined : { change: "put", tag };
}

/** Takes in that a tag was deleted. Older news than are known change nothing. */
export async function tagDeleted(tx: Tx, repoUid: string, name: string, timeMs: number): Promise<Outcome> {
  const row = await tx.tags.named(repoUid, name);
  const knownMs = await lastWordMs(tx, repoUid, name, row);
  if (timeMs < knownMs || (timeMs === knownMs && row !== undefined)) return undefined;
  await tx.tags.putMark(repoUid, name, timeMs);
  return removed(await removeTag(tx, repoUid, name));
}

/** Takes in that a manifest was deleted, and with it every tag that pointed there before. */
export async function manifestDeleted(tx: Tx, repoUid: string, digest: string, timeMs: number): Promise<Outcome[]> {
  if (((await tx.tags.mark(repoUid, digest)) ?? -1) >= timeMs) return [];
  await tx.tags.putMark(repoUid, digest, timeMs);
  const outcomes: Outcome[] = [];
  const query = {
    visible: [repoUid],
    filter: { equals: { digest } },
    order: { field: "uid", descending: false },
    skip: 0,
    limit: PAGE,
  };
  let page = await tx.tags.listAll(query);
  for (;;) {
    for (const row of page.rows) {
      const knownMs = await lastWordMs(tx, repoUid, row.name, row);
      if (knownMs >= timeMs) continue;
      // Not the time of the deletion: a push of something else may have come between and be told later.
      await tx.tags.putMark(repoUid, row.name, knownMs);
      outcomes.push(removed(await removeTag(tx, repoUid, row.name)));
    }
    if (page.next === undefined) return outcomes;
    page = await tx.tags.listAll({ ...query, after: page.next });
  }
}

// Tags are changed by the API as well, which leaves no marks.
async function lastWordMs(tx: Tx, repoUid: string, name: string, row: TagRow | undefined): Promise<number> {
  return Math.max((await tx.tags.mark(repoUid, name)) ?? -1, row?.updateTimeMs ?? -1);
}

function removed(tag: TagRow | undefined): Outcome {
  return tag && { change: "removed", tag };
}
