import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createGuardedFetch, toFetch } from "../../src/outbound/guarded-fetch.js";
import { json, type Listener, serve } from "../issuer/upstream/foreign-issuer.js";

let listener: Listener;
let fetch: typeof globalThis.fetch;

before(async () => {
  listener = await serve(async (req, res) => {
    if (req.url === "/moved") return void res.writeHead(302, { location: "/" }).end();
    if (req.url === "/empty") return void res.writeHead(204).end();
    if (req.url === "/cookies") return void res.writeHead(200, { "set-cookie": ["a=1", "b=2"] }).end();
    let body = "";
    for await (const chunk of req) body += chunk;
    const { authorization, "content-type": type, "content-length": length } = req.headers;
    json(res, { method: req.method, url: req.url, authorization, type, length, body }, 401);
  });
  fetch = toFetch(createGuardedFetch({ trustedOrigins: [listener.origin] }));
});

after(() => listener.close());

test("a form is posted, and the answer comes as a Response", async () => {
  const response = await fetch(new URL(`${listener.origin}/token?x=1`), {
    method: "post",
    headers: new Headers({ Authorization: "Basic eDp5" }),
    body: new URLSearchParams({ grant_type: "authorization_code", code: "a b" }),
  });
  assert.ok(response instanceof Response);
  assert.equal(response.status, 401);
  assert.deepEqual(await response.json(), {
    method: "POST",
    url: "/token?x=1",
    authorization: "Basic eDp5",
    type: "application/x-www-form-urlencoded;charset=UTF-8",
    length: "38",
    body: "grant_type=authorization_code&code=a+b",
  });
});

const bodies: readonly { body: string | Uint8Array | null | undefined; sent: string }[] = [
  { body: "text", sent: "text" },
  { body: Buffer.from("bytes"), sent: "bytes" },
  { body: null, sent: "" },
  { body: undefined, sent: "" },
];

for (const { body, sent } of bodies) {
  test(`a body of ${body} is sent as it is`, async () => {
    const headers = { "content-type": "text/x" };
    const response = await fetch(listener.origin, { method: "POST", headers, body: body as string | null });
    const { body: received, type } = (await response.json()) as Record<string, unknown>;
    assert.deepEqual([received, type], [sent, "text/x"]);
  });
}

test("answers without a body and with several cookies keep their form", async () => {
  const empty = await fetch(`${listener.origin}/empty`);
  assert.deepEqual([empty.status, await empty.text()], [204, ""]);
  assert.deepEqual((await fetch(`${listener.origin}/cookies`)).headers.getSetCookie(), ["a=1", "b=2"]);
});

test("a redirect is rejected even where the caller would follow it", async () => {
  await assert.rejects(fetch(`${listener.origin}/moved`, { redirect: "follow" }), { name: "GuardedFetchError" });
});

test("a signal ends it", async () => {
  await assert.rejects(fetch(listener.origin, { signal: AbortSignal.abort() }), { name: "GuardedFetchError" });
});

test("what cannot be guarded is an error of the caller", async () => {
  await assert.rejects(fetch(listener.origin, { method: "DELETE" }), TypeError);
  await assert.rejects(fetch(new Request(listener.origin)), TypeError);
  await assert.rejects(fetch(listener.origin, { method: "POST", body: new FormData() }), TypeError);
});
