// scripts/rotate-under-load.mjs runs the same for longer.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { chooseScale } from "../../support/scale.js";
import { runRotation } from "./rotation-run.js";

/** Between two calls of one client, in milliseconds. With fewer calls the control may find no rejected token. */
const PAUSE_MS = chooseScale(4, 24);
const CONTROL_PAUSE_MS = 4;

describe("rotating keys under load", { concurrency: true }, () => {
  test("rejects no valid token", async () => {
    const { keys, rest, grpc, elsewhere, oldestS, ...wrong } = await runRotation({
      seconds: 14,
      rotationS: 3,
      maxAgeS: 1,
      pauseMs: PAUSE_MS,
    });
    assert.deepEqual(wrong, { rejected: 0, problems: [] });
    assert.ok(keys >= 3, `${keys} keys`);
    assert.ok(Math.min(rest, grpc, elsewhere) > chooseScale(100, 30), `${rest}, ${grpc}, ${elsewhere}`);
    assert.ok(oldestS >= 5, `${oldestS} s`);
  });

  test("control: rejects some if keys are used before they are published", async () => {
    const { rejected, problems } = await runRotation({
      seconds: 8,
      rotationS: 2,
      maxAgeS: 2,
      pauseMs: CONTROL_PAUSE_MS,
      control: true,
    });
    assert.ok(rejected > 0);
    assert.deepEqual(problems, []);
  });
});
