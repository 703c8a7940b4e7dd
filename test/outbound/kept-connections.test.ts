// Connections that are kept: for how long, and what is sent again where one was lost.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { Socket } from "node:net";
import { test } from "node:test";
import { KeptConnections } from "../../src/outbound/connections.js";
import { createGuardedFetch } from "../../src/outbound/guarded-fetch.js";
import { sendRequest } from "../../src/outbound/http-request.js";
import { listen } from "../issuer/upstream/foreign-issuer.js";
import { TLS_FILES } from "../support/tls-files.js";
import { waitUntil } from "../support/wait-until.js";

const file = (name: string) => readFileSync(new URL(name, TLS_FILES), "utf8");

/** An https server. */
async function serve(handler: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = await listen(createServer({ key: file("key.pem"), cert: file("cert.pem") }, handler));
  return { server, origin: `https://127.0.0.1:${server.port}` };
}

test("a connection is used for five minutes at most, while requests follow each other", async () => {
  const { server, origin } = await serve((_request, response) => response.end());
  let nowMs = 0;
  const kept = new KeptConnections(10, () => nowMs);
  const { createSecureContext } = await import("node:tls");
  const authorities = createSecureContext({ ca: file("cert.pem") });
  const send = async () => {
    const message = { headers: {}, body: "" };
    const { closed } = await sendRequest({
      ...{ url: new URL(origin), method: "POST", message, remake: async () => message, dropsBody: true, kept },
      findRoute: async () => ({ addresses: [{ address: "127.0.0.1", family: 4 }], authorities }),
      ...{ allowance: { account: "a", maxBytes: 1_000 }, signal: new AbortController().signal },
    });
    await closed;
  };
  const opened: number[] = [];
  for (; nowMs <= 900_000; nowMs += 5_000) {
    const before = server.connections;
    await send();
    if (server.connections > before) opened.push(nowMs);
  }
  kept.destroy();
  server.close();
  // One that is free at 290 s could wait until 300 s.
  assert.deepEqual(opened, [0, 295_000, 590_000, 885_000]);
});

test("what is sent again on a new connection is made anew", async () => {
  const sent: string[] = [];
  const sockets: Socket[] = [];
  const { server, origin } = await serve((request, response) => {
    const body: Buffer[] = [];
    request
      .on("data", (chunk) => body.push(chunk))
      .on("end", () => {
        sent.push(`${request.headers.authorization} ${Buffer.concat(body)}`);
        sockets.push(request.socket);
        // Closes the kept connection just when the second request arrives.
        if (sent.length === 2) request.socket.destroy();
        else response.end();
      });
  });
  const fetch = createGuardedFetch({ trustedOrigins: [origin], ca: file("cert.pem"), maxKept: 4 });
  let made = 0;
  const prepare = async () => ({ headers: { authorization: `token ${++made}` }, body: "event" });
  for (let i = 0; i < 2; i++) {
    assert.equal((await fetch(origin, { method: "POST", prepare, dropsBody: true, organisation: "a" })).status, 200);
    await waitUntil(() => sent.length >= i + 1);
  }
  server.close();
  assert.deepEqual(sent, ["token 1 event", "token 2 event", "token 3 event"]);
  assert.deepEqual([sockets[0] === sockets[1], sockets[1] === sockets[2]], [true, false]);
});

test("a request whose preparation fails throws that error, and gives its slot back", async () => {
  const { server, origin } = await serve((_request, response) => response.end());
  const limits = { running: 1, runningPerAccount: 1, runningPerTarget: 1, waiting: 0, waitingPerAccount: 0 };
  const reasons: string[] = [];
  const fetch = createGuardedFetch({
    ...{ trustedOrigins: [origin], ca: file("cert.pem"), slots: limits },
    onFailure: (reason) => reasons.push(reason),
  });
  const failed = fetch(origin, { organisation: "a", prepare: () => Promise.reject(new TypeError("no key")) });
  await assert.rejects(failed, { name: "TypeError", message: "no key" });
  assert.equal((await fetch(origin, { organisation: "a" })).status, 200);
  server.close();
  assert.deepEqual(reasons, []);
});
