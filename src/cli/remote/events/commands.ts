// `arbor events`: subscriptions as the commands of `arbor iam`, their delivery, and events without a sink.
import type { Command } from "commander";
import { EventsService } from "#gen/arbor/events/v1/events_pb.js";
import { addCommonFlags } from "../flags.js";
import { createColumn } from "../iam/columns.js";
import { addResourceCommands } from "../iam/commands.js";
import { loadCommands, type ResourceCommand } from "../iam/resource-commands.js";
import { setMethods } from "../methods.js";

const deliveries: ResourceCommand = {
  name: "deliveries",
  singular: "delivery",
  methods: { list: EventsService.method.listDeliveries },
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
};

/** The resources in the order of the help. */
export const eventResources: readonly ResourceCommand[] = [await loadCommands("subscription"), deliveries];

/** Adds `events` and its commands. */
export function addEventsCommands(arbor: Command): void {
  const events = arbor.command("events").description("manage subscriptions to events, and follow events");
  addResourceCommands(events, eventResources);

  const { getState, test, suspend, resume, redeliver, tail } = EventsService.method;
  const methods = { state: getState, test, suspend, resume } as const;
  const control = (verb: keyof typeof methods, description: string) =>
    addCommonFlags(
      setMethods(getCommand(events, "subscriptions").command(`${verb} <uid>`), methods[verb]).description(description),
    ).action(async (uid, given) => (await import("./run.js")).controls[verb](uid, given));
  control("state", "print how far the delivery to a subscription is");
  control("test", "send an event to the sink, and print how it answered");
  control("suspend", "suspend the delivery");
  control("resume", "resume a delivery that was suspended");

  addCommonFlags(setMethods(getCommand(events, "deliveries").command("redeliver"), redeliver))
    .description("deliver events again, with the ids that they had")
    .requiredOption("--subscription <uid>", "the subscription")
    .option("--id <id>", "one event that `deliveries list` prints")
    .option("--since <time>", "all events since a time such as 2026-01-31T12:00:00Z, or a duration such as 24h")
    .action(async (given) => (await import("./run.js")).redeliver(given));

  addCommonFlags(setMethods(events.command("listen"), tail))
    .description("print events as they happen, until interrupted; no subscription is needed")
    .requiredOption("--scope <uid-or-name>", "the group whose events to print, with those of its descendants")
    .option("--type <type>", "only events of this type")
    .option("--subject <uid-or-name>", "only events of this resource")
    .option("--exec <command>", "run a command of the shell for each event: CE_ID, CE_TYPE, … and the data on stdin")
    .action(async (given) => (await import("./listen.js")).listen(given));
}

function getCommand(parent: Command, name: string): Command {
  const command = parent.commands.find((one) => one.name() === name);
  if (command === undefined) throw new TypeError(`there is no command ${name}`);
  return command;
}
