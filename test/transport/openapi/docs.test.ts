import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Harness, startHarness } from "../../support/harness.js";

let harness: Harness;

before(async () => {
  harness = await startHarness();
});
after(() => harness.stop());

const rows: readonly { path: string; method?: string; status: number; type: string; cache?: string; reason: string }[] =
  [
    { path: "/openapi.json", status: 200, type: "application/json", cache: "no-cache", reason: "the document" },
    { path: "/docs/api", status: 200, type: "text/html; charset=utf-8", cache: "no-cache", reason: "the page" },
    {
      path: "/docs/start.js",
      status: 200,
      type: "text/javascript; charset=utf-8",
      cache: "no-cache",
      reason: "its start",
    },
    { path: "/docs/page.css", status: 200, type: "text/css; charset=utf-8", reason: "its own style" },
    { path: "/docs/swagger-ui.css?v=1", status: 200, type: "text/css; charset=utf-8", reason: "a file of Swagger UI" },
    { path: "/docs/favicon-32x32.png", status: 200, type: "image/png", reason: "its sign" },
    { path: "/docs/api", method: "HEAD", status: 200, type: "text/html; charset=utf-8", reason: "no body" },
    { path: "/docs/api", method: "POST", status: 405, type: "application/json", reason: "there is nothing to change" },
    {
      path: "/docs/swagger-ui.js",
      status: 404,
      type: "application/json",
      reason: "a file of the package that is not served",
    },
    { path: "/docs/package.json", status: 404, type: "application/json", reason: "another" },
    { path: "/docs/..%2fpackage.json", status: 404, type: "application/json", reason: "out of the package" },
    { path: "/docs/toString", status: 404, type: "application/json", reason: "no file, though objects have it" },
  ];
for (const { path, method = "GET", status, type, cache, reason } of rows) {
  test(`${method} ${path}: ${reason}`, async () => {
    const response = await fetch(harness.url + path, { method });
    const body = await response.text();
    assert.deepEqual([response.status, response.headers.get("content-type")], [status, type]);
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    if (cache !== undefined) assert.equal(response.headers.get("cache-control"), cache);
    assert.equal(body === "", method === "HEAD");
  });
}

test("files of a version are kept for ever, and the page asks for them by version", async () => {
  const page = await (await fetch(`${harness.url}/docs/api`)).text();
  const addresses = [...page.matchAll(/(?:src|href)="(swagger[^"]+)"/g)].map(([, address]) => address ?? "");
  assert.equal(addresses.length, 2);
  for (const address of addresses) {
    assert.match(address, /\?v=\d+\.\d+\.\d+$/);
    const { headers } = await fetch(`${harness.url}/docs/${address}`, { method: "HEAD" });
    assert.match(headers.get("cache-control") ?? "", /immutable/);
  }
});

test("the page may run its own scripts alone, and nobody may frame it", async () => {
  const { headers } = await fetch(`${harness.url}/docs/api`, { method: "HEAD" });
  const policy = headers.get("content-security-policy") ?? "";
  for (const rule of ["default-src 'none'", "script-src 'self';", "connect-src 'self';", "frame-ancestors 'none'"]) {
    assert.ok(policy.includes(rule), rule);
  }
  assert.doesNotMatch(policy, /unsafe-eval|https?:/);
});

test("the document names the place it is served at, and the version of the package", async () => {
  const document = (await (await fetch(`${harness.url}/openapi.json`)).json()) as {
    info: { version: string };
    servers: { url: string }[];
  };
  assert.match(document.info.version, /^\d+\.\d+\.\d+/);
  assert.equal(document.servers[0]?.url, harness.url);
});
