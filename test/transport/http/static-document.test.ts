// Documents that do not change: one copy of their bytes for everybody, tags, codings, and what a request costs.
import assert from "node:assert/strict";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { after, before, test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { type Harness, startHarness } from "../../support/harness.js";
import { readProcessorMs } from "../../support/stopwatch.js";

let harness: Harness;
before(async () => {
  harness = await startHarness({ corsOrigins: "https://console.test" });
});
after(() => harness.stop());

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A request over HTTP/2 that decodes nothing by itself. */
async function ask(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
  const session = connect(harness.url);
  try {
    return await new Promise((resolve, reject) => {
      const stream = session.request({ ":path": path, ":method": method, ...headers });
      let head: IncomingHttpHeaders = {};
      const chunks: Buffer[] = [];
      stream.on("response", (fields) => {
        head = fields;
      });
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => resolve({ status: Number(head[":status"]), headers: head, body: Buffer.concat(chunks) }));
      stream.on("error", reject);
      stream.end();
    });
  } finally {
    session.close();
  }
}

const codings: readonly { accept: string; coding: string | undefined; decode: (bytes: Buffer) => Buffer }[] = [
  { accept: "identity", coding: undefined, decode: (bytes) => bytes },
  { accept: "gzip", coding: "gzip", decode: gunzipSync },
  { accept: "gzip, br", coding: "br", decode: brotliDecompressSync },
];

for (const path of [
  "/openapi.json",
  "/docs/",
  "/docs/api",
  "/docs/swagger-ui-bundle.js",
  "/docs/swagger-ui.css",
  "/docs/page.css",
]) {
  test(`${path}: the same content in every coding, a strong tag for each, 304 for who has it, HEAD as GET`, async () => {
    const plain = await ask(path);
    const tags = new Set<unknown>();
    for (const { accept, coding, decode } of codings) {
      const fields = { "accept-encoding": accept };
      const { status, headers, body } = await ask(path, fields);
      assert.equal(status, 200);
      const large = plain.body.length >= 1024;
      assert.equal(headers["content-encoding"], large ? coding : undefined);
      assert.ok((large && coding ? decode(body) : body).equals(plain.body), accept);
      assert.equal(headers["content-length"], String(body.length));
      assert.equal(headers.vary, large ? "origin, accept-encoding" : "origin");
      const { etag = "" } = headers;
      assert.match(etag, /^"[\w-]+"$/);
      tags.add(etag);

      for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
        const kept = await ask(path, { ...fields, "if-none-match": known });
        assert.deepEqual([kept.status, kept.body.length, kept.headers.etag], [304, 0, etag], known);
        assert.equal(kept.headers.vary, headers.vary);
        assert.equal(kept.headers["cache-control"], headers["cache-control"]);
        assert.equal(kept.headers["content-encoding"], undefined);
      }
      assert.equal((await ask(path, { ...fields, "if-none-match": '"other"' })).status, 200);

      const head = await ask(path, fields, "HEAD");
      assert.equal(head.body.length, 0);
      const comparable = ({ date: _, "x-request-id": __, ...rest }: IncomingHttpHeaders) => ({ ...rest });
      assert.deepEqual(comparable(head.headers), comparable(headers));
    }
    assert.equal(tags.size, plain.body.length >= 1024 ? 3 : 1, "each coding has a tag of its own");
  });
}

test("what is compressed already stays as it is", async () => {
  const { headers } = await ask("/docs/favicon-32x32.png", { "accept-encoding": "gzip, br" });
  assert.equal(headers["content-encoding"], undefined);
  assert.match(headers.etag ?? "", /^"/);
});

test("the description of the API costs little more than an answer of a few bytes", async (t) => {
  const { etag = "none" } = (await ask("/openapi.json", { "accept-encoding": "br" })).headers;
  const leastMs = await cpuMsPerRequest("/healthz", {});
  const rows = [
    { name: "compressed", fields: { "accept-encoding": "br" } },
    { name: "known already", fields: { "accept-encoding": "br", "if-none-match": etag } },
  ];
  for (const { name, fields } of rows) {
    const costMs = await cpuMsPerRequest("/openapi.json", fields);
    t.diagnostic(`${name}: ${costMs.toFixed(2)} ms of processor time, /healthz ${leastMs.toFixed(2)} ms`);
    assert.ok(costMs < 2.5 * leastMs, `${name}: ${costMs} ms, ${leastMs} ms for /healthz`);
  }
});

// Client and server share this process, so that it is an upper bound; the least of some rounds, since other
// programs make a round dearer and never cheaper.
async function cpuMsPerRequest(path: string, fields: Record<string, string>): Promise<number> {
  const session = connect(harness.url, { settings: { initialWindowSize: 1 << 22 } });
  const once = () =>
    new Promise<void>((resolve, reject) => {
      const stream = session.request({ ":path": path, ...fields });
      stream.on("error", reject);
      stream.on("end", resolve);
      stream.resume();
      stream.end();
    });
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 10; round++) {
    const before = readProcessorMs();
    for (let i = 0; i < 20; i++) await once();
    least = Math.min(least, (readProcessorMs() - before) / 20);
  }
  session.close();
  return least;
}
