// Applies events of tags that arrive in any order, repeatedly, or late. The last writer wins: a mark keeps the
// time of the last event of each tag and of each deleted manifest, also after the tag is deleted. A digest has a
// colon and a tag has none, so their marks never collide.
import type { Ids } from "../../kernel/ids.js";
import { type TagRow, tagKind } from "../../store/registry/tags.js";
import type { Tx } from "../../store/transaction.js";
import { removeTag, upsertTag } from "../tags/tag.js";

/** The number of tags on one page. */
const PAGE = 200;

/** That a tag points to a manifest from a time on. */
interface TagPush {
  readonly repoUid: string;
  readonly name: string;
  readonly digest: string;
  /** In epoch milliseconds. */
  readonly timeMs: number;
}

/** The change of a tag: its row before, and after a push. Undefined where nothing changed. */
export type TagChange =
  | { readonly before: TagRow | undefined; readonly after: TagRow }
  | { readonly before: TagRow; readonly after?: undefined }
  | undefined;

/**
 * Applies the push of a tag. An event that is older than the last one changes nothing. In the same millisecond
 * a push wins over a deletion, and the greater digest over the other, in any order of arrival.
 */
export async function applyTagPush(tx: Tx, push: TagPush, ids: Ids): Promise<TagChange> {
  const { repoUid, name, digest, timeMs } = push;
  const row = await tx.table(tagKind).findByName(repoUid, name);
  const knownMs = await findLastEventMs(tx, repoUid, name, row);
  if (timeMs < knownMs || (timeMs === knownMs && row !== undefined && row.digest >= digest)) return undefined;
  await tx.table(tagKind).putMark(repoUid, name, timeMs);
  if (((await tx.table(tagKind).findMark(repoUid, digest)) ?? 0) > timeMs)
    return toRemoval(await removeTag(tx, repoUid, name));
  const tag = await upsertTag(tx, { repoUid, name, digest, nowMs: timeMs, ids });
  return row?.digest === digest ? undefined : { before: row, after: tag };
}

/** Applies the deletion of a tag. An event that is older than the last one changes nothing. */
export async function applyTagDeletion(tx: Tx, repoUid: string, name: string, timeMs: number): Promise<TagChange> {
  const row = await tx.table(tagKind).findByName(repoUid, name);
  const knownMs = await findLastEventMs(tx, repoUid, name, row);
  if (timeMs < knownMs || (timeMs === knownMs && row !== undefined)) return undefined;
  await tx.table(tagKind).putMark(repoUid, name, timeMs);
  return toRemoval(await removeTag(tx, repoUid, name));
}

/** Applies the deletion of a manifest, which deletes every tag that pointed to it before. */
export async function applyManifestDeletion(
  tx: Tx,
  repoUid: string,
  digest: string,
  timeMs: number,
): Promise<TagChange[]> {
  if (((await tx.table(tagKind).findMark(repoUid, digest)) ?? -1) >= timeMs) return [];
  await tx.table(tagKind).putMark(repoUid, digest, timeMs);
  const changes: TagChange[] = [];
  const query = {
    visible: [repoUid],
    filter: { equals: { digest } },
    order: { field: "uid", descending: false },
    skip: 0,
    limit: PAGE,
  };
  let page = await tx.table(tagKind).listAll(query);
  for (;;) {
    for (const row of page.rows) {
      const knownMs = await findLastEventMs(tx, repoUid, row.name, row);
      if (knownMs >= timeMs) continue;
      // The mark keeps the old time, because a push before the deletion may still arrive.
      await tx.table(tagKind).putMark(repoUid, row.name, knownMs);
      changes.push(toRemoval(await removeTag(tx, repoUid, row.name)));
    }
    if (page.next === undefined) return changes;
    page = await tx.table(tagKind).listAll({ ...query, after: page.next });
  }
}

// Changes by the API set no marks, so the row counts as well.
async function findLastEventMs(tx: Tx, repoUid: string, name: string, row: TagRow | undefined): Promise<number> {
  return Math.max((await tx.table(tagKind).findMark(repoUid, name)) ?? -1, row?.updateTimeMs ?? -1);
}

function toRemoval(tag: TagRow | undefined): TagChange {
  return tag && { before: tag };
}
