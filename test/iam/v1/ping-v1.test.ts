// Ping, version 1: any caller gets a response.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { PingService } from "#gen/chainguard/platform/ping/ping_pb.js";
import { PingService as PingServiceV2 } from "#gen/chainguard/platform/ping/v2beta1/ping_pb.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { wireNames, wireOf } from "./wires.js";

let harness: Harness;
before(async () => {
  harness = await startHarness();
});
after(() => harness.stop());

for (const name of wireNames) {
  it(`answers anybody as version 2 does, over ${name}`, async () => {
    const wire = wireOf(name, harness.url, "no token at all");
    const { response } = await wire.call(PingService.method.ping, {});
    assert.notEqual(response, "");
    assert.equal(response, (await wire.call(PingServiceV2.method.ping, {})).response);
    wire.close();
  });
}
