// What version 1 tells of the tags of a repo taken together, and of the past of
// one. Version 2 has nothing like it.
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import type { TagHistoryFilter } from "#gen/chainguard/platform/registry/tag_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { type Handlers, listInChunks } from "../../pipeline/method-table.js";
import type { ListPosition, ListQuery, TagFamily, TagRow, Tx } from "../../store/port.js";
import { foundRepo } from "../repos/repo-v2beta1.js";
import { familiesLeftIn } from "./tag-v1.js";
import { tagV1 } from "./tag-v1-view.js";
import { foundTag, tagPage } from "./tag-v2beta1.js";

/** For how long a repo counts as lately updated after a tag of it was changed, in milliseconds: a day. */
const LATELY_MS = 24 * 60 * 60 * 1000;
/** How many tags, or moves of a tag, are read at once. */
const PART_SIZE = 500;
/** Timestamps name times up to the end of the year 9999; this is its last millisecond. */
const LAST_MS = 253_402_300_799_999;

/** How far a history has been read: up to the first `seen` moves at this time. */
interface HistoryPosition {
  readonly timeMs: number;
  readonly seen: number;
}

/** The part of Registry that sums up tags. */
export const tagSummaryHandlersV1 = {
  async getRepoTagsSummary({ repoId, ...request }, { tx }) {
    await foundRepo(repoId, tx);
    const families = familiesLeftIn(request);
    const order = { field: "updated_at", descending: true } as const;
    const page = await tagPage(tx, { ...tagsOf(repoId), order, limit: 1 }, families);
    const [newest] = page.rows;
    if (newest === undefined) return { id: repoId };
    const latest = (await tx.tags.named(repoId, "latest")) ?? newest;
    return {
      id: repoId,
      tagCount: BigInt(page.total),
      lastUpdated: timestampFromMs(newest.updateTimeMs),
      latestTag: tagV1(latest),
      latestVersion: await longestNameBeside(latest, families, tx),
    };
  },

  async getUpdateStatus({ repoId }, { tx, startMs }) {
    await foundRepo(repoId, tx);
    const equals = { updatedSince: startMs - LATELY_MS };
    const { filter, ...query } = tagsOf(repoId);
    const { rows } = await tx.tags.listAll({ ...query, filter: { ...filter, equals }, limit: 1, uncounted: true });
    return { recentlyUpdated: rows.length > 0 };
  },

  listTagHistory: listInChunks(async (filter: TagHistoryFilter, { tx }, after: HistoryPosition | undefined) => {
    const { parentId, start, end } = filter;
    const [fromMs, toMs] = [boundOf(start, "start", 0), boundOf(end, "end", Number.MAX_SAFE_INTEGER)];
    await foundTag(parentId, tx);
    const { timeMs, seen } = after ?? { timeMs: fromMs, seen: 0 };
    const moves = (await tx.tags.history(parentId, timeMs, toMs, seen + PART_SIZE)).slice(seen);
    const last = moves.at(-1)?.timeMs ?? timeMs;
    const known = moves.filter((move) => move.timeMs === last).length + (last === timeMs ? seen : 0);
    const next = moves.length < PART_SIZE ? undefined : { timeMs: last, seen: known };
    // A tag without an image was pointed at none.
    const items = moves.filter(({ digest }) => digest !== "");
    return {
      chunk: { items: items.map((move) => ({ updateTimestamp: timestampFromMs(move.timeMs), ...move })) },
      next,
    };
  }),
} satisfies Partial<Handlers<typeof Registry>>;

function tagsOf(repoUid: string): ListQuery {
  const order = { field: "name", descending: false } as const;
  return { visible: [repoUid], filter: { childrenOf: repoUid }, order, skip: 0, limit: PART_SIZE };
}

async function longestNameBeside(latest: TagRow, families: readonly TagFamily[], tx: Tx): Promise<string> {
  const { uid, repoUid, digest } = latest;
  let longest = "";
  if (digest === "") return longest;
  const query = { ...tagsOf(repoUid), filter: { childrenOf: repoUid, equals: { digest } }, uncounted: true };
  let after: ListPosition | undefined;
  do {
    const { rows, next } = await tagPage(tx, { ...query, ...(after && { after }) }, families);
    for (const { uid: other, name } of rows) {
      if (other !== uid && name !== "latest-dev" && name.length > longest.length) longest = name;
    }
    after = next;
  } while (after !== undefined);
  return longest;
}

// Times are stored in milliseconds: the first of them that is not before the time given.
function boundOf(time: Timestamp | undefined, field: string, unset: number): number {
  if (time === undefined) return unset;
  const ms = Number(time.seconds) * 1000 + Math.ceil(time.nanos / 1_000_000);
  if (Math.abs(ms) > LAST_MS) {
    throw invalidArgument({ field, description: `${field} must be a time up to the year 9999` });
  }
  return ms;
}
