// `arbor registry repos`, `tags` and the rest of the registry's API, as the commands of `arbor iam`. What only version 1 of
// the API has is called there.
import type { Command } from "commander";
import { createColumn } from "../iam/columns.js";
import { addResources, kindRow, type ResourceRow } from "../iam/resource-rows.js";

const loadV1 = async () => (await import("#gen/chainguard/platform/registry/registry_pb.js")).Registry.method;
const loadRepos = async () =>
  (await import("#gen/chainguard/platform/registry/v2beta1/repos_pb.js")).ReposService.method;
const loadImages = async () =>
  (await import("#gen/chainguard/platform/registry/v2beta1/images_pb.js")).ImagesService.method;

/** The resources in the order of the help. */
export const registryResources: readonly ResourceRow[] = [
  kindRow("repo", {
    change: async () => ({
      actions: [
        {
          name: "tags-summary",
          method: (await loadV1()).getRepoTagsSummary,
          description: "print a summary of the tags of a repo",
          args: ["repo_id"],
        },
        {
          name: "update-status",
          method: (await loadV1()).getUpdateStatus,
          description: "print whether a tag of a repo has changed in the last 24 hours",
          args: ["repo_id"],
        },
        {
          name: "count-copies",
          method: (await loadV1()).getRepoCountBySource,
          description: "print how many copies of a repo you may see",
          args: ["id"],
        },
      ],
    }),
  }),
  {
    name: "readmes",
    singular: "readme of a repo",
    load: async () => ({
      methods: { get: (await loadRepos()).getRepoReadme, update: (await loadRepos()).updateRepoReadme },
    }),
  },
  {
    name: "catalog",
    singular: "repo of the catalogue",
    load: async () => ({
      methods: { list: (await loadRepos()).listCatalogImages },
      columns: [
        createColumn("NAME", "name"),
        createColumn("TIER", "catalogTier"),
        createColumn("DESCRIPTION", "description"),
        createColumn("UPDATED", "updateTime"),
        createColumn("UID", "uid"),
      ],
    }),
  },
  kindRow("tag", {
    change: async () => ({
      actions: [
        {
          name: "update",
          method: (await loadV1()).updateTag,
          description: "replace one tag: the fields without a flag are emptied",
          args: ["id"],
        },
        {
          name: "history",
          method: (await loadV1()).listTagHistory,
          description: "list the images that a tag has pointed at, the oldest first",
          args: ["parent_id"],
          columns: [createColumn("UPDATED", "updateTimestamp"), createColumn("DIGEST", "digest", "uid")],
        },
      ],
    }),
  }),
  kindRow("overlay"),
  kindRow("overlay binding"),
  {
    name: "images",
    singular: "image",
    load: async () => ({
      methods: {},
      actions: [
        {
          name: "architectures",
          method: (await loadImages()).getArchitectures,
          description: "print the architectures of an image",
        },
        { name: "size", method: (await loadImages()).getSize, description: "print the size of an image" },
        {
          name: "config",
          method: (await loadV1()).getImageConfig,
          description: "print the configuration of an image",
          args: ["repo_id", "digest"],
        },
        {
          name: "count-digests",
          method: (await loadV1()).getManifestDigestCount,
          description: "count the manifests that have tags, of a group and its descendants or of a repo",
          args: ["parent_id"],
        },
      ],
    }),
  },
  {
    name: "deployments",
    singular: "deployment",
    load: async () => ({
      methods: {},
      actions: [
        {
          name: "get",
          method: (await loadV1()).getDeployment,
          description: "print the deployment of a repo",
          args: ["repo_id"],
        },
        {
          name: "create",
          method: (await loadV1()).createDeployment,
          description: "create the deployment of a repo: the Helm charts that deploy it",
          args: ["parent_id"],
        },
        {
          name: "update",
          method: (await loadV1()).updateDeployment,
          description: "replace the deployment of a repo",
          args: ["repo_id"],
        },
      ],
    }),
  },
  {
    name: "settings",
    singular: "setting of the registry",
    load: async () => ({
      methods: {},
      actions: [
        {
          name: "get",
          method: (await loadV1()).getRegistrySettings,
          description: "print the settings of an organisation's registry",
          args: ["registry_id"],
        },
        {
          name: "update",
          method: (await loadV1()).updateRegistrySettings,
          description: "replace the settings of an organisation's registry",
          args: ["registry_id"],
        },
      ],
    }),
  },
];

/** Adds the commands over the network to `registry`. */
export function addRegistryCommands(registry: Command): void {
  addResources(registry, registryResources);
}
