// The tag resource: its definition, how it is written, how version 2 shows it, and its handlers in version 2beta1.
import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { TagsService as StableTagsService } from "#gen/chainguard/platform/registry/v2/tags_pb.js";
import {
  type CreateTagRequest,
  type ListTagsRequest,
  type Tag,
  TagSchema,
  TagsService,
} from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { breakRule, type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import { timestampOf } from "../../kernel/time.js";
import { type BodyView, defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { buildValues } from "../../pipeline/resource/patch.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import { findsResource, getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { type FieldRule, isAnything } from "../../pipeline/resource/rules.js";
import { classifyTag, formatIncluded, type IncludedKinds, selectFamilies } from "../../store/registry/tag-families.js";
import { type TagRow, tagKind } from "../../store/registry/tags.js";
import type { Tx } from "../../store/transaction.js";
import { parseDigest } from "../oci/reference.js";
import { repos } from "../repos/repo.js";
import { isLabels, isTagNameField } from "../repos/repo-rules.js";

export const isDigestField: FieldRule = (value, field) =>
  parseDigest(value) ? undefined : breakRule(field, "must be a digest, such as sha256: and 64 hexadecimal digits");

export const tags = defineResource({
  displayName: "tag",
  type: "registry.chainguard.dev/Tag",
  plural: "tags",
  message: TagSchema,
  kind: tagKind,
  parent: {
    type: "registry.chainguard.dev/Repo",
    onDelete: { cascade: (tx, repoUid) => tx.table(tagKind).deleteOf(repoUid) },
  },
  createdBy: [
    createsInScope(TagsService.method.createTag, ({ parent, tag }) => countNew(parent, tag?.name)),
    createsInScope(Registry.method.createTag, ({ repoId, tag }) => countNew(repoId, tag?.name)),
  ],
  stable: StableTagsService,
  mutable: {
    name: isTagNameField,
    digest: isDigestField,
    deprecated: isAnything,
    bundles: isLabels,
  },
});

// The creation of a tag that exists moves it.
function countNew(repoUid: string, name = "") {
  return { exact: async (tx: Tx) => ((await tx.table(tagKind).findByName(repoUid, name)) === undefined ? 1 : 0) };
}

/** How bodies of the audit log show tags. */
export const tagView = { message: TagSchema, readers: [TagsService.method.listTags] } as const satisfies BodyView;

/** Converts a stored tag to version 2. */
export function tagToProto({ uid, name, digest, deprecated, bundles, updateTimeMs }: TagRow): Tag {
  return create(TagSchema, { uid, name, digest, deprecated, bundles, updateTime: timestampOf(updateTimeMs) });
}

/** The values of a tag that is created or updated. */
interface TagInput {
  readonly repoUid: string;
  readonly name: string;
  readonly digest: string;
  /** The time of the change, in epoch milliseconds. */
  readonly nowMs: number;
  readonly ids: Ids;
  /** Absent: unchanged, false for a new tag. */
  readonly deprecated?: boolean;
  /** Absent: unchanged, none for a new tag. */
  readonly bundles?: readonly string[];
}

/**
 * Creates the tag of this name in a repo that exists, or updates it. The API and the events of a registry both write
 * tags by this function, so that rows and histories are the same. A new `digest` is added to the history of the tag.
 */
export async function upsertTag(tx: Tx, tag: TagInput): Promise<TagRow> {
  const { repoUid, name, digest, nowMs, ids } = tag;
  const before = await tx.table(tagKind).findByName(repoUid, name);
  const { deprecated = before?.deprecated ?? false, bundles = before?.bundles ?? [] } = tag;
  const values = { digest, deprecated, bundles: [...bundles], updateTimeMs: nowMs };
  if (before === undefined) {
    const row: TagRow = {
      uid: ids.newUid(repoUid),
      repoUid,
      name,
      family: classifyTag(name),
      ...values,
      createTimeMs: nowMs,
    };
    await tx.table(tagKind).insert(row);
    await tx.table(tagKind).recordMove({ tagUid: row.uid, timeMs: nowMs, digest });
    return row;
  }
  if (before.digest === digest && before.deprecated === deprecated && isSameList(before.bundles, bundles))
    return before;
  const row: TagRow = { ...before, ...values };
  await tx.table(tagKind).replace(row);
  if (before.digest !== digest) await tx.table(tagKind).recordMove({ tagUid: row.uid, timeMs: nowMs, digest });
  return row;
}

/** Deletes the tag of this name with its history, and returns it; undefined where it does not exist. */
export async function removeTag(tx: Tx, repoUid: string, name: string): Promise<TagRow | undefined> {
  const row = await tx.table(tagKind).findByName(repoUid, name);
  if (row !== undefined) await tx.table(tagKind).delete(row.uid);
  return row;
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}

/** The latest value of a Timestamp, in epoch seconds: the end of the year 9999. */
const LAST_S = 253_402_300_799;

type TagFilters = Pick<ListTagsRequest, "digest"> & { readonly updatedSince?: Timestamp | undefined };

/** Creates TagsService. */
export function tagsV2beta1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  const handlers: Handlers<typeof TagsService> = {
    getTag: ({ uid }, { tx }) => getResource(tx, tags, uid, tagToProto),

    async listTags(request, call) {
      const included = findIncluded(request);
      const { resources, ...page } = await listResources(call, tags, request, tagToProto, {
        // A page token does not continue a list that includes other kinds.
        method: `ListTags ${formatIncluded(included)}`,
        readPage: (query) => call.tx.table(tagKind).listAll(query, selectFamilies(included)),
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
      await tx.table(tagKind).delete(uid);
      return {};
    },
  };
  const bodies = defineBodies(tagView, findsResource(tags, tagToProto));
  // A tag that exists is moved.
  const findSame = async (parent: string, { tx }: UnaryCall, { tag }: CreateTagRequest) => {
    const row = await tx.table(tagKind).findByName(parent, tag?.name ?? "");
    return row && tagToProto(row);
  };
  return serve(TagsService, handlers, {
    createTag: { body: { ...bodies.created, findBefore: findSame } },
    deleteTag: { body: bodies.deleted },
  });
}

function findIncluded(request: ListTagsRequest): IncludedKinds {
  const { includeReferrers, includeDates, includeEpochs, includeVcsSnapshots } = request;
  return {
    referrers: includeReferrers,
    dates: includeDates,
    epochs: includeEpochs,
    vcsSnapshots: includeVcsSnapshots,
  };
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
  if (broken !== undefined) violations.push({ ...broken, field: "digest" });
  else if (digest !== "") equals.digest = digest;
  if (updatedSince !== undefined) {
    if (isBefore10000(updatedSince)) equals.updatedSince = findFirstMsAfter(updatedSince);
    else violations.push({ field: "updatedSince", rule: "must be a time up to the year 9999" });
  }
  if (violations.length > 0) throw invalidArgument(...violations);
  return Object.keys(equals).length === 0 ? undefined : equals;
}

/** Whether a time is in the year 9999 or earlier, its last fraction of a second included. */
export function isBefore10000({ seconds }: Timestamp): boolean {
  return Math.abs(Number(seconds)) <= LAST_S;
}

// Times are stored in milliseconds, so the bound is the first millisecond after the given time.
function findFirstMsAfter(time: Timestamp): number {
  return Math.floor(timestampMs(time)) + 1;
}
