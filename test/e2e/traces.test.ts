// Traces of the service as a process: what is loaded with and without the variables, and how it stops.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { startOtlpCollector } from "../support/otlp-collector.js";
import { memoryDir, tempDir } from "../support/temp-dir.js";
import { withVariables } from "../support/variables.js";
import { startService } from "./process.js";

/** Serves one request with these variables. Coverage of V8 names every file that was loaded. */
async function serveOnce(variables: Readonly<Record<string, string>>) {
  const coverage = tempDir();
  const environment = { ...variables, NODE_V8_COVERAGE: coverage };
  const service = await withVariables(environment, () => startService(memoryDir(), "--access-log"));
  const { status } = await fetch(`${service.url}/iam/v2beta1/groups`);
  assert.equal(status, 401);
  const stopped = await service.stop();
  const loaded = readdirSync(coverage).flatMap((file) => {
    const { result } = JSON.parse(readFileSync(join(coverage, file), "utf8")) as { result: { url: string }[] };
    return result.map(({ url }) => url);
  });
  return { ...stopped, loaded };
}

// The library of metrics loads the interface, which is in `api`, not what records and exports.
const isSdk = (url: string) => url.includes("/@opentelemetry/") && !url.includes("/@opentelemetry/api/");

test("without the variables nothing of the SDK is loaded; with them spans arrive before the process ends", async () => {
  const off = await serveOnce({});
  assert.equal(off.code, 0, off.stderr);
  assert.ok(
    off.loaded.some((url) => url.includes("/node_modules/")),
    "the coverage names no module",
  );
  assert.deepEqual(off.loaded.filter(isSdk), []);

  const collector = await startOtlpCollector();
  try {
    const on = await serveOnce({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint });
    assert.equal(on.code, 0, on.stderr);
    assert.ok(
      on.loaded.some((url) => url.includes("/@opentelemetry/sdk-trace-node/")),
      "the SDK is not loaded",
    );
    const names = collector.spans.map(({ name }) => name);
    assert.deepEqual(names.sort(), ["authenticate", "chainguard.platform.iam.v2beta1.GroupsService/ListGroups"]);
  } finally {
    await collector.stop();
  }
});

test("a collector that never answers delays neither calls nor the stop", async (t) => {
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  try {
    // The SDK would wait for the collector for a minute.
    const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TIMEOUT: "60000" };
    const { code, stderr, ms } = await serveOnce(variables);
    t.diagnostic(`stopped after ${Math.round(ms)} ms`);
    assert.equal(code, 0, stderr);
    assert.ok(ms < 30_000, `it took ${ms} ms`);
  } finally {
    silent.close();
  }
});
