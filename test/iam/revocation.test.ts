// Once a revocation is acknowledged, no call that begins afterwards is allowed,
// however many the victim has under way.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Harness, startHarness } from "../support/harness.js";
import { chooseScale } from "../support/scale.js";
import { waitUntil } from "../support/wait-until.js";

/** How many calls must be allowed before, and how many begin afterwards. */
const CALLS = chooseScale(200, 80);

let service: Harness;
before(async () => {
  service = await startHarness();
});
after(() => service.stop());

/** Calls of the victim: when each began, and what it got. */
type Outcome = { readonly startedMs: number; readonly status: number };

async function underLoad(
  url: string,
  token: string,
  revoke: () => Promise<void>,
): Promise<{ outcomes: Outcome[]; revokedMs: number }> {
  const outcomes: Outcome[] = [];
  let stopped = false;
  const victim = async () => {
    while (!stopped) {
      const startedMs = performance.now();
      const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
      await response.arrayBuffer();
      outcomes.push({ startedMs, status: response.status });
    }
  };
  const load = Array.from({ length: 8 }, victim);
  await waitUntil(() => outcomes.filter(({ status }) => status === 200).length >= CALLS);
  await revoke();
  const revokedMs = performance.now();
  const done = outcomes.length;
  await waitUntil(() => outcomes.length >= done + 1.5 * CALLS);
  stopped = true;
  await Promise.all(load);
  return { outcomes, revokedMs };
}

const ways = ["deleting the binding", "deleting the identity"] as const;

for (const [i, way] of ways.entries()) {
  test(`${way} ends the victim's rights with the acknowledgement`, async () => {
    const owner = await service.organisation(`org ${i}`);
    const victim = await service.identity({}, owner.group);
    const binding = await service.bind(victim.uid, "viewer", owner.group);
    const path = way === "deleting the binding" ? `roleBindings/${binding}` : `identities/${victim.uid}`;
    const refused = way === "deleting the binding" ? 403 : 401;

    const { outcomes, revokedMs } = await underLoad(
      `${service.url}/iam/v2beta1/groups/${owner.group}`,
      victim.token,
      async () => {
        const headers = { authorization: `Bearer ${owner.token}` };
        const response = await fetch(`${service.url}/iam/v2beta1/${path}`, { method: "DELETE", headers });
        assert.equal(response.status, 200);
        await response.arrayBuffer();
      },
    );
    const later = outcomes.filter(({ startedMs }) => startedMs >= revokedMs);
    assert.ok(later.length >= CALLS, `${later.length} calls began after the revocation`);
    assert.deepEqual([...new Set(later.map(({ status }) => status))], [refused]);
    assert.deepEqual([...new Set(outcomes.map(({ status }) => status))].sort(), [200, refused]);
  });
}
