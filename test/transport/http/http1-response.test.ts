// Responses that are written to the connection are those that Node would send, byte by byte.
import assert from "node:assert/strict";
import { createServer, type OutgoingHttpHeaders, type RequestListener } from "node:http";
import { type AddressInfo, connect, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { formatHead, sendByOneWrite } from "../../../src/transport/http/http1-response.js";
import { sendComplete } from "../../../src/transport/http/response-writer.js";
import { waitUntil } from "../../support/wait-until.js";

const GET = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const LAST = "GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

// Sends requests on one connection, and returns everything that came back.
async function exchange(listener: RequestListener, requests: string, options = {}): Promise<string> {
  const server = createServer(options, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  try {
    socket.write(requests);
    return (await text(socket)).replace(/^date: .*$/gim, "date: a date");
  } finally {
    socket.destroy();
    server.close();
  }
}

interface Response {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

const json = (body: string, more: OutgoingHttpHeaders = {}): OutgoingHttpHeaders => ({
  "content-type": "application/json",
  "content-length": Buffer.byteLength(body),
  ...more,
});

const sent: Readonly<Record<string, Response>> = {
  "an object": { status: 200, headers: json("{}"), body: "{}" },
  "an error with a field": { status: 503, headers: json("{}", { "retry-after": "1" }), body: "{}" },
  "text of several bytes a character": { status: 200, headers: json('{"name":"Zoë 🌳"}'), body: '{"name":"Zoë 🌳"}' },
};

for (const [name, { status, headers, body }] of Object.entries(sent)) {
  for (const options of [{ keepAliveTimeout: 7_500 }, { keepAliveTimeout: 0 }]) {
    test(`${name} is sent as Node sends it, with ${JSON.stringify(options)}`, async () => {
      let ones = 0;
      const one: RequestListener = (req, res) => {
        const head = req.url === "/last" ? undefined : formatHead(status, headers);
        if (head !== undefined && sendByOneWrite(res, status, head, body)) ones++;
        else res.writeHead(status, headers).end(body);
      };
      const node: RequestListener = (_req, res) => res.writeHead(status, headers).end(body);
      const expected = await exchange(node, GET + GET + LAST, options);
      assert.equal(await exchange(one, GET + GET + LAST, options), expected);
      assert.ok(ones > 0);
      assert.equal(expected.split("HTTP/1.1").length, 4);
    });
  }
}

const leftToNode: Readonly<Record<string, string>> = {
  HEAD: GET.replace("GET", "HEAD"),
  "HTTP/1.0": "GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
  "connection: close": LAST,
  "expect: 100-continue": "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}",
};

for (const [name, request] of Object.entries(leftToNode)) {
  test(`a response to ${name} is left to Node`, async () => {
    const results: boolean[] = [];
    const received = await exchange((_req, res) => {
      results.push(sendByOneWrite(res, 200, formatHead(200, json("{}")) ?? "", "{}"));
      res.shouldKeepAlive = false;
      res.writeHead(200, json("{}")).end("{}");
    }, request);
    assert.deepEqual(results, [false]);
    assert.match(received, /HTTP\/1\.1 200 OK\r\n/);
  });
}

for (const status of [204, 304]) {
  test(`a response of ${status} is left to Node`, async () => {
    const received = await exchange((_req, res) => {
      assert.equal(sendByOneWrite(res, status, formatHead(status, {}) ?? "", "{}"), false);
      res.shouldKeepAlive = false;
      res.writeHead(status).end();
    }, GET);
    assert.match(received, new RegExp(`HTTP/1.1 ${status}`));
  });
}

test("fields that are not one line of ASCII are left to Node, which rejects line breaks", () => {
  assert.equal(formatHead(200, { "x-a": "a\r\nset-cookie: b" }), undefined);
  assert.equal(formatHead(200, { "x-a": "a\nb" }), undefined);
  assert.equal(formatHead(200, { "x-a": "a\0b" }), undefined);
  assert.equal(formatHead(200, { "x-a": "é" }), undefined);
  assert.equal(formatHead(200, { "x-a": undefined }), undefined);
  assert.equal(formatHead(200, { "set-cookie": ["a=1", "b=2"] }), undefined);
  assert.equal(formatHead(404, { "x-a": 1, "x-b": "a\tb ~" }), "HTTP/1.1 404 Not Found\r\nx-a: 1\r\nx-b: a\tb ~\r\n");
});

test("the response looks sent to its listeners, and ends when the peer has its bytes", async () => {
  const events: string[] = [];
  await exchange((req, res) => {
    for (const event of ["finish", "close"]) {
      res.on(event, () => {
        events.push(`${event} ${res.statusCode} ${res.headersSent} ${res.writableEnded} ${res.writableFinished}`);
      });
    }
    if (req.url === "/last") res.writeHead(200).end();
    else sendComplete(res, 201, json("{}"), "{}");
  }, GET + LAST);
  const state = "true true true";
  assert.deepEqual(events, [`finish 201 ${state}`, `close 201 ${state}`, `finish 200 ${state}`, `close 200 ${state}`]);
});

test("a response ends when the peer has read its bytes, and not when the connection is cut", async (t) => {
  for (const isCut of [false, true]) {
    const body = "x".repeat(60_000);
    const sockets: Socket[] = [];
    const peer = new Socket();
    let [sent, finished, bytes] = [0, 0, 0];
    // One request at a time: Node sends the responses to pipelined ones.
    const sendNext = () => {
      sent++;
      peer.write(GET);
    };
    const server = createServer((_req, res) => {
      res.on("finish", () => {
        finished++;
        if (!peer.destroyed && bytes === 0) sendNext();
      });
      sendComplete(res, 200, json(body), body);
    });
    server.on("connection", (socket) => sockets.push(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      peer.destroy();
      server.close();
    });
    peer.pause();
    peer.connect((server.address() as AddressInfo).port, "127.0.0.1", sendNext);
    // The kernel keeps some megabytes.
    await waitUntil(() => (sockets[0]?.writableLength ?? 0) > 0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.ok(finished > 0);
    assert.equal(finished, sent - 1);
    if (isCut) {
      peer.resetAndDestroy();
      await waitUntil(() => sockets[0]?.closed === true);
      assert.equal(finished, sent - 1);
    } else {
      peer.on("data", (chunk) => {
        bytes += chunk.length;
      });
      peer.resume();
      await waitUntil(() => finished === sent && bytes > sent * body.length);
    }
  }
});
