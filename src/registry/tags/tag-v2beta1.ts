// The handlers of TagsService in version 2beta1.
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { type ListTagsRequest, TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import { serve } from "../../pipeline/method-table.js";
import { buildValues } from "../../pipeline/resource/patch.js";
import { getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import type { Awaitable, ListQuery, Page, TagFamily, TagRow, Tx } from "../../store/port.js";
import { repos } from "../repos/repo.js";
import { isDigestField, tags, tagToProto, upsertTag } from "./tag.js";

/** The latest value of a Timestamp, in epoch milliseconds: the end of the year 9999. */
const LAST_MS = 253_402_300_799_999;

type IncludedFamilies = Pick<ListTagsRequest, "includeReferrers" | "includeDates" | "includeEpochs">;
type TagFilters = Pick<ListTagsRequest, "digest"> & { readonly updatedSince?: Timestamp | undefined };

/** Creates TagsService. */
export function tagsV2beta1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  return serve(TagsService, {
    getTag: ({ uid }, { tx }) => getResource(tx, tags, uid, tagToProto),

    async listTags(request, call) {
      const families = selectFamilies(request);
      const { resources, ...page } = await listResources(call, tags, request, tagToProto, {
        // A page token does not continue a list of other families.
        method: `ListTags ${families.join(" ")}`,
        readPage: (query) => listTagPage(call.tx, query, families),
        equals: parseTagFilters(request),
      });
      return { tags: resources, ...page };
    },

    async createTag({ parent, tag }, { tx, startMs }) {
      await getRow(tx, repos, parent);
      const values = buildValues(tags, tag);
      return tagToProto(await upsertTag(tx, { repoUid: parent, ...values, nowMs: startMs, ids }));
    },

    async deleteTag({ uid }, { tx }) {
      await getRow(tx, tags, uid);
      await tx.tags.delete(uid);
      return {};
    },
  });
}

/** Lists the tags of these families. */
export function listTagPage(tx: Tx, query: ListQuery, families: readonly TagFamily[]): Awaitable<Page<TagRow>> {
  if (families.length === 1) return tx.tags.list(query);
  return tx.tags.listAll(query, families.length === 4 ? undefined : families);
}

/** Selects the families of tags that a list shows: the usual one, which comes first, and those included. */
export function selectFamilies({ includeReferrers, includeDates, includeEpochs }: IncludedFamilies): TagFamily[] {
  return [
    0,
    ...(includeReferrers ? [1 as const] : []),
    ...(includeDates ? [2 as const] : []),
    ...(includeEpochs ? [3 as const] : []),
  ];
}

/**
 * Parses the filters of tags besides those of all lists.
 *
 * @throws ApiError INVALID_ARGUMENT for an invalid digest or a time after the year 9999.
 */
export function parseTagFilters({ digest, updatedSince }: TagFilters): Record<string, string | number> | undefined {
  const violations: FieldViolation[] = [];
  const equals: Record<string, string | number> = {};
  const broken = digest === "" ? undefined : isDigestField(digest, "digest");
  if (broken !== undefined) violations.push({ field: "digest", description: broken });
  else if (digest !== "") equals.digest = digest;
  if (updatedSince !== undefined) {
    const fromMs = findFirstMsAfter(updatedSince);
    if (Number.isSafeInteger(fromMs) && Math.abs(fromMs) <= LAST_MS) equals.updatedSince = fromMs;
    else violations.push({ field: "updatedSince", description: "updatedSince must be a time up to the year 9999" });
  }
  if (violations.length > 0) throw invalidArgument(...violations);
  return Object.keys(equals).length === 0 ? undefined : equals;
}

// Times are stored in milliseconds, so the bound is the first millisecond after the given time.
function findFirstMsAfter(time: Timestamp): number {
  return Math.floor(timestampMs(time)) + 1;
}
