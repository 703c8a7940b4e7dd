import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import type { UnaryCall } from "../../../src/pipeline/call.js";
import {
  compress,
  isLarge,
  MIN_COMPRESSED_BYTES,
  prefersJson,
} from "../../../src/transport/http/content-negotiation.js";
import type { ResponseHeaders } from "../../../src/transport/http/send.js";
import { type FeatureServer, type Received, startFeatureServer } from "../../support/feature/feature-server.js";

let server: FeatureServer;
// What the two methods response.
let thing: (call: UnaryCall) => object = () => ({});
let file: { contentType: string; data: Uint8Array } = { contentType: "", data: new Uint8Array() };

before(async () => {
  server = await startFeatureServer({ GetThing: (_request, call) => thing(call), Download: () => file });
});
after(() => server.stop());

const text = (length: number) => "lorem ipsum ".repeat(length).slice(0, length);

function plainOf({ headers, bytes }: Received): Buffer {
  const coding = headers["content-encoding"];
  if (coding === "gzip") return gunzipSync(bytes);
  return coding === "br" ? brotliDecompressSync(bytes) : bytes;
}

const codings: readonly { accept: string | undefined; coding: string | undefined; reason: string }[] = [
  { accept: undefined, coding: undefined, reason: "nothing said" },
  { accept: "", coding: undefined, reason: "nothing accepted but the plain form" },
  { accept: "gzip", coding: "gzip", reason: "one" },
  { accept: "x-gzip", coding: "gzip", reason: "its older name" },
  { accept: "GZip", coding: "gzip", reason: "in any case" },
  { accept: "br", coding: "br", reason: "the other" },
  { accept: "gzip, deflate, br", coding: "br", reason: "what browsers send" },
  { accept: "gzip;q=1.0, br;q=0.9", coding: "gzip", reason: "the caller's order" },
  { accept: "br ; q=0.5 , gzip ; q=0.8", coding: "gzip", reason: "blanks" },
  { accept: "gzip;q=0", coding: undefined, reason: "refused" },
  { accept: "br;q=0, gzip;q=0.001", coding: "gzip", reason: "barely" },
  { accept: "*", coding: "br", reason: "anything" },
  { accept: "*;q=0", coding: undefined, reason: "nothing at all: sent as it is all the same" },
  { accept: "identity", coding: undefined, reason: "the plain form" },
  { accept: "identity;q=0", coding: undefined, reason: "not the plain form, but nothing else named" },
  { accept: "identity;q=0, gzip", coding: "gzip", reason: "not the plain form" },
  { accept: "identity;q=0, *", coding: "br", reason: "anything but the plain form" },
  { accept: "gzip;q=0.5, identity", coding: undefined, reason: "the plain form first" },
  { accept: "gzip;q=0.5, identity;q=0.5", coding: "gzip", reason: "a tie" },
  { accept: "gzip;q=0.5, br;q=0, *", coding: undefined, reason: "anything, so the plain form, before gzip" },
  { accept: "br;q=0, *;q=0.3", coding: "gzip", reason: "anything else" },
  { accept: "deflate, zstd", coding: undefined, reason: "what we do not have" },
  { accept: "gzip;q=high, br;q=2", coding: undefined, reason: "malformed weights" },
  { accept: "gzip;q=0.1234", coding: undefined, reason: "a weight of four digits" },
  { accept: "gzip, gzip;q=0", coding: "gzip", reason: "said twice" },
  { accept: ",,;q=1,gzip,", coding: "gzip", reason: "empty entries" },
];

for (const protocol of ["h1", "h2"] as const) {
  for (const { accept, coding, reason } of codings) {
    test(`${protocol}: accept-encoding ${JSON.stringify(accept)}: ${reason}`, async () => {
      thing = () => ({ uid: "a", displayName: text(3000) });
      const headers = accept === undefined ? {} : { "accept-encoding": accept };
      const got = await server.send(protocol, { path: "/feature/v1/things/a", headers });
      assert.equal(got.status, 200);
      assert.equal(got.headers["content-encoding"], coding);
      assert.equal(got.headers.vary, "accept-encoding");
      assert.equal(got.headers["content-type"], "application/json");
      assert.equal(got.headers["content-length"], String(got.bytes.length));
      assert.equal((JSON.parse(plainOf(got).toString()) as { displayName: string }).displayName, text(3000));
    });
  }

  test(`${protocol}: HEAD says what GET would`, async () => {
    thing = () => ({ uid: "a", displayName: text(3000) });
    const headers = { "accept-encoding": "gzip" };
    const head = await server.send(protocol, { method: "HEAD", path: "/feature/v1/things/a", headers });
    const get = await server.send(protocol, { path: "/feature/v1/things/a", headers });
    for (const name of ["content-length", "content-encoding", "vary"]) {
      assert.equal(head.headers[name], get.headers[name], name);
    }
    assert.equal(head.bytes.length, 0);
  });

  test(`${protocol}: what the handler varies by stays`, async () => {
    thing = (call) => {
      call.responseHeader.set("vary", "x-tenant");
      call.responseHeader.set("content-encoding", "identity");
      return { displayName: text(3000) };
    };
    const got = await server.send(protocol, { path: "/feature/v1/things/a", headers: { "accept-encoding": "gzip" } });
    assert.deepEqual([got.headers.vary, got.headers["content-encoding"]], ["x-tenant, accept-encoding", "gzip"]);
  });
}

// An empty thing is 120 bytes and more, so the size of a response is that of a file.
const sizes: readonly { bytes: number; coding: string | undefined }[] = [
  { bytes: 0, coding: undefined },
  { bytes: MIN_COMPRESSED_BYTES - 1, coding: undefined },
  { bytes: MIN_COMPRESSED_BYTES, coding: "gzip" },
];

for (const { bytes, coding } of sizes) {
  test(`a body of ${bytes} bytes is sent ${coding ?? "as it is"}`, async () => {
    file = { contentType: "text/plain", data: Buffer.from(text(bytes)) };
    const got = await server.send("h1", { path: "/feature/v1/files/a", headers: { "accept-encoding": "gzip" } });
    assert.equal(got.headers["content-encoding"], coding);
    assert.equal(got.headers.vary, coding && "accept-encoding");
    assert.equal(plainOf(got).toString(), text(bytes));
  });
}

const coded = [
  ...["text/plain", "text/html; charset=utf-8", "TEXT/CSV", "application/json", "application/xml", "image/svg+xml"],
  ...["application/vnd.api+json; v=1", "application/javascript", "application/x-ndjson", "application/wasm"],
];
const untouched = [
  ...["image/png", "image/jpeg", "video/mp4", "audio/mpeg", "application/zip", "application/gzip", "font/woff2"],
  ...["application/octet-stream", "application/pdf", "application/x-7z-compressed", "", "text", "x"],
];

for (const type of [...coded, ...untouched]) {
  const coding = coded.includes(type) ? "br" : undefined;
  test(`a large body of type ${JSON.stringify(type)} is sent ${coding ?? "as it is"}`, async () => {
    file = { contentType: type, data: Buffer.from(text(3000)) };
    const got = await server.send("h1", { path: "/feature/v1/files/a", headers: { "accept-encoding": "br" } });
    assert.equal(got.headers["content-encoding"], coding);
    assert.equal(got.headers.vary, coding && "accept-encoding");
    assert.equal(plainOf(got).toString(), text(3000));
  });
}

test("what would only grow is sent as it is, and varies all the same", async () => {
  const noise = randomBytes(3000);
  for (const coding of ["gzip", "br"]) {
    const headers: ResponseHeaders = {};
    assert.deepEqual(await compress(noise, "text/plain", coding, headers), noise);
    assert.deepEqual(headers, { vary: "accept-encoding" });
  }
});

const lengths: readonly { body: string | Uint8Array; large: boolean; reason: string }[] = [
  { body: "x".repeat(1023), large: false, reason: "1023 bytes" },
  { body: "x".repeat(1024), large: true, reason: "1024 bytes" },
  { body: "€".repeat(341), large: false, reason: "1023 bytes in 341 characters" },
  { body: "€".repeat(342), large: true, reason: "1026 bytes in 342 characters" },
  { body: "é".repeat(500), large: false, reason: "1000 bytes in 500 characters" },
  { body: new Uint8Array(1023), large: false, reason: "1023 raw bytes" },
  { body: new Uint8Array(1024), large: true, reason: "1024 raw bytes" },
];

for (const { body, large, reason } of lengths) {
  test(`${reason} are ${large ? "" : "not "}large`, () => assert.equal(isLarge(body), large));
}

const accepted: readonly { accept: string | undefined; json: boolean }[] = [
  { accept: undefined, json: false },
  { accept: "*/*", json: false },
  { accept: "application/json", json: true },
  { accept: "Application/JSON; charset=utf-8", json: true },
  { accept: "text/html,application/xhtml+xml,*/*;q=0.8", json: false },
  { accept: "application/json, text/html", json: false },
  { accept: "application/json;q=0.9, text/html;q=0.5", json: true },
  { accept: "application/json;q=0.5, text/html", json: false },
  { accept: "application/json;q=0", json: false },
];

for (const { accept, json } of accepted) {
  test(`a page is ${json ? "" : "not "}sent as JSON for accept: ${accept}`, () => {
    assert.equal(prefersJson(accept), json);
  });
}
