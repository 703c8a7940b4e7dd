// Keys where nodes write side by side. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openPg } from "../../src/store/pg/open.js";
import { runInterleavings } from "../issuer/keys/interleaving.js";
import { HOUR, schedule } from "../issuer/keys/key-kit.js";
import { keyNodesSuite } from "../issuer/keys/nodes-suite.js";
import { newDatabase } from "./databases.js";

async function opener() {
  const url = await newDatabase();
  return () => openPg({ url, poolSize: 4 });
}

keyNodesSuite(opener);

describe("keys on several nodes", () => {
  test("no live token is refused, no revoked key trusted, and one key is always in use", async () => {
    const tally = await runInterleavings({ ...schedule, active: 2 * HOUR }, { runs: 15, open: await opener() });
    assert.ok(tally.accepted > 0 && tally.acceptedElsewhere > 0);
  });
});
