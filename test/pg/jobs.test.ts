// Background jobs on nodes that share a database. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openPg } from "../../src/store/pg/open.js";
import { counter, createNode, jobsSuite } from "../jobs/jobs-suite.js";
import { runTakeovers } from "../jobs/takeover-campaign.js";
import { newDatabase } from "./databases.js";

jobsSuite(async () => {
  const url = await newDatabase();
  return () => openPg({ url, poolSize: 3 });
});

describe("background jobs on PostgreSQL", () => {
  test("the clock of the database decides leases, not those of the nodes", async (t) => {
    const url = await newDatabase();
    const at = (offsetMs: number) => openPg({ url, poolSize: 2, clock: () => Date.now() + offsetMs });
    const [late, early] = [await at(-3_600_000), await at(3_600_000)];
    t.after(() => Promise.all([late.close(), early.close()]));
    const values = { leaseMs: 60_000 };
    const [one, two] = [createNode(late, "one", counter(), values), createNode(early, "two", counter(), values)];
    assert.deepEqual([await one.runNow(), await two.runNow(), await one.runNow()], [1, 0, 2]);
    const nowMs = await early.read((tx) => tx.jobs.nowMs());
    assert.ok(Math.abs(nowMs - Date.now()) < 60_000, "the server runs on this machine");
  });

  // `npm run campaign -- long jobs` makes all 20.
  const takeovers = process.env.TEST_ARBOR_CAMPAIGN === "1" ? 20 : 4;

  test(`${takeovers} take-overs of nodes that are killed or paused mix no results`, async () => {
    const { violations, rejected, takeoverMs, numbers } = await runTakeovers({
      url: await newDatabase(),
      takeovers,
    });
    assert.deepEqual(violations, []);
    assert.equal(rejected, takeovers / 2, "every paused node tried to write after it woke up");
    assert.equal(takeoverMs.length, takeovers);
    assert.ok(numbers > takeovers / 2, `${numbers} numbers`);
  });

  test("without the check of the fencing number results mix", async () => {
    const { violations } = await runTakeovers({ url: await newDatabase(), takeovers: 1, control: true });
    assert.ok(violations.length > 0);
  });
});
