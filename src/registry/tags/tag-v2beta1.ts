// The handlers of TagsService in version 2beta1.
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { type ListTagsRequest, TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { type FieldViolation, invalidArgument, notFound } from "../../kernel/errors.js";
import { serve } from "../../pipeline/method-table.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { valuesOf } from "../../pipeline/resource/patch.js";
import type { Awaitable, ListQuery, Page, TagFamily, TagRow, Tx } from "../../store/port.js";
import type { RegistryDeps } from "../registry-deps.js";
import { foundRepo } from "../repos/repo-v2beta1.js";
import { isDigestField, tags, tagView } from "./tag.js";
import { upsertTag } from "./tag-operations.js";

/** The last moment that a Timestamp can name, in epoch milliseconds: the end of the year 9999. */
const LAST_MS = 253_402_300_799_999;

type IncludedFamilies = Pick<ListTagsRequest, "includeReferrers" | "includeDates" | "includeEpochs">;
type TagFilters = Pick<ListTagsRequest, "digest"> & { readonly updatedSince?: Timestamp | undefined };

/** TagsService, ready to be served. */
export function tagsV2beta1({ tokens, ids }: RegistryDeps) {
  return serve(TagsService, {
    async getTag({ uid }, { tx }) {
      return tagView(await foundTag(uid, tx));
    },

    async listTags(request, call) {
      const { tx, startMs } = call;
      const families = familiesIn(request);
      const list = listQueryOf(tags, request, {
        // A page token does not lead from some families into others.
        method: `ListTags ${families.join(" ")}`,
        tokens,
        nowMs: startMs,
        visible: await call.visibleGroups(request.uidp),
        ...filtersIn(request),
      });
      const page = await tagPage(tx, list.query, families);
      return { tags: page.rows.map(tagView), ...list.envelope(page) };
    },

    async createTag({ parent, tag }, { tx, startMs }) {
      await foundRepo(parent, tx);
      const values = valuesOf(tags, tag);
      return tagView(await upsertTag(tx, { repoUid: parent, ...values, nowMs: startMs, ids }));
    },

    async deleteTag({ uid }, { tx }) {
      await foundTag(uid, tx);
      await tx.tags.delete(uid);
      return {};
    },
  });
}

/**
 * The tag of this uid.
 *
 * @throws ApiError NOT_FOUND; the pipeline words that for who may not know.
 */
export async function foundTag(uid: string, tx: Tx): Promise<TagRow> {
  const row = await tx.tags.get(uid);
  if (row === undefined) throw notFound(tags, uid);
  return row;
}

/** The tags of these families that `query` asks for. */
export function tagPage(tx: Tx, query: ListQuery, families: readonly TagFamily[]): Awaitable<Page<TagRow>> {
  if (families.length === 1) return tx.tags.list(query);
  return tx.tags.listAll(query, families.length === 4 ? undefined : families);
}

/** The families of tags that a list shows: the usual one, which comes first, and those asked for. */
export function familiesIn({ includeReferrers, includeDates, includeEpochs }: IncludedFamilies): TagFamily[] {
  return [
    0,
    ...(includeReferrers ? [1 as const] : []),
    ...(includeDates ? [2 as const] : []),
    ...(includeEpochs ? [3 as const] : []),
  ];
}

/**
 * The filters that lists of tags have besides those of all lists.
 *
 * @throws ApiError INVALID_ARGUMENT for what is no digest, or a time far off.
 */
export function filtersIn({ digest, updatedSince }: TagFilters): { equals?: Record<string, string | number> } {
  const violations: FieldViolation[] = [];
  const equals: Record<string, string | number> = {};
  const broken = digest === "" ? undefined : isDigestField(digest, "digest");
  if (broken !== undefined) violations.push({ field: "digest", description: broken });
  else if (digest !== "") equals.digest = digest;
  if (updatedSince !== undefined) {
    const fromMs = firstMsAfter(updatedSince);
    if (Number.isSafeInteger(fromMs) && Math.abs(fromMs) <= LAST_MS) equals.updatedSince = fromMs;
    else violations.push({ field: "updatedSince", description: "updatedSince must be a time up to the year 9999" });
  }
  if (violations.length > 0) throw invalidArgument(...violations);
  return Object.keys(equals).length === 0 ? {} : { equals };
}

// Times are stored in milliseconds: the first of them that is later than the time given.
function firstMsAfter(time: Timestamp): number {
  return Math.floor(timestampMs(time)) + 1;
}
