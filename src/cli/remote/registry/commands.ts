// `arbor registry repos` and `arbor registry tags`, as the commands of `arbor iam`. They cannot create or update,
// because repos and tags follow from pushes to the container registry.
import type { Command } from "commander";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { addResourceCommands } from "../iam/commands.js";
import { createColumn, type ResourceCommand } from "../iam/resource-commands.js";

const deletionNote =
  "Images that are still in the registry come back with the next `arbor registry sync`, and when they are pushed again.";

/** The resources in the order of the help. */
const registryResources: readonly ResourceCommand[] = [
  {
    name: "repos",
    singular: "repo",
    methods: {
      list: ReposService.method.listRepos,
      get: ReposService.method.getRepo,
      delete: ReposService.method.deleteRepo,
    },
    columns: [
      createColumn("UID", "uid"),
      createColumn("NAME", "name"),
      createColumn("COPIED FROM", "sync_config.source"),
      createColumn("UPDATED", "updateTime"),
      createColumn("DESCRIPTION", "description", true),
    ],
    deletionNote,
  },
  {
    name: "tags",
    singular: "tag",
    methods: {
      list: TagsService.method.listTags,
      get: TagsService.method.getTag,
      delete: TagsService.method.deleteTag,
    },
    columns: [
      createColumn("UID", "uid"),
      createColumn("NAME", "name"),
      createColumn("DIGEST", "digest"),
      createColumn("UPDATED", "updateTime"),
    ],
    deletionNote,
  },
];

/** Adds the commands to `registry`, which the commands on the host may have created already. */
export function addRegistryCommands(arbor: Command): void {
  const registry = arbor.commands.find((command) => command.name() === "registry") ?? arbor.command("registry");
  addResourceCommands(registry, registryResources);
}
