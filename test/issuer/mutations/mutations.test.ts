// Mutated tokens, of which none may be accepted; `node scripts/mutate-tokens.mjs`
// presents a million.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chooseScale } from "../../support/scale.js";
import { runCampaign } from "./campaign.js";
import { linesOf, totalsOf } from "./report.js";
import { startWorld, type World } from "./world.js";

const SEED = 20_261;
const TOKENS = chooseScale(20_000, 2_000);

let world: World;
before(async () => {
  world = await startWorld();
});
after(() => world.stop());

test(`none of ${TOKENS} mutated tokens is accepted, and every valid one is`, async (t) => {
  const report = await runCampaign({ tokens: TOKENS, seed: SEED, world });
  for (const line of linesOf(report)) t.diagnostic(line);
  assert.deepEqual(report.examples, []);
  assert.equal(report.failures, 0);
  assert.equal(report.calls, 0, "an address that only tokens name was called");
  assert.deepEqual(Object.keys(report.verifiers), ["API token, RS256", "API token, ES256", "foreign token"]);
  for (const [name, verifier] of Object.entries(report.verifiers)) {
    const { presented, passedOver, accepted, oneClaim } = totalsOf(verifier);
    assert.equal(accepted, 0);
    assert.equal(presented, TOKENS / (name === "foreign token" ? 2 : 4));
    assert.ok(oneClaim >= presented / 3, `${oneClaim} with one claim wrong`);
    assert.ok(passedOver < presented / 5, `${passedOver} passed over`);
    assert.equal(verifier.overHttp, Math.ceil(presented / 1_000));
    assert.ok(verifier.controls >= presented / 20, `${verifier.controls} controls`);
    assert.equal(verifier.controlsAccepted, verifier.controls);
    for (const [mutation, tally] of Object.entries(verifier.classes)) {
      assert.ok(
        tally.presented > tally.passedOver,
        `${name}, ${mutation}: ${tally.presented}, passed over ${tally.passedOver}`,
      );
    }
  }
});

test("guards that are broken on purpose are found out", async () => {
  const { verifiers, examples } = await runCampaign({
    tokens: chooseScale(4_000, 2_000),
    seed: SEED,
    world,
    broken: { audience: true, key: true },
  });
  const countAccepted = (verifier: string, name: string) => verifiers[verifier]?.classes[name]?.accepted ?? 0;
  for (const name of ["API token, RS256", "API token, ES256"]) {
    assert.ok(countAccepted(name, "claim aud") > 0);
    assert.ok(countAccepted(name, "header kid") > 0);
  }
  assert.ok(countAccepted("foreign token", "claim aud") > 0);
  assert.ok(countAccepted("foreign token", "signature") > 0);
  assert.ok(examples.length > 0);
});
