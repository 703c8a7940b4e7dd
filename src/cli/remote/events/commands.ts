// `arbor events`: subscriptions as the commands of `arbor iam`, their delivery, and events without a sink.
import type { Command } from "commander";
import { addCommonFlags } from "../flags.js";
import { createColumn } from "../iam/columns.js";
import { addResources, kindRow, type ResourceRow } from "../iam/resource-rows.js";
import { setMethods } from "../methods.js";

const SERVICE = "arbor.events.v1.EventsService";

const deliveries: ResourceRow = {
  name: "deliveries",
  singular: "delivery",
  loadMore: async () => addRedeliver,
  load: async () => ({
    methods: { list: (await import("#gen/arbor/events/v1/events_pb.js")).EventsService.method.listDeliveries },
    columns: [
      createColumn("TYPE", "type", "path"),
      createColumn("TIME", "time"),
      createColumn("STATUS", "status"),
      createColumn("ATTEMPTS", "attempts"),
      createColumn("NEXT ATTEMPT", "nextAttemptTime"),
      createColumn("LAST ERROR", "lastError", "prose"),
      createColumn("SUBJECT", "subject", "uid"),
      createColumn("ID", "id", "uid"),
    ],
  }),
};

/** The resources in the order of the help. */
export const eventResources: readonly ResourceRow[] = [
  kindRow("subscription", { loadMore: async () => addControls }),
  deliveries,
];

/** Fills `events`. */
export function addEventsCommands(events: Command): void {
  addResources(events, eventResources);

  addCommonFlags(setMethods(events.command("listen"), `${SERVICE}/Tail`))
    .description("print events as they happen, until interrupted; no subscription is needed")
    .requiredOption("--scope <uid-or-name>", "the group whose events to print, with those of its descendants")
    .option("--type <type>", "only events of this type")
    .option("--subject <uid-or-name>", "only events of this resource")
    .option("--exec <command>", "run a command of the shell for each event: CE_ID, CE_TYPE, … and the data on stdin")
    .action(async (given) => (await import("./listen.js")).listen(given));
}

function addControls(subscriptions: Command): void {
  const methods = { state: "GetState", test: "Test", suspend: "Suspend", resume: "Resume" } as const;
  const control = (verb: keyof typeof methods, description: string) =>
    addCommonFlags(
      setMethods(subscriptions.command(`${verb} <uid>`), `${SERVICE}/${methods[verb]}`).description(description),
    ).action(async (uid, given) => (await import("./run.js")).controls[verb](uid, given));
  control("state", "print how far the delivery to a subscription is");
  control("test", "send an event to the sink, and print how it answered");
  control("suspend", "suspend the delivery");
  control("resume", "resume a delivery that was suspended");
}

function addRedeliver(deliveries: Command): void {
  addCommonFlags(setMethods(deliveries.command("redeliver"), `${SERVICE}/Redeliver`))
    .description("deliver events again, with the ids that they had")
    .requiredOption("--subscription <uid>", "the subscription")
    .option("--id <id>", "one event that `deliveries list` prints")
    .option("--since <time>", "all events since a time such as 2026-01-31T12:00:00Z, or a duration such as 24h")
    .action(async (given) => (await import("./run.js")).redeliver(given));
}
