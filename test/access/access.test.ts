// What AccessService says, against the guard of every served method and a naive evaluation; `node scripts/access.mjs`
// makes a hundred thousand calls.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseScale } from "../support/scale.js";
import { runAccess } from "./access-run.js";
import { faults } from "./model.js";

const SEED = 4_711;
const CALLS = chooseScale(20_000, 3_000);

test(`${CALLS} random calls end as Check says, and all lists are those of the naive evaluation`, async (t) => {
  const { differences, calls, allowed, methods, changes, asked } = await runAccess({ calls: CALLS, seed: SEED });
  t.diagnostic(`seed ${SEED}: ${allowed} of ${calls} allowed, ${changes} changes, ${JSON.stringify(asked)}`);
  assert.deepEqual(differences, []);
  assert.equal(calls, CALLS);
  assert.ok(methods >= 265, `${methods} methods`);
  assert.ok(allowed > 0.2 * calls && allowed < 0.8 * calls, `${allowed} allowed`);
  for (const [kind, count] of Object.entries(asked)) assert.ok(count >= CALLS / 40, `${kind}: ${count}`);
});

// Each control is about another part of the comparison.
for (const fault of [...faults, "pages"] as const) {
  test(`what is wrong about ${fault} is found`, async () => {
    const { differences } = await runAccess({ calls: 3_000, seed: SEED, fault });
    assert.ok(differences.length > 0);
  });
}
