// Outages of the delivery of events: of the sinks, and of the service.
import assert from "node:assert/strict";
import { RECEIVER_SETTINGS, startReceiver } from "../../events/receiver.js";
import { newDatabase } from "../../pg/databases.js";
import type { Recording } from "../recording.js";
import { type Defer, type Outages, onPostgres, openBeside, startNode, untilMetric, WELL } from "./outage.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const SINKS = 4;

/** A node whose organisation has subscriptions with a sink each, which accept everything while they are well. */
async function startSubscribed(defer: Defer, settings: Readonly<Record<string, string>>) {
  const node = await startNode(defer, { ...RECEIVER_SETTINGS, ...settings });
  const sinks = { status: 200 };
  for (let i = 0; i < SINKS; i++) {
    const receiver = await startReceiver(() => sinks.status);
    defer(receiver.close);
    const subscription = { sink: receiver.url };
    assert.equal(await node.call("POST", `/events/v2beta1/subscriptions/${node.group}`, subscription), 200);
  }
  await untilMetric(node, "arbor_event_subscriptions", { state: "live" }, (count) => count === SINKS);
  return { node, sinks };
}

/** All sinks fail from an event on. The clock is set forward by the time that they have failed for. */
async function failSinks(recording: Recording, defer: Defer, settings: Readonly<Record<string, string>>) {
  const { node, sinks } = await startSubscribed(defer, settings);
  await node.createGroup();
  await untilMetric(node, "arbor_event_deliveries_total", { result: "accepted" }, (count) => count >= SINKS);
  await recording.scrape(node.metrics, WELL);
  recording.beginOutage();
  sinks.status = 500;
  await node.createGroup();
  await untilMetric(node, "arbor_event_subscriptions", { state: "failing" }, (count) => count === SINKS);
  await untilMetric(node, "arbor_events_waiting", {}, (count) => count >= SINKS);
  return node;
}

function sinksFailForAnHour(settings: () => Promise<Readonly<Record<string, string>>>) {
  return {
    alerts: ["ArborEventsNotAccepted", "ArborMostSinksFail"],
    async run(recording: Recording, defer: Defer) {
      const node = await failSinks(recording, defer, await settings());
      node.harness.skewMs = HOUR_MS + MINUTE_MS;
      const labels = { longer_than: "1h" };
      await untilMetric(node, "arbor_event_subscriptions_failing", labels, (count) => count === SINKS);
      await untilMetric(node, "arbor_event_oldest_seconds", { waits_for: "retry" }, (seconds) => seconds > 3_600);
      await recording.scrape(node.metrics, 2);
      recording.hold(3);
    },
  };
}

function sinksFailForADay(settings: () => Promise<Readonly<Record<string, string>>>) {
  return {
    alerts: ["ArborEventsSuspended"],
    async run(recording: Recording, defer: Defer) {
      const node = await failSinks(recording, defer, await settings());
      node.harness.skewMs = 25 * HOUR_MS;
      const labels = { reason: "failed" };
      await untilMetric(node, "arbor_event_subscriptions_suspended", labels, (count) => count === SINKS);
      await recording.scrape(node.metrics, 2);
    },
  };
}

const onSqlite = async () => ({});
const onOwnPostgres = async () => onPostgres(await newDatabase());

export const eventOutages: Outages = {
  "all sinks have failed for an hour": sinksFailForAnHour(onSqlite),
  "all sinks have failed for an hour, on PostgreSQL": sinksFailForAnHour(onOwnPostgres),
  "all sinks have failed for a day": sinksFailForADay(onSqlite),
  "all sinks have failed for a day, on PostgreSQL": sinksFailForADay(onOwnPostgres),
  "somebody has added a trigger that keeps positions from being written": {
    alerts: ["ArborEventsLate"],
    async run(recording, defer) {
      const { node } = await startSubscribed(defer, {});
      await recording.scrape(node.metrics, WELL);
      recording.beginOutage();
      openBeside(node, defer).exec(
        "CREATE TRIGGER planted BEFORE UPDATE ON event_positions BEGIN SELECT RAISE(ABORT, 'planted'); END",
      );
      await node.createGroup();
      node.harness.skewMs = 20 * MINUTE_MS;
      await untilMetric(node, "arbor_event_oldest_seconds", { waits_for: "unsent" }, (seconds) => seconds > 600);
      await recording.scrape(node.metrics, 2);
      recording.hold(6);
    },
  },
};
