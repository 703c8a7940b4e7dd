// The real decision against a reference model; `node scripts/decisions.mjs` asks
// a million questions.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseScale } from "../support/scale.js";
import { runDecisions } from "./decision-run.js";

const SEED = 20_260;
const DECISIONS = chooseScale(20_000, 8_000);

test(`${DECISIONS} random decisions are those of the reference model`, async (t) => {
  const { decisions, allowed, differences, mutations, roots, depth } = await runDecisions(DECISIONS, SEED);
  t.diagnostic(`seed ${SEED}: ${allowed} of ${decisions} allowed, ${mutations} changes`);
  assert.deepEqual(differences, []);
  assert.equal(decisions, DECISIONS);
  assert.ok(allowed > 0.3 * decisions && allowed < 0.7 * decisions, `${allowed} allowed`);
  assert.ok(mutations >= DECISIONS / 50 && roots >= 3 && depth >= 6);
});

test("a model in which bindings do not hold below their group is found out", async () => {
  const { differences } = await runDecisions(2_000, SEED, { inherits: false });
  assert.ok(differences.length >= 20);
});
