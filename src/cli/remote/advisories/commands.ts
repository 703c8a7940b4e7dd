// `arbor advisories`, as the commands of `arbor iam`. Version 2 of the API reads advisories, and version 1 writes them.
import type { Command } from "commander";
import { Advisories, AdvisoryEventSchema } from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import { AdvisoriesService } from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { createColumn, present } from "../iam/columns.js";
import { addMethods } from "../iam/methods.js";
import { loadCommands, type ResourceCommand } from "../iam/resource-commands.js";

const eventTypes = AdvisoryEventSchema.oneofs.flatMap(({ name, fields }) =>
  name === "type" ? fields.map(({ jsonName }) => jsonName) : [],
);

const advisories: ResourceCommand = {
  ...(await loadCommands("advisory")),
  actions: [
    {
      name: "create",
      method: Advisories.method.create,
      description: "create one advisory",
      args: ["parent_id"],
      resource: "advisory",
    },
    {
      name: "update",
      method: Advisories.method.update,
      description: "replace one advisory: the fields that are not given are emptied",
      args: ["id"],
    },
    {
      name: "delete",
      method: Advisories.method.delete,
      description: "withdraw one advisory: it is kept and marked as deleted",
      args: ["id"],
      destructive: true,
      describe: AdvisoriesService.method.getAdvisory,
    },
  ],
};

const events: ResourceCommand = {
  name: "events",
  singular: "event of an advisory",
  methods: {},
  actions: [
    {
      name: "list",
      method: Advisories.method.listAdvisoryEvents,
      description: "list the events of an advisory",
      args: ["parent_id"],
      columns: [
        { title: "TYPE", cell: present(...eventTypes) },
        createColumn("TIME", "timestamp"),
        createColumn("STATUS", "status"),
        createColumn("AUTHOR", "author"),
        createColumn("ID", "id", "uid"),
      ],
    },
    {
      name: "create",
      method: Advisories.method.createAdvisoryEvent,
      description: "add an event to an advisory",
      args: ["parent_id"],
      resource: "advisory_event",
    },
    {
      name: "update",
      method: Advisories.method.updateAdvisoryEvent,
      description: "replace one event: the fields that are not given are emptied",
      args: ["id"],
    },
  ],
};

/** The resources in the order of the help. */
export const advisoryResources: readonly ResourceCommand[] = [advisories, events];

/** Adds the commands over the network to `advisories`. */
export function addAdvisoriesCommands(parent: Command): void {
  addMethods(parent, advisories);
  addMethods(parent.command(events.name).description("manage events of an advisory"), events);
}
