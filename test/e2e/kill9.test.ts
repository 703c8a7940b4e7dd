// A short campaign; `node scripts/kill9.mjs` runs a long one.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { chooseScale } from "../support/scale.js";
import { runCampaign } from "./kill9-campaign.js";

describe("kill -9", { concurrency: true }, () => {
  const writerCycles = chooseScale(9, 4);
  test("kills lose nothing that was acknowledged, and leave lists and totals right", async () => {
    const { cycles, acknowledged, lost, problems } = await runCampaign({ writerCycles, serverCycles: 1 });
    assert.deepEqual(problems, []);
    assert.equal(lost, 0);
    assert.equal(cycles, writerCycles + 1);
    assert.ok(acknowledged > 10 * cycles, `only ${acknowledged} writes were acknowledged`);
  });

  test("a writer that acknowledges before it commits is found out", async () => {
    const { lost, problems } = await runCampaign({ writerCycles: 10, serverCycles: 0, control: true, untilLost: true });
    assert.ok(lost > 0);
    assert.deepEqual(problems, [], "what is lost is lost as a whole");
  });
});
