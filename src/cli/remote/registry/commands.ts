// `arbor registry repos` and `arbor registry tags`: the commands of `arbor iam` for what a container registry holds. They
// create and change nothing, because images come from the registry and their settings from its clients.
import type { Command } from "commander";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { addResourceCommands } from "../iam/commands.js";
import { column, type ResourceCommand } from "../iam/resource-commands.js";

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
      column("UID", "uid"),
      column("NAME", "name"),
      column("COPIED FROM", "sync_config.source"),
      column("UPDATED", "updateTime"),
      column("DESCRIPTION", "description", true),
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
      column("UID", "uid"),
      column("NAME", "name"),
      column("DIGEST", "digest"),
      column("UPDATED", "updateTime"),
    ],
    deletionNote,
  },
];

/** Adds the commands to `registry`, and creates it unless the commands for the host are loaded and have created it. */
export function addRegistryCommands(arbor: Command): void {
  const registry = arbor.commands.find((command) => command.name() === "registry") ?? arbor.command("registry");
  addResourceCommands(registry, registryResources);
}
