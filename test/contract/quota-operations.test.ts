// No operation of any version adds to what quotas limit once there is no room:
// each one of the document is tried in an organisation that may have nothing
// more, and again with room, which shows that the first try could have added.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type OrganisationQuota, organisationQuotas } from "../../src/kernel/quotas.js";
import { everyLimit, setLimits, usageOf } from "../support/quotas.js";
import { isCampaign } from "../support/scale.js";
import { type Arranged, type OperationWorld, startOperationWorld } from "./operation-world.js";
import { findUnservedStatus } from "./served.js";

let world: OperationWorld;

before(async () => {
  world = await startOperationWorld();
});

after(() => world.stop());

/** Sends a request; answers its status and body, and of which kinds there is more afterwards. */
async function sendAndCount(request: Arranged) {
  const earlier = await usageOf(world.store, world.organisation);
  const { status, text } = await world.send(request);
  const later = await usageOf(world.store, world.organisation);
  const added = organisationQuotas.filter((quota) => later[quota] > earlier[quota]);
  return { status, text, added };
}

describe("in an organisation without room", () => {
  it("no operation adds anything, and those that would are refused as over quota", async (t) => {
    const limiting = new Set<OrganisationQuota>();
    let refused = 0;
    // The stable names of version 2 and former paths lead to the handlers of the beta.
    const tried = world.operations.filter(
      (one) =>
        findUnservedStatus(one) === undefined &&
        (isCampaign || !(one.operationId.startsWith("v2_") || one.deprecated === true)),
    );
    for (const operation of tried) {
      await t.test(operation.operationId, async () => {
        const request = await world.arrange(operation);
        await setLimits(world.store, world.organisation, everyLimit(0));
        const full = await sendAndCount(request);
        await setLimits(world.store, world.organisation, everyLimit(10_000));
        assert.deepEqual(full.added, [], full.text);
        if (full.status !== 429) {
          assert.equal(full.status, 200, full.text);
          return;
        }
        const { details } = JSON.parse(full.text) as { details: readonly Record<string, unknown>[] };
        const [violation] = (details[1]?.violations ?? []) as { subject?: string; description?: string }[];
        assert.equal(violation?.subject, `group:${world.organisation}`);
        const again = await sendAndCount(request);
        assert.deepEqual([again.status, again.added.length], [200, 1], again.text);
        for (const quota of again.added) limiting.add(quota);
        refused++;
      });
    }
    // People and groups come over the endpoint for directories, which the document does not describe.
    const described = organisationQuotas.filter((quota) => !["scimUsers", "scimGroups"].includes(quota));
    assert.deepEqual([...limiting].sort(), described.toSorted());
    assert.ok(refused >= (isCampaign ? 30 : 20), `${refused} were refused`);
  });
});
