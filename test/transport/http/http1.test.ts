// How often the server of HTTP/1.1 asks whether there is time for a request: to be admitted, a request may take the place
// of another one, which is rejected.
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { createAdmission } from "../../../src/transport/http/admission.js";
import { createHttp1 } from "../../../src/transport/http/http1.js";
import { defaultLimits } from "../../../src/transport/http/limits.js";
import type { Rejection } from "../../../src/transport/http/rejection.js";
import { Buffers, createConnections } from "../../../src/transport/http/request-buffers.js";

const LAST = "GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

/** The paths of the requests that admission was asked for, and everything that came back. */
interface Outcome {
  readonly asked: readonly string[];
  readonly received: string;
}

async function exchange(requests: string, admitsAll: boolean, isAdmitted: (path: string) => boolean): Promise<Outcome> {
  const asked: string[] = [];
  const connections = createConnections(new Buffers(defaultLimits), undefined, false);
  const holders = connections.open("127.0.0.1");
  let current = "";
  const admission = createAdmission({ maxDelayMs: Number.POSITIVE_INFINITY, maxRoundMs: 0 });
  const overload: Rejection = {
    formatHttp1: () => undefined,
    http1: (_req: IncomingMessage, res: ServerResponse) => void res.writeHead(503).end(),
    http2: () => assert.fail("HTTP/2"),
  };
  const http1 = createHttp1({
    limits: defaultLimits,
    onRequest: (req, res) => void res.end(req.url),
    onError: (error) => assert.fail(String(error)),
    beginRequest: (req) => connections.begin(holders, "127.0.0.1", req.headers),
    peerOf(req) {
      current = String(req.url);
      return connections.peerOf(holders, req);
    },
    errorBody: () => "{}",
    admission: {
      ...admission,
      admitsAll: () => admitsAll,
      admits() {
        asked.push(current);
        return isAdmitted(current);
      },
    },
    overload,
    recordRejected: () => "id",
  });
  const server = createServer((socket) => http1.serve(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  try {
    socket.write(requests);
    return { asked, received: await text(socket) };
  } finally {
    socket.destroy();
    server.close();
    http1.close();
    admission.stop();
  }
}

test("it asks once for each request that it admits", async () => {
  for (const method of ["GET", "HEAD", "DELETE"]) {
    const { asked, received } = await exchange(LAST.replace("GET", method), false, () => true);
    assert.match(received, /^HTTP\/1\.1 200 /);
    assert.deepEqual(asked, ["/last"]);
  }
  const { asked } = await exchange(LAST.replace("connection: close", "x: y") + LAST, false, () => true);
  assert.equal(asked.length, 2);
});

test("it asks for none while all are admitted, and none is rejected", async () => {
  const { asked, received } = await exchange(LAST, true, () => false);
  assert.match(received, /^HTTP\/1\.1 200 /);
  assert.deepEqual(asked, []);
});

test("a request that is not admitted is rejected, also where the response is left to Node", async () => {
  const { received } = await exchange(LAST, false, () => false);
  assert.match(received, /^HTTP\/1\.1 503 /);
});
