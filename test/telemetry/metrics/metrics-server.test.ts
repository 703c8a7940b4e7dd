// The listener of metrics, apart from the service.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { type MetricsServer, serveMetrics } from "../../../src/telemetry/metrics/metrics-server.js";
import { createRenderer } from "../../../src/telemetry/metrics/renderer.js";
import { readValue } from "../../../src/telemetry/metrics/samples.js";

let server: MetricsServer;
let url: string;
const renderer = createRenderer([readValue("arbor_requests_in_flight", () => 3)]);
before(async () => {
  server = await serveMetrics(renderer, { host: "127.0.0.1", port: 0 });
  url = `http://127.0.0.1:${server.address.port}`;
});
after(() => server.close());

const PROMETHEUS =
  "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

const formats: readonly { accept: string; open: boolean }[] = [
  { accept: PROMETHEUS, open: true },
  { accept: "*/*", open: false },
  { accept: "text/plain", open: false },
  { accept: "text/plain, application/openmetrics-text;version=1.0.0;q=0.5", open: false },
  { accept: "application/openmetrics-text; version=1.0.0; q=0.8, text/plain; q=0.5", open: true },
  { accept: "application/openmetrics-text;version=2.0.0", open: false },
  { accept: "application/openmetrics-text;version=1.0.0;q=0", open: false },
  { accept: "application/openmetrics-text", open: true },
  { accept: "APPLICATION/OpenMetrics-Text; charset=utf-8", open: true },
  { accept: "application/openmetrics-text;q=0.5,text/plain;q=0.4", open: true },
  { accept: "application/openmetrics-text;q=0.4,text/plain;q=0.5", open: false },
  { accept: "application/openmetrics-text;version=2.0.0,application/openmetrics-text;version=1.0.0;q=0.5", open: true },
  { accept: "application/openmetrics-text;q=0", open: false },
  { accept: "application/openmetrics-textual", open: false },
  { accept: "%%;;,=q", open: false },
];
for (const { accept, open } of formats) {
  test(`Accept: ${accept} is answered in ${open ? "OpenMetrics" : "the text format"}`, async () => {
    const response = await fetch(`${url}/metrics`, { headers: { accept } });
    const text = await response.text();
    const type = open ? "application/openmetrics-text; version=1.0.0" : "text/plain; version=0.0.4";
    assert.equal(response.headers.get("content-type"), `${type}; charset=utf-8`);
    assert.equal(text.endsWith("# EOF\n"), open);
    assert.match(text, /^arbor_requests_in_flight 3$/m);
  });
}

test("HEAD has the headers alone, and other methods and paths are rejected", async () => {
  const head = await fetch(`${url}/metrics`, { method: "HEAD" });
  assert.equal(head.status, 200);
  assert.ok(Number(head.headers.get("content-length")) > 100);
  assert.equal(await head.text(), "");
  const post = await fetch(`${url}/metrics`, { method: "POST", body: "x" });
  assert.deepEqual([post.status, post.headers.get("allow")], [405, "GET, HEAD"]);
  for (const path of ["/", "/metrics/", "/metricsx", "//metrics", "/healthz"]) {
    assert.equal((await fetch(url + path)).status, 404, path);
  }
  assert.equal((await fetch(`${url}/metrics?a=b`)).status, 200);
});

test("a request without Host is answered, and one with too many headers is not", async () => {
  assert.match(await send("GET /metrics HTTP/1.0\r\n\r\n"), /^HTTP\/1\.1 200 /);
  assert.match(await send(`GET /metrics HTTP/1.1\r\nx: ${"y".repeat(10_000)}\r\n\r\n`), /^HTTP\/1\.1 431 /);
});

test("what cannot be rendered is 500, and later scrapes are answered", async (t) => {
  t.mock.method(renderer, "render", () => Promise.reject(new Error("planted")), { times: 1 });
  const response = await fetch(`${url}/metrics`);
  assert.equal(response.status, 500);
  assert.doesNotMatch(await response.text(), /planted/);
  assert.equal((await fetch(`${url}/metrics`)).status, 200);
});

test("an address that is taken is an error", async () => {
  await assert.rejects(serveMetrics(createRenderer([]), server.address), { code: "EADDRINUSE" });
});

async function send(bytes: string): Promise<string> {
  const socket = connect(server.address.port, "127.0.0.1");
  socket.setTimeout(5_000, () => socket.destroy(new Error("no answer")));
  socket.write(bytes);
  const [data] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  return data.toString("latin1");
}
