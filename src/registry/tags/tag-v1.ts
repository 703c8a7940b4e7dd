// Tags, version 1: a view of TagsService that also allows a tag without an image and the update of a tag by its
// id.
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { type Tag, type TagFilter, TagSchema } from "#gen/chainguard/platform/registry/tag_pb.js";
import { TagSchema as TagSchemaV2, type TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { alreadyExists, failedPrecondition } from "../../kernel/errors.js";
import { type Handlers, listInChunks } from "../../pipeline/handlers.js";
import type { ServedService } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { buildValues } from "../../pipeline/resource/patch.js";
import { getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { buildChunkQuery } from "../../pipeline/resource/unpaginated-list.js";
import type { ListPosition, TagFamily, TagRow, Tx } from "../../store/port.js";
import { repos } from "../repos/repo.js";
import { classifyTag, isDigestField, tags, upsertTag } from "./tag.js";
import { listTagPage, parseTagFilters, selectFamilies } from "./tag-v2beta1.js";

// A tag may be created before its image exists.
const digest: typeof isDigestField = (value, field) => (value === "" ? undefined : isDigestField(value, field));
const tagsV1 = { ...tags, mutable: { ...tags.mutable, digest } };

/** Creates the handlers of Registry for tags. */
export function tagHandlersV1(served: ServedService<typeof TagsService>, { ids }: Pick<ResourceDeps, "ids">) {
  const v2 = createOperations(served, { uid: "id" });
  return {
    async createTag({ repoId, tag }, { tx, startMs }) {
      await getRow(tx, repos, repoId);
      const values = buildTagValues(tag);
      const before = await tx.tags.findByName(repoId, values.name);
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
      const { rows, next } = await listTagPage(call.tx, query, selectFamiliesV1(filter));
      return { chunk: { items: rows.map(tagToProtoV1) }, next };
    }),
  } satisfies Partial<Handlers<typeof Registry>>;
}

/** Selects the families of tags that a request of version 1 does not exclude. */
export function selectFamiliesV1(
  request: Pick<TagFilter, "excludeReferrers" | "excludeDates" | "excludeEpochs">,
): TagFamily[] {
  const { excludeReferrers, excludeDates, excludeEpochs } = request;
  return selectFamilies({
    includeReferrers: !excludeReferrers,
    includeDates: !excludeDates,
    includeEpochs: !excludeEpochs,
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
  const existing = await tx.tags.findByName(row.repoUid, name);
  if (existing !== undefined) throw alreadyExists(tags, existing.uid);
  await tx.tags.replace({ ...row, name, family: classifyTag(name), updateTimeMs: nowMs });
}

/** Converts a stored tag to version 1, which shows the time of its creation. */
export function tagToProtoV1({ uid, name, digest, deprecated, bundles, createTimeMs, updateTimeMs }: TagRow): Tag {
  const updatedAt = timestampFromMs(updateTimeMs);
  const createdAt = timestampFromMs(createTimeMs);
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
