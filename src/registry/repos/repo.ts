// What a repo is: its fields and their rules, and how it is stored and shown.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Repo,
  type RepoReadme,
  RepoReadmeSchema,
  RepoSchema,
} from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import type { ResourceKind } from "../../kernel/errors.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { isDescription } from "../../pipeline/resource/rules.js";
import type { RepoRow } from "../../store/port.js";
import { isReadme } from "./readme-rule.js";
import { isAliases, isBundles, isOverlay, isRepoNameField, isSyncConfig, isTagNames, isTier } from "./repo-rules.js";

/** The repo resource. */
export const repos = defineResource({
  noun: "repo",
  type: "registry.chainguard.dev/Repo",
  message: RepoSchema,
  sort: ["uid", "name", "created_at", "updated_at"],
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
export const readmes = defineResource({
  noun: "repo readme",
  type: "registry.chainguard.dev/RepoReadme",
  message: RepoReadmeSchema,
  sort: ["uid"],
  mutable: { content: isReadme },
});

/** What errors call the groups that repos lie in. */
export const groupKind: ResourceKind = { noun: "group", type: "iam.chainguard.dev/Group" };

/** The fields that a repo shares with the one it is copied from. */
export const copiedFields = ["catalogTier", "bundles", "aliases", "activeTags"] as const;

/** The fields of a repo that are stored as one JSON value. */
export type RepoConfig = Pick<Repo, (typeof copiedFields)[number] | "syncConfig" | "customOverlay">;

/** The fields as they are stored: the JSON of their message. */
export function configToJson(config: RepoConfig): object {
  const { catalogTier, bundles, aliases, activeTags, syncConfig, customOverlay } = config;
  const message = create(RepoSchema, {
    catalogTier,
    bundles,
    aliases,
    activeTags,
    ...(syncConfig && { syncConfig }),
    ...(customOverlay && { customOverlay }),
  });
  return toJson(RepoSchema, message) as JsonObject;
}

/** A stored repo as version 2 shows it. */
export function repoView(row: RepoRow): Repo {
  const repo = fromJson(RepoSchema, row.config as JsonObject, { ignoreUnknownFields: true });
  repo.uid = row.uid;
  repo.name = row.name;
  repo.description = row.description;
  repo.createTime = timestampFromMs(row.createTimeMs);
  repo.updateTime = timestampFromMs(row.updateTimeMs);
  return repo;
}

/** The uid of the repo that a stored one is copied from; undefined where that is none. */
export function sourceOf({ config }: RepoRow): string | undefined {
  return (config as { sync_config?: { source?: string } }).sync_config?.source;
}

/** The readme of a stored repo as version 2 shows it. */
export function readmeView({ uid, readme }: RepoRow): RepoReadme {
  return create(RepoReadmeSchema, { uid, content: readme });
}
