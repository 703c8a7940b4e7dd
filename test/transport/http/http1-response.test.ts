// Complete responses over HTTP/1.1: one write each, with the bytes that Node sends by itself.
import assert from "node:assert/strict";
import { createServer, type OutgoingHttpHeaders, type RequestListener } from "node:http";
import { type AddressInfo, connect, Socket } from "node:net";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { Http1Request } from "../../../src/transport/http/http1-request.js";
import { sendComplete } from "../../../src/transport/http/response-writer.js";
import { waitUntil } from "../../support/wait-until.js";
import { beginHttp1 } from "../requests.js";

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

// Without an id, which Node does not send.
function begin(...pair: Parameters<RequestListener>): Http1Request {
  const request = beginHttp1(...pair);
  const { writeHead } = pair[1];
  pair[1].writeHead = ((status: number, fields: string[]) => {
    const at = fields.indexOf("x-request-id");
    return writeHead.call(pair[1], status, fields.toSpliced(at, 2));
  }) as typeof writeHead;
  return request;
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
  "a field with several values": { status: 200, headers: json("{}", { "set-cookie": ["a=1", "b=2"] }), body: "{}" },
  "a field without a value": { status: 200, headers: json("{}", { "x-a": undefined }), body: "{}" },
  "a body of several chunks": { status: 200, headers: json("x".repeat(200_000)), body: "x".repeat(200_000) },
  "no body": { status: 404, headers: { "content-length": 0 }, body: "" },
  "a status without a body": { status: 204, headers: { "x-a": "1" }, body: "" },
};

const requests: Readonly<Record<string, string>> = {
  "three requests at once": GET + GET + LAST,
  HEAD: GET.replace("GET", "HEAD") + LAST,
  "HTTP/1.0": "GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\nGET /last HTTP/1.0\r\n\r\n",
  "expect: 100-continue": `POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}${LAST}`,
};

for (const [name, { status, headers, body }] of Object.entries(sent)) {
  for (const [how, request] of Object.entries(requests)) {
    test(`${name} is sent as Node sends it: ${how}`, async () => {
      const known = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
      const node: RequestListener = (_req, res) => void res.writeHead(status, known).end(body);
      const ours: RequestListener = (req, res) => sendComplete(begin(req, res), status, { ...headers }, body);
      for (const options of [{ keepAliveTimeout: 7_500 }, { keepAliveTimeout: 0 }]) {
        const expected = await exchange(node, request, options);
        assert.equal(await exchange(ours, request, options), expected);
        assert.match(expected, new RegExp(`HTTP/1.1 ${status} `));
      }
    });
  }
}

// A connection that counts the writes to the system.
class CountedSocket extends Duplex {
  readonly writes: string[] = [];

  constructor(request: string) {
    super();
    this.push(request);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.writes.push(chunk.toString());
    done();
  }

  override _writev(chunks: { readonly chunk: Buffer }[], done: () => void): void {
    this.writes.push(Buffer.concat(chunks.map(({ chunk }) => chunk)).toString());
    done();
  }
}

async function writesOf(listener: RequestListener): Promise<readonly string[]> {
  const server = createServer(listener);
  const socket = new CountedSocket(GET);
  server.emit("connection", socket);
  await waitUntil(() => socket.writes.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 20));
  socket.destroy();
  return socket.writes;
}

for (const body of ["{}", '{"name":"Zoë 🌳"}', "x".repeat(60_000), ""]) {
  test(`a response of ${body.length} characters is one write`, async () => {
    const headers = json(body);
    const writes = await writesOf((req, res) => sendComplete(begin(req, res), 200, headers, body));
    assert.equal(writes.length, 1);
    assert.ok(writes[0]?.endsWith(`\r\n\r\n${body}`));
  });
}

test("control: a response in two parts is two writes", async () => {
  const writes = await writesOf((_req, res) => {
    res.writeHead(200, { "content-length": 2 });
    res.flushHeaders();
    setImmediate(() => res.end("{}"));
  });
  assert.equal(writes.length, 2);
});

test("a field that would end its line ends the connection, and nothing of it is sent", async () => {
  for (const value of ["a\r\nset-cookie: b", "a\nb", "a\0b"]) {
    const listener: RequestListener = (req, res) =>
      sendComplete(begin(req, res), 200, json("{}", { "x-a": value }), "{}");
    const received = await exchange(listener, GET);
    assert.equal(received, "");
  }
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
    else sendComplete(begin(req, res), 201, json("{}"), "{}");
  }, GET + LAST);
  const state = "true true true";
  assert.deepEqual(events, [`finish 201 ${state}`, `close 201 ${state}`, `finish 200 ${state}`, `close 200 ${state}`]);
});

test("a response is recorded as sent when the peer has read its bytes, and not when the connection is cut", async (t) => {
  for (const isCut of [false, true]) {
    const body = "x".repeat(60_000);
    const sockets: Socket[] = [];
    const peer = new Socket();
    const ends: boolean[] = [];
    let [requested, bytes] = [0, 0];
    const requestNext = () => {
      requested++;
      peer.write(GET);
    };
    const server = createServer((req, res) => {
      const request = beginHttp1(req, res, [({ isCanceled }) => ends.push(isCanceled)]);
      res.on("close", () => {
        if (!peer.destroyed && bytes === 0) requestNext();
      });
      sendComplete(request, 200, json(body), body);
    });
    server.on("connection", (socket) => sockets.push(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      peer.destroy();
      server.close();
    });
    peer.pause();
    peer.connect((server.address() as AddressInfo).port, "127.0.0.1", requestNext);
    // The kernel keeps some megabytes.
    await waitUntil(() => (sockets[0]?.writableLength ?? 0) > 0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(ends.length, requested - 1);
    assert.ok(ends.length > 0 && !ends.includes(true));
    if (isCut) {
      peer.resetAndDestroy();
      await waitUntil(() => ends.length === requested);
      assert.equal(ends.at(-1), true);
    } else {
      peer.on("data", (chunk) => {
        bytes += chunk.length;
      });
      peer.resume();
      await waitUntil(() => ends.length === requested && bytes > requested * body.length);
      assert.equal(ends.at(-1), false);
    }
  }
});
