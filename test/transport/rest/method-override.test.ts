// A POST that stands for another method: whatever that method does for the path, its body and its query, and nothing else.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { failure } from "../../support/feature/error-texts.js";
import { type FeatureServer, type Sent, startFeatureServer } from "../../support/feature/feature-server.js";
import { requestH1, requestH2 } from "../../support/requests.js";
import { type Running, SERVICE, startServer } from "../harness.js";

const JSON_TYPE = { "content-type": "application/json" };
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const OVERRIDE = "x-http-method-override";

let server: FeatureServer;
let whole: Running;
before(async () => {
  server = await startFeatureServer({ DeleteThing: () => ({}) });
  whole = await startServer({ gateway: server.gateway });
});
after(async () => {
  await whole.stop();
  await server.stop();
});

const thing = "/feature/v1/things/a";
const rows: readonly { method: string; sent: Sent; calls: string }[] = [
  { method: "GET", sent: { path: thing }, calls: "GetThing" },
  { method: "get", sent: { path: thing }, calls: "GetThing" },
  { method: "GET", sent: { path: "/feature/v1/things?page_size=3" }, calls: "ListThings" },
  { method: "GET", sent: { path: "/feature/v1/things", headers: FORM, body: "page_size=3" }, calls: "ListThings" },
  { method: "PUT", sent: { path: thing, headers: JSON_TYPE, body: '{"thing":{"count":3}}' }, calls: "ReplaceThing" },
  { method: "Patch", sent: { path: thing, headers: JSON_TYPE, body: '{"count":3}' }, calls: "UpdateThing" },
  { method: "DELETE", sent: { path: thing }, calls: "DeleteThing" },
];
const servers = {
  "the gateway": (protocol: "h1" | "h2", sent: Sent) => server.send(protocol, sent),
  "the service": (protocol: "h1" | "h2", sent: Sent) =>
    protocol === "h1" ? requestH1(whole.port, sent) : requestH2(whole.port, sent),
};

for (const [name, send] of Object.entries(servers)) {
  for (const protocol of ["h1", "h2"] as const) {
    describe(`${name}, ${protocol}`, () => {
      for (const { method, sent, calls } of rows) {
        test(`${method} ${sent.path} as POST is like itself`, async () => {
          const direct = method.toUpperCase();
          const query = sent.headers === FORM ? { path: `${sent.path}?${sent.body}` } : sent;
          const expected = await send(protocol, { ...query, method: direct });
          const before = server.calls.length;
          const got = await send(protocol, {
            ...sent,
            method: "POST",
            headers: { ...sent.headers, [OVERRIDE]: method },
          });
          assert.deepEqual([got.status, got.bytes], [expected.status, expected.bytes]);
          const [call, ...more] = server.calls.slice(before);
          assert.deepEqual([call?.method, more], [calls, []]);
          // The control: without the field it is another call, or none.
          const without = server.calls.length;
          await send(protocol, { ...sent, method: "POST" });
          assert.notEqual(server.calls.slice(without)[0]?.method, calls);
        });
      }

      for (const value of [
        "HEAD",
        "OPTIONS",
        "PURGE",
        "CONNECT",
        "TRACE",
        "",
        "GET, PUT",
        "GET PUT",
        "x".repeat(100),
      ]) {
        test(`a POST that stands for ${JSON.stringify(value.slice(0, 10))} is refused`, async () => {
          const before = server.calls.length;
          const got = await send(protocol, { method: "POST", path: thing, headers: { [OVERRIDE]: value } });
          assert.equal(got.status, 400);
          const rule = "x-http-method-override: must be one of GET, PUT, PATCH, DELETE";
          assert.equal(got.text, failure(3, "INVALID_ARGUMENT", `Invalid argument: ${rule}`));
          assert.equal(server.calls.length, before);
        });
      }

      for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
        test(`a ${method} stands for nothing else`, async () => {
          const sent: Sent = { method, path: thing, ...(method.startsWith("P") && { headers: JSON_TYPE, body: "{}" }) };
          const expected = await send(protocol, sent);
          const called = server.calls.at(-1)?.method;
          const got = await send(protocol, { ...sent, headers: { ...sent.headers, [OVERRIDE]: "PURGE" } });
          assert.deepEqual([got.status, server.calls.at(-1)?.method], [expected.status, called]);
        });
      }
    });
  }
}

test("RPC does not know the field", async () => {
  for (const override of ["GET", "DELETE", "nonsense"]) {
    const headers = { ...JSON_TYPE, [OVERRIDE]: override };
    const got = await requestH1(whole.port, {
      method: "POST",
      path: `${SERVICE}/GetGroup`,
      headers,
      body: '{"uid":"a"}',
    });
    assert.equal(got.status, 200);
  }
});
