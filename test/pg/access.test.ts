// What AccessService says, against the guard and a naive evaluation, on PostgreSQL. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runAccess } from "../access/access-run.js";
import { chooseScale } from "../support/scale.js";
import { newDatabase } from "./databases.js";

const SEED = 1_147;
const CALLS = chooseScale(5_000, 500);

test(`${CALLS} random calls and questions have the answers of the naive evaluation`, async (t) => {
  const { differences, calls, allowed } = await runAccess({ calls: CALLS, seed: SEED, newDatabase });
  t.diagnostic(`seed ${SEED}: ${allowed} of ${calls} allowed`);
  assert.deepEqual(differences, []);
  assert.equal(calls, CALLS);
});
