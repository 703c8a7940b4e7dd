// `arbor registry repos`, `tags` and the rest of the registry's API, as the commands of `arbor iam`. What only version 1 of
// the API has is called there.
import type { Command } from "commander";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { ImagesService } from "#gen/chainguard/platform/registry/v2beta1/images_pb.js";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { createColumn } from "../iam/columns.js";
import { addResourceCommands } from "../iam/commands.js";
import { loadCommands, type ResourceCommand } from "../iam/resource-commands.js";

/** The resources in the order of the help. */
export const registryResources: readonly ResourceCommand[] = [
  {
    ...(await loadCommands("repo")),
    actions: [
      {
        name: "tags-summary",
        method: Registry.method.getRepoTagsSummary,
        description: "print a summary of the tags of a repo",
        args: ["repo_id"],
      },
      {
        name: "update-status",
        method: Registry.method.getUpdateStatus,
        description: "print whether a tag of a repo has changed in the last 24 hours",
        args: ["repo_id"],
      },
      {
        name: "count-copies",
        method: Registry.method.getRepoCountBySource,
        description: "print how many copies of a repo you may see",
        args: ["id"],
      },
    ],
  },
  {
    name: "readmes",
    singular: "readme of a repo",
    methods: { get: ReposService.method.getRepoReadme, update: ReposService.method.updateRepoReadme },
  },
  {
    name: "catalog",
    singular: "repo of the catalogue",
    methods: { list: ReposService.method.listCatalogImages },
    columns: [
      createColumn("NAME", "name"),
      createColumn("TIER", "catalogTier"),
      createColumn("DESCRIPTION", "description"),
      createColumn("UPDATED", "updateTime"),
      createColumn("UID", "uid"),
    ],
  },
  {
    ...(await loadCommands("tag")),
    actions: [
      {
        name: "update",
        method: Registry.method.updateTag,
        description: "replace one tag: the fields without a flag are emptied",
        args: ["id"],
      },
      {
        name: "history",
        method: Registry.method.listTagHistory,
        description: "list the images that a tag has pointed at, the oldest first",
        args: ["parent_id"],
        columns: [createColumn("UPDATED", "updateTimestamp"), createColumn("DIGEST", "digest", "uid")],
      },
    ],
  },
  await loadCommands("overlay"),
  await loadCommands("overlay binding"),
  {
    name: "images",
    singular: "image",
    methods: {},
    actions: [
      {
        name: "architectures",
        method: ImagesService.method.getArchitectures,
        description: "print the architectures of an image",
      },
      { name: "size", method: ImagesService.method.getSize, description: "print the size of an image" },
      {
        name: "config",
        method: Registry.method.getImageConfig,
        description: "print the configuration of an image",
        args: ["repo_id", "digest"],
      },
      {
        name: "count-digests",
        method: Registry.method.getManifestDigestCount,
        description: "count the manifests that have tags, of a group and its descendants or of a repo",
        args: ["parent_id"],
      },
    ],
  },
  {
    name: "deployments",
    singular: "deployment",
    methods: {},
    actions: [
      {
        name: "get",
        method: Registry.method.getDeployment,
        description: "print the deployment of a repo",
        args: ["repo_id"],
      },
      {
        name: "create",
        method: Registry.method.createDeployment,
        description: "create the deployment of a repo: the Helm charts that deploy it",
        args: ["parent_id"],
      },
      {
        name: "update",
        method: Registry.method.updateDeployment,
        description: "replace the deployment of a repo",
        args: ["repo_id"],
      },
    ],
  },
  {
    name: "settings",
    singular: "setting of the registry",
    methods: {},
    actions: [
      {
        name: "get",
        method: Registry.method.getRegistrySettings,
        description: "print the settings of an organisation's registry",
        args: ["registry_id"],
      },
      {
        name: "update",
        method: Registry.method.updateRegistrySettings,
        description: "replace the settings of an organisation's registry",
        args: ["registry_id"],
      },
    ],
  },
];

/** Adds the commands to `registry`, which the commands on the host may have created already. */
export function addRegistryCommands(arbor: Command): void {
  const registry = arbor.commands.find((command) => command.name() === "registry") ?? arbor.command("registry");
  addResourceCommands(registry, registryResources);
}
