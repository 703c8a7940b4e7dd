import assert from "node:assert/strict";
import { test } from "node:test";
import { fuzz } from "./fuzz.js";

const REQUESTS = 5_000;

test(`${REQUESTS} random requests`, async (t) => {
  const { faults, share, seed, seconds, statuses, operations } = await fuzz({ requests: REQUESTS, seed: 1 });
  t.diagnostic(`seed ${seed}, ${seconds.toFixed(1)} s, ${JSON.stringify(statuses)}`);
  t.diagnostic(`answered by handlers: ${(share * 100).toFixed(1)} %`);
  assert.deepEqual(faults, []);
  assert.ok(share >= 0.5, `only ${share} of the requests reached a handler`);
  const never = Object.entries(operations).filter(([, times]) => times === 0);
  assert.deepEqual(never, [], "operations that no request reached");
});
