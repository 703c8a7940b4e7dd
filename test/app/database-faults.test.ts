// A database that is removed under a running service: what callers, readiness checks and metrics say.
import assert from "node:assert/strict";
import { unlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/health/v1/health_pb.js";
import { type Harness, startHarness } from "../support/harness.js";
import { parseMetrics } from "../support/metrics.js";
import { tempDir } from "../support/temp-dir.js";

const data = tempDir();
let service: Harness;
let root: string;
let token: string;
before(async () => {
  service = await startHarness({ data, metricsListen: "127.0.0.1:0" });
  ({ group: root, token } = await service.organisation("removed"));
});
after(() => service.stop());

async function look() {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const path = `${service.url}/iam/v2beta1/groups/${root}`;
  const write = await fetch(path, {
    method: "POST",
    headers,
    body: JSON.stringify({ name: `group ${Math.random()}` }),
  });
  const read = await fetch(path, { headers });
  const ready = await fetch(`${service.url}/readyz`);
  const health = createClient(Health, createGrpcTransport({ baseUrl: service.url }));
  const { status } = await health.check({});
  const metrics = parseMetrics(await (await fetch(service.app.metricsUrl ?? "")).text());
  return {
    write: [write.status, write.headers.get("retry-after")],
    read: read.status,
    ready: [ready.status, await ready.text()],
    alive: (await fetch(`${service.url}/healthz`)).status,
    health: status,
    fault: metrics.sum("arbor_database_fault", { fault: "replaced" }),
  };
}

test("control: before, all is well", async () => {
  assert.deepEqual(await look(), {
    write: [200, null],
    read: 200,
    ready: [200, '{"status":"ok"}'],
    alive: 200,
    health: Status.SERVING,
    fault: 0,
  });
});

test("afterwards all calls are UNAVAILABLE, and the service is not ready", async () => {
  unlinkSync(join(data, "arbor.db"));
  assert.deepEqual(await look(), {
    write: [503, "30"],
    read: 503,
    ready: [503, '{"status":"unavailable"}'],
    alive: 200,
    health: Status.NOT_SERVING,
    fault: 1,
  });
});
