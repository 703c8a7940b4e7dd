// Tags, version 1: a view of TagsService that also allows a tag without an image and the update of a tag by its
// id.
import { create } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import {
  type CreateTagRequest,
  type GetRepoTagsSummaryRequest,
  type Tag,
  type TagFilter,
  type TagHistoryFilter,
  TagSchema,
} from "#gen/chainguard/platform/registry/tag_pb.js";
import { TagSchema as TagSchemaV2, type TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { alreadyExists, deadlineExceeded, failedPrecondition, invalidArgument } from "../../kernel/errors.js";
import { timestampOf, yieldToEventLoop } from "../../kernel/time.js";
import { defineBodies } from "../../pipeline/body.js";
import type { CallContext, UnaryCall } from "../../pipeline/call.js";
import { type Handlers, listInChunks, withPreparation } from "../../pipeline/handlers.js";
import type { ServedService } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { buildValues } from "../../pipeline/resource/patch.js";
import { findsResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { buildChunkQuery } from "../../pipeline/resource/unpaginated-list.js";
import type { ListPosition, ListQuery } from "../../store/lists/query.js";
import { classifyTag, selectFamilies, type TagFamily } from "../../store/registry/tag-families.js";
import { type TagRow, tagKind } from "../../store/registry/tags.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import { repos } from "../repos/repo.js";
import { isBefore10000, isDigestField, parseTagFilters, tags, upsertTag } from "./tag.js";

// A tag may be created before its image exists.
const digest: typeof isDigestField = (value, field) => (value === "" ? undefined : isDigestField(value, field));
const tagsV1 = { ...tags, mutable: { ...tags.mutable, digest } };

const bodies = defineBodies(
  { message: TagSchema, readers: [Registry.method.listTags] },
  findsResource(tags, tagToProtoV1),
);

/** The bodies of its methods in the audit log. */
export const tagBodiesV1 = {
  ...bodies,
  created: {
    ...bodies.created,
    // A tag that exists is moved.
    async findBefore(repoId: string, { tx }: UnaryCall, { tag }: CreateTagRequest) {
      const row = await tx.table(tagKind).findByName(repoId, tag?.name ?? "");
      return row && tagToProtoV1(row);
    },
  },
} as const;

/** Creates the handlers of Registry for tags. */
export function tagHandlersV1(served: ServedService<typeof TagsService>, { ids }: Pick<ResourceDeps, "ids">) {
  const v2 = createOperations(served, { uid: "id" });
  return {
    async createTag({ repoId, tag }, { tx, startMs }) {
      await getRow(tx, repos, repoId);
      const values = buildTagValues(tag);
      const before = await tx.table(tagKind).findByName(repoId, values.name);
      return tagToProtoV1(await upsertTag(tx, { ...keepDigest(values, before), repoUid: repoId, nowMs: startMs, ids }));
    },

    async updateTag(tag, { tx, startMs }) {
      const before = await getRow(tx, tags, tag.id);
      const values = buildTagValues(tag);
      if (values.name !== before.name) await rename(before, values.name, startMs, tx);
      const { repoUid } = before;
      return tagToProtoV1(await upsertTag(tx, { ...keepDigest(values, before), repoUid, nowMs: startMs, ids }));
    },

    deleteTag: ({ id }, call) => v2.deleteTag({ uid: id }, call),

    listTags: listInChunks(async (filter: TagFilter, call, after: ListPosition | undefined) => {
      const visible = await call.visibleGroups(filter.uidp, filter.id);
      const equals = parseTagFilters(filter);
      const query = buildChunkQuery(filter, { visible, ...(equals && { equals }) }, after);
      const { rows, next } = await call.tx.table(tagKind).listAll(query, selectFamiliesV1(filter));
      return { chunk: { items: rows.map(tagToProtoV1) }, next };
    }),
  } satisfies Partial<Handlers<typeof Registry>>;
}

/** Selects the families of tags that a request of version 1 does not exclude. */
function selectFamiliesV1(
  request: Pick<TagFilter, "excludeReferrers" | "excludeDates" | "excludeEpochs" | "excludeVcsSnapshots">,
): TagFamily[] {
  const { excludeReferrers, excludeDates, excludeEpochs, excludeVcsSnapshots } = request;
  return selectFamilies({
    referrers: !excludeReferrers,
    dates: !excludeDates,
    epochs: !excludeEpochs,
    vcsSnapshots: !excludeVcsSnapshots,
  });
}

function buildTagValues(tag: Tag | undefined) {
  const { name = "", digest = "", deprecated = false, bundles = [] } = tag ?? {};
  return buildValues(tagsV1, create(TagSchemaV2, { name, digest, deprecated, bundles }));
}

// Terraform sends no digest. The registry keeps the image of the tag, so a tag without a digest in the request
// keeps its own.
function keepDigest<T extends { digest: string }>(values: T, before: TagRow | undefined): T {
  return { ...values, digest: values.digest || (before?.digest ?? "") };
}

// A registry cannot rename a tag, so only a tag without an image is renamed.
async function rename(row: TagRow, name: string, nowMs: number, tx: Tx): Promise<void> {
  if (row.digest !== "") throw failedPrecondition("TAG_IN_USE", "cannot rename tag that points at an image");
  const existing = await tx.table(tagKind).findByName(row.repoUid, name);
  if (existing !== undefined) throw alreadyExists(tags, existing.uid);
  await tx.table(tagKind).replace({ ...row, name, family: classifyTag(name), updateTimeMs: nowMs });
}

/** Converts a stored tag to version 1, which shows the time of its creation. */
function tagToProtoV1({ uid, name, digest, deprecated, bundles, createTimeMs, updateTimeMs }: TagRow): Tag {
  const updatedAt = timestampOf(updateTimeMs);
  const createdAt = timestampOf(createTimeMs);
  return create(TagSchema, {
    id: uid,
    name,
    digest,
    deprecated,
    bundles,
    lastUpdated: updatedAt,
    createdAt,
    updatedAt,
  });
}

// Summaries of the tags of a repo and the history of a tag, which only version 1 has.

/** How long a repo counts as recently updated after a tag was changed: a day, in milliseconds. */
const RECENT_MS = 24 * 60 * 60 * 1000;
/** The number of tags, or of moves of a tag, in a chunk. */
const CHUNK_SIZE = 500;

/** A position in a history: after the first `count` moves at this time. */
interface HistoryCursor {
  readonly timeMs: number;
  readonly count: number;
}

/** The handlers of Registry for summaries of tags. */
export const tagSummaryHandlersV1 = ({ store }: { readonly store: Pick<Store, "read"> }) =>
  ({
    // The version reads in units of work of its own, so that a repo with many tags does not block other calls.
    getRepoTagsSummary: withPreparation({
      prepare: ({ repoId, ...request }: GetRepoTagsSummaryRequest, call) =>
        findLongestAlias(repoId, selectFamiliesV1(request), store, call),
      async handle({ repoId, ...request }: GetRepoTagsSummaryRequest, { tx }, latestVersion) {
        await getRow(tx, repos, repoId);
        const { page, newest, latest } = await findLatest(tx, repoId, selectFamiliesV1(request));
        if (newest === undefined || latest === undefined) return { id: repoId };
        return {
          id: repoId,
          tagCount: BigInt(page.total),
          lastUpdated: timestampOf(newest.updateTimeMs),
          latestTag: tagToProtoV1(latest),
          latestVersion,
        };
      },
    }),

    async getUpdateStatus({ repoId }, { tx, startMs }) {
      await getRow(tx, repos, repoId);
      const order = { field: "updated_at", descending: true } as const;
      const { rows } = await tx.table(tagKind).listAll({ ...buildTagQuery(repoId), order, limit: 1, uncounted: true });
      return { recentlyUpdated: (rows[0]?.updateTimeMs ?? 0) >= startMs - RECENT_MS };
    },

    listTagHistory: listInChunks(async (filter: TagHistoryFilter, { tx }, after: HistoryCursor | undefined) => {
      const { parentId, start, end } = filter;
      const [fromMs, toMs] = [parseBound(start, "start", 0), parseBound(end, "end", Number.MAX_SAFE_INTEGER)];
      await getRow(tx, tags, parentId);
      const { timeMs, count } = after ?? { timeMs: fromMs, count: 0 };
      const moves = (await tx.table(tagKind).listMoves(parentId, timeMs, toMs, count + CHUNK_SIZE)).slice(count);
      const last = moves.at(-1)?.timeMs ?? timeMs;
      const known = moves.filter((move) => move.timeMs === last).length + (last === timeMs ? count : 0);
      const next = moves.length < CHUNK_SIZE ? undefined : { timeMs: last, count: known };
      // A move without a digest left the tag without an image.
      const items = moves.filter(({ digest }) => digest !== "");
      return {
        chunk: { items: items.map((move) => ({ updateTimestamp: timestampOf(move.timeMs), ...move })) },
        next,
      };
    }),
  }) satisfies Partial<Handlers<typeof Registry>>;

function buildTagQuery(repoUid: string): ListQuery {
  const order = { field: "name", descending: false } as const;
  // Nothing but its tags lies below a repo.
  return { visible: [repoUid], filter: {}, order, skip: 0, limit: CHUNK_SIZE };
}

async function findLatest(tx: Tx, repoUid: string, families: readonly TagFamily[]) {
  const order = { field: "updated_at", descending: true } as const;
  const page = await tx.table(tagKind).listAll({ ...buildTagQuery(repoUid), order, limit: 1 }, families);
  const [newest] = page.rows;
  return { page, newest, latest: newest && ((await tx.table(tagKind).findByName(repoUid, "latest")) ?? newest) };
}

// The longest name of the other tags with the image of the latest one.
async function findLongestAlias(
  repoUid: string,
  families: readonly TagFamily[],
  store: Pick<Store, "read">,
  call: CallContext,
): Promise<string> {
  const { latest } = await store.read((tx) => findLatest(tx, repoUid, families));
  let longest = "";
  if (latest === undefined || latest.digest === "") return longest;
  const order = { field: "uid", descending: false } as const;
  const query = { ...buildTagQuery(repoUid), order, uncounted: true };
  let after: ListPosition | undefined;
  do {
    const { rows, next } = await store.read((tx) =>
      tx.table(tagKind).listAll({ ...query, ...(after && { after }) }, families),
    );
    for (const { uid, name, digest } of rows) {
      const isAlias = digest === latest.digest && uid !== latest.uid;
      if (isAlias && name !== "latest-dev" && name.length > longest.length) longest = name;
    }
    if (call.signal.aborted) throw deadlineExceeded();
    after = next;
    await yieldToEventLoop();
  } while (after !== undefined);
  return longest;
}

// Times are stored in milliseconds, so the bound is the first millisecond that is not before the given time.
function parseBound(time: Timestamp | undefined, field: string, unset: number): number {
  if (time === undefined) return unset;
  if (!isBefore10000(time)) {
    throw invalidArgument({ field, rule: "must be a time up to the year 9999" });
  }
  return Number(time.seconds) * 1000 + Math.ceil(time.nanos / 1_000_000);
}
