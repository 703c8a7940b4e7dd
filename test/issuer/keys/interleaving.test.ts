// Run with TEST_ARBOR_RUNS for more sequences.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { chooseScale } from "../../support/scale.js";
import { runInterleavings } from "./interleaving.js";
import { HOUR, MINUTE, schedule } from "./key-kit.js";

const quick = { ...schedule, active: 2 * HOUR };

describe("keys on several nodes, in any order of events", () => {
  test("no live token is rejected, no revoked key is trusted, and one key is always active", async () => {
    const runs = Number(process.env.TEST_ARBOR_RUNS ?? chooseScale(200, 20));
    const tally = await runInterleavings(quick, { runs });
    for (const [what, count] of Object.entries(tally)) assert.ok(count > runs / 4, `${what}: ${count}`);
  });

  // Each with the seed of sequences that find it soon.
  const faults = [
    {
      name: "a key that is used as soon as it is made",
      schedule: { ...quick, pending: 0 },
      found: /max-age|a live token/,
      seed: 3,
    },
    {
      name: "a key that waits a little too short",
      schedule: { ...quick, pending: 2 * MINUTE },
      found: /max-age/,
      seed: 5,
    },
    {
      name: "a key that is removed too early",
      schedule: { ...quick, verify: 20 * MINUTE },
      found: /a live token/,
      seed: 6,
    },
  ];
  for (const { name, schedule: wrong, found, seed } of faults) {
    test(`control: detects ${name}`, async () => {
      await assert.rejects(runInterleavings(wrong, { runs: 1_000, seed }), (error: Error) => {
        assert.match(String(error.cause), found);
        return true;
      });
    });
  }
});
