// Routes that are neither RPC nor REST: who may call them is decided before a
// byte of the body is read, and no body is larger than its route allows.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, it } from "node:test";
import { unauthenticated } from "../../../src/kernel/errors.js";
import { publicForm, publicPage, type WebRoute } from "../../../src/kernel/web.js";
import { type Running, startServer } from "../harness.js";

const MAX = 1_000;
const seen: string[] = [];

const guarded: WebRoute = {
  path: "/hook",
  method: "POST",
  access({ header }) {
    if (header("authorization") !== "Bearer right") throw unauthenticated();
  },
  maxBytes: MAX,
  async handle(incoming) {
    const { length } = await incoming.bytes();
    return { status: 200, body: String(length) };
  },
};

const routes = [
  guarded,
  publicForm("/form", async (incoming) => ({ status: 200, body: String((await incoming.form()).size) }), MAX),
  publicPage("/things/*", ({ rest }) => {
    seen.push(rest);
    return { status: 200, body: rest };
  }),
  publicPage("/things/exact", () => ({ status: 200, body: "the exact route" })),
];

let server: Running;
before(async () => {
  server = await startServer({ webRoutes: routes });
});
after(() => server.stop());

interface Sent {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer;
  /** Sends the head and nothing of the body. */
  readonly headOnly?: boolean;
}

function send(path: string, { method = "GET", headers = {}, body, headOnly = false }: Sent = {}) {
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": String(body.length) };
    const outgoing = request(
      `${server.url}${path}`,
      { method, headers: { ...length, ...headers } },
      async (response) => {
        let text = "";
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode ?? 0, body: text });
        outgoing.destroy();
      },
    );
    outgoing.on("error", reject);
    if (headOnly) outgoing.flushHeaders();
    else outgoing.end(body);
  });
}

const right = { authorization: "Bearer right" };
const form = { "content-type": "application/x-www-form-urlencoded" };

describe("a route with a check", () => {
  it("answers a caller without the credential although nothing of the body has arrived", async () => {
    const { status } = await send("/hook", { method: "POST", body: Buffer.alloc(MAX), headOnly: true });
    assert.equal(status, 401);
  });

  it("takes a body of its limit and rejects one byte more", async () => {
    const whole = await send("/hook", { method: "POST", headers: right, body: Buffer.alloc(MAX) });
    assert.deepEqual(whole, { status: 200, body: String(MAX) });
    const { status } = await send("/hook", { method: "POST", headers: right, body: Buffer.alloc(MAX + 1) });
    assert.equal(status, 413);
  });
});

it("a form is held to the limit of its route", async () => {
  const fields = Buffer.from(`a=${"x".repeat(MAX - 2)}`);
  assert.equal((await send("/form", { method: "POST", headers: form, body: fields })).status, 200);
  const larger = Buffer.concat([fields, Buffer.from("x")]);
  assert.equal((await send("/form", { method: "POST", headers: form, body: larger })).status, 413);
});

describe("a route that ends in a star", () => {
  for (const [path, rest] of [
    ["/things/a", "a"],
    ["/things/a/b", "a/b"],
    ["/things/a%20b", "a b"],
  ] as const) {
    it(`takes ${path}`, async () => assert.deepEqual(await send(path), { status: 200, body: rest }));
  }

  for (const path of ["/things/", "/things/a//b", "/things/a%2Fb", "/things/%zz", "/thing"]) {
    it(`leaves ${path} alone`, async () => {
      const before = seen.length;
      await send(path);
      assert.equal(seen.length, before);
    });
  }

  it("yields to an exact path, and names its methods", async () => {
    assert.equal((await send("/things/exact")).body, "the exact route");
    assert.equal((await send("/things/a", { method: "POST" })).status, 405);
  });
});

it("rejects at start a route that is registered twice", async () => {
  await assert.rejects(startServer({ webRoutes: [...routes, guarded] }), /registered twice/);
});
