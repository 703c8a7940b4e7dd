// Tags, version 1: a view of TagsService, with tags that wait for their image
// and with changes to a tag by its id.
import { create } from "@bufbuild/protobuf";
import type { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import type { Tag, TagFilter } from "#gen/chainguard/platform/registry/tag_pb.js";
import { TagSchema as TagSchemaV2, type TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { alreadyExists, failedPrecondition } from "../../kernel/errors.js";
import { type Handlers, listInChunks, type ServedService } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { valuesOf } from "../../pipeline/resource/patch.js";
import { partQuery } from "../../pipeline/resource/whole-list.js";
import type { ListPosition, TagFamily, TagRow, Tx } from "../../store/port.js";
import type { RegistryDeps } from "../registry-deps.js";
import { foundRepo } from "../repos/repo-v2beta1.js";
import { familyOf, isDigestField, tags } from "./tag.js";
import { upsertTag } from "./tag-operations.js";
import { tagV1 } from "./tag-v1-view.js";
import { familiesIn, filtersIn, foundTag, tagPage } from "./tag-v2beta1.js";

// A tag may be made before there is an image for it.
const digest: typeof isDigestField = (value, field) => (value === "" ? undefined : isDigestField(value, field));
const resource = { ...tags, mutable: { ...tags.mutable, digest } };

/** The part of Registry that is about tags. */
export function tagHandlersV1(served: ServedService<typeof TagsService>, { ids }: Pick<RegistryDeps, "ids">) {
  const v2 = operationsOf(served, { uid: "id" });
  return {
    async createTag({ repoId, tag }, { tx, startMs }) {
      await foundRepo(repoId, tx);
      const values = valuesIn(tag);
      const before = await tx.tags.named(repoId, values.name);
      return tagV1(await upsertTag(tx, { ...keptDigest(values, before), repoUid: repoId, nowMs: startMs, ids }));
    },

    async updateTag(tag, { tx, startMs }) {
      const before = await foundTag(tag.id, tx);
      const values = valuesIn(tag);
      if (values.name !== before.name) await rename(before, values.name, startMs, tx);
      const { repoUid } = before;
      return tagV1(await upsertTag(tx, { ...keptDigest(values, before), repoUid, nowMs: startMs, ids }));
    },

    deleteTag: ({ id }, call) => v2.deleteTag({ uid: id }, call),

    listTags: listInChunks(async (filter: TagFilter, call, after: ListPosition | undefined) => {
      const place = { visible: await call.visibleGroups(filter.uidp, filter.id), ...filtersIn(filter) };
      const { rows, next } = await tagPage(call.tx, partQuery(filter, place, after), familiesLeftIn(filter));
      return { chunk: { items: rows.map(tagV1) }, next };
    }),
  } satisfies Partial<Handlers<typeof Registry>>;
}

/** The families of tags that a request of version 1 does not leave out. */
export function familiesLeftIn(
  request: Pick<TagFilter, "excludeReferrers" | "excludeDates" | "excludeEpochs">,
): TagFamily[] {
  const { excludeReferrers, excludeDates, excludeEpochs } = request;
  return familiesIn({
    includeReferrers: !excludeReferrers,
    includeDates: !excludeDates,
    includeEpochs: !excludeEpochs,
  });
}

function valuesIn(tag: Tag | undefined) {
  const { name = "", digest = "", deprecated = false, bundles = [] } = tag ?? {};
  return valuesOf(resource, create(TagSchemaV2, { name, digest, deprecated, bundles }));
}

// Terraform never says where a tag points. What a registry keeps under a tag stays there, so the tag
// goes on pointing at it until it is moved or deleted.
function keptDigest<T extends { digest: string }>(values: T, before: TagRow | undefined): T {
  return { ...values, digest: values.digest || (before?.digest ?? "") };
}

// A registry knows images by the names of tags and renames none.
async function rename(row: TagRow, name: string, nowMs: number, tx: Tx): Promise<void> {
  if (row.digest !== "") throw failedPrecondition("TAG_IN_USE", "cannot rename tag that points at an image");
  const holder = await tx.tags.named(row.repoUid, name);
  if (holder !== undefined) throw alreadyExists(tags, holder.uid);
  await tx.tags.replace({ ...row, name, family: familyOf(name), updateTimeMs: nowMs });
}
