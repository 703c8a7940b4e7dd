import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseScale } from "../support/scale.js";
import { fuzz } from "./fuzz.js";

const REQUESTS = chooseScale(12_000, 1_500);
/** They need a SCIM token, and the etag that came with it, a login of the caller, or a person of an organisation's provider. */
const WITH_TOKEN = /_(?:SetScimEnabled|RegenerateScimToken|RevokeScimToken|RevokeSession|RevokePersonTokens)$/;

test(`${REQUESTS} random requests`, async (t) => {
  const report = await fuzz({ requests: REQUESTS, seed: 6, tries: 50 });
  const { faults, share, seed, seconds, statuses, operations, successes, unserved } = report;
  t.diagnostic(`seed ${seed}, ${seconds.toFixed(1)} s, ${JSON.stringify(statuses)}`);
  t.diagnostic(`answered by handlers: ${(share * 100).toFixed(1)} %`);
  assert.deepEqual(faults, []);
  assert.ok(share >= 0.5, `only ${share} of the requests reached a handler`);
  const never = Object.entries(operations).filter(([, times]) => times === 0);
  assert.deepEqual(never, [], "operations that no request reached");
  const failing = Object.keys(successes).filter((id) => successes[id] === 0 && !WITH_TOKEN.test(id));
  assert.deepEqual(failing, unserved, "operations that no request had success with");
});
