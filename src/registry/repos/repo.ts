// The repo resource: its definition, how it is stored, and how version 2 shows it.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { ReposService as StableReposService } from "#gen/chainguard/platform/registry/v2/repos_pb.js";
import {
  type Repo,
  type RepoReadme,
  RepoReadmeSchema,
  RepoSchema,
  ReposService,
} from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import type { Ids } from "../../kernel/ids.js";
import { timestampOf } from "../../kernel/time.js";
import { defineMutableFields, defineResource } from "../../pipeline/resource/define.js";
import { countRows } from "../../pipeline/resource/delete.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import { isDescription } from "../../pipeline/resource/rules.js";
import { overlayBindingKind } from "../../store/registry/overlay-bindings.js";
import { type RepoRow, repoKind } from "../../store/registry/repos.js";
import { tagKind } from "../../store/registry/tags.js";
import type { Tx } from "../../store/transaction.js";
import { isReadme } from "./readme-rule.js";
import {
  addsNothing,
  isAliases,
  isBundles,
  isOverlay,
  isRepoNameField,
  isSyncConfig,
  isTagNames,
  isTier,
} from "./repo-rules.js";

export const repos = defineResource({
  displayName: "repo",
  type: "registry.chainguard.dev/Repo",
  plural: "repos",
  message: RepoSchema,
  kind: repoKind,
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: { restrict: (tx, uid) => countRows(tx.table(repoKind), "groupUid", uid) },
  },
  createdBy: [
    createsInScope(ReposService.method.createRepo),
    // Version 1 updates a repo that exists, unless the caller prevents that.
    createsInScope(Registry.method.createRepo, ({ parentId, repo, preventExisting }) => ({
      exact: async (tx) =>
        !preventExisting && (await tx.table(repoKind).findByName(parentId, repo?.name ?? "")) ? 0 : 1,
    })),
  ],
  stable: StableReposService,
  mutable: {
    name: isRepoNameField,
    description: isDescription,
    catalogTier: isTier,
    bundles: isBundles,
    aliases: isAliases,
    activeTags: isTagNames,
    syncConfig: isSyncConfig,
    customOverlay: isOverlay,
  },
});

/** The readme of a repo, as a resource of its own. */
export const readmes = defineMutableFields({
  displayName: "repo readme",
  type: "registry.chainguard.dev/RepoReadme",
  message: RepoReadmeSchema,
  mutable: { content: isReadme },
});

/** The fields that a copy shares with its source. */
export const copiedFields = ["catalogTier", "bundles", "aliases", "activeTags"] as const;

/** A field that a copy takes from its source where the caller leaves it out. */
export type InheritedField = (typeof copiedFields)[number] | "description" | "readme";

/** The fields of a repo that are stored as one JSON value. */
export type RepoConfig = Pick<Repo, (typeof copiedFields)[number] | "syncConfig" | "customOverlay">;

/**
 * Converts the fields to what is stored: the JSON of their message.
 *
 * @param inherited the fields of a copy that its caller has left out
 */
export function configToJson(config: RepoConfig, inherited: readonly InheritedField[] = []): object {
  const { catalogTier, bundles, aliases, activeTags, syncConfig, customOverlay } = config;
  const message = create(RepoSchema, {
    catalogTier,
    bundles,
    aliases,
    activeTags,
    ...(syncConfig && { syncConfig }),
    ...(customOverlay && { customOverlay }),
  });
  return { ...(toJson(RepoSchema, message) as JsonObject), ...(inherited.length > 0 && { inherited }) };
}

/** Whether a repo has an overlay of its own that adds something. */
export function hasOverlay({ customOverlay }: Pick<RepoConfig, "customOverlay">): boolean {
  return customOverlay !== undefined && !addsNothing(customOverlay);
}

/** Converts a stored repo to version 2. */
export function repoToProto(row: RepoRow): Repo {
  const repo = fromJson(RepoSchema, row.config as JsonObject, { ignoreUnknownFields: true });
  repo.uid = row.uid;
  repo.name = row.name;
  repo.description = row.description;
  repo.createTime = timestampOf(row.createTimeMs);
  repo.updateTime = timestampOf(row.updateTimeMs);
  return repo;
}

/** Converts a stored repo to what everybody sees of it in the catalogue. */
export function repoToCatalogEntry(row: RepoRow): Repo {
  const repo = repoToProto(row);
  delete repo.syncConfig;
  delete repo.customOverlay;
  return repo;
}

/** The fields of a stored copy that its caller has left out. Copies that are older than this list have none. */
export function readInheritedFields({ config }: Pick<RepoRow, "config">): readonly InheritedField[] {
  return (config as { inherited?: readonly InheritedField[] }).inherited ?? [];
}

/** Marks a field of a stored copy as inherited, or as given by the caller. */
export function markInherited(row: RepoRow, field: InheritedField, isInherited: boolean): RepoRow {
  const { inherited: _, ...config } = row.config as Record<string, unknown>;
  const others = readInheritedFields(row).filter((one) => one !== field);
  const inherited = isInherited ? [...others, field] : others;
  return { ...row, config: { ...config, ...(inherited.length > 0 && { inherited }) } };
}

/** Finds the uid of the repo that a stored one is copied from. */
export function findSource({ config }: RepoRow): string | undefined {
  return (config as { sync_config?: { source?: string } }).sync_config?.source;
}

/** Converts the readme of a stored repo to version 2. */
export function readmeToProto({ uid, readme }: RepoRow): RepoReadme {
  return create(RepoReadmeSchema, { uid, content: readme });
}

/** The ids and the time of a new row. */
export interface RepoCreation {
  readonly ids: Ids;
  /** In epoch milliseconds. */
  readonly nowMs: number;
}

/** Builds the row of a repo with nothing but a name. */
export function buildRepo(groupUid: string, name: string, { ids, nowMs }: RepoCreation): RepoRow {
  return {
    uid: ids.newUid(groupUid),
    groupUid,
    name,
    description: "",
    config: {},
    readme: "",
    createTimeMs: nowMs,
    updateTimeMs: nowMs,
  };
}

/** Finds the repo of this name in a group that exists, or creates it. */
export async function ensureRepo(tx: Tx, groupUid: string, name: string, creation: RepoCreation): Promise<RepoRow> {
  const found = await tx.table(repoKind).findByName(groupUid, name);
  if (found !== undefined) return found;
  const row = buildRepo(groupUid, name, creation);
  await tx.table(repoKind).insert(row);
  return row;
}

/** Deletes some of what a repo has; resolves to how many rows, which is zero when none is left. */
export async function deleteContents(tx: Tx, repoUid: string): Promise<number> {
  return (
    (await tx.table(tagKind).deleteSome(repoUid)) ||
    (await tx.table(overlayBindingKind).deleteSome(repoUid)) ||
    (await tx.registry.deleteManifests(repoUid))
  );
}
