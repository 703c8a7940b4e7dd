// What organisations with many slow sinks take from others.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { restAs } from "../contract/rest.js";
import { type Harness, startHarness } from "../support/harness.js";
import { waitUntil } from "../support/wait-until.js";
import { RECEIVER_SETTINGS, type Receiver, startReceiver } from "./receiver.js";

let harness: Harness;
before(async () => {
  harness = await startHarness(RECEIVER_SETTINGS);
});
after(() => harness.stop());

/** A new organisation with subscriptions, and a function that makes an event for each. */
async function subscribe(name: string, sinks: readonly string[]) {
  const { group, token } = await harness.organisation(name);
  const rest = restAs(harness.url, token, "");
  for (const sink of sinks) {
    const { status, text } = await rest("POST", `/events/v2beta1/subscriptions/${group}`, { sink });
    assert.equal(status, 200, text);
  }
  return async (child: string) => {
    const { json } = await rest("POST", `/iam/v2beta1/groups/${group}`, { name: child });
    return String(json?.uid);
  };
}

test("400 slow sinks of an organisation delay no event of another", { timeout: 120_000 }, async () => {
  let held = 0;
  let ended = 0;
  const slow: Receiver[] = [];
  for (let i = 0; i < 20; i++) {
    slow.push(
      await startReceiver(() => (response) => {
        held++;
        response.on("close", () => ended++);
      }),
    );
  }
  const sinks = slow.flatMap(({ url }) => Array.from({ length: 20 }, (_, i) => `${url}/${i}`));
  const honest = await startReceiver();
  const createGroup = await subscribe("honest.example", [honest.url]);
  await honest.accepted(1);
  const flood = await subscribe("slow.example", sinks);
  await flood("event");
  await waitUntil(() => held - ended >= 32, 30_000);

  // Each within the time that a slow sink has: events wait for none of these.
  for (let i = 0; i < 5; i++) {
    const uid = await createGroup(`g${i}`);
    const before = ended;
    await waitUntil(() => honest.received.some(({ event }) => event.subject === uid));
    assert.ok(ended - before <= 40, `${ended - before} requests to slow sinks have ended meanwhile`);
  }
  assert.ok(held - ended <= 72, `${held - ended} requests to slow sinks at once`);
  for (const { close } of [...slow, honest]) close();
});
