// The delivery of events on PostgreSQL. Needs TEST_ARBOR_DATABASE_URL.
import "../events/delivery.test.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { runEventCampaign } from "../events/kill-campaign.js";

test("nothing is lost where the leader of two nodes is killed and rows are committed late", async () => {
  const result = await runEventCampaign({ kills: 2, changes: 120, failing: 0.3, isPg: true });
  assert.deepEqual([result.lost, result.problems], [0, []]);
  assert.ok((result.takeoverMs.at(-1) ?? Number.POSITIVE_INFINITY) < 10_000, `${result.takeoverMs} ms`);
});
