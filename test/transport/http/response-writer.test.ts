// Writing at the pace of a peer, and not waiting for ever for one that does not read.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { isGone, type ResponseWriter } from "../../../src/transport/http/http-message.js";
import { defaultLimits } from "../../../src/transport/http/limits.js";
import { attachOpenRequest, createBudgets } from "../../../src/transport/http/open-request.js";
import { writeWithBackpressure } from "../../../src/transport/http/response-writer.js";
import { openRequest } from "../open-request.js";

const budgets = createBudgets({ ...defaultLimits, responseStallMs: 200 });
const charged = <T extends Parameters<typeof attachOpenRequest>[1]>(carrier: T): T => {
  attachOpenRequest(openRequest(budgets), carrier);
  return carrier;
};

const outlets: Readonly<Record<string, (server: Http2Server, answer: (out: ResponseWriter) => void) => void>> = {
  response: (server, answer) =>
    server.on("request", (_req, res) => {
      charged(res.stream);
      answer(res);
    }),
  stream: (server, answer) =>
    server.on("stream", (stream) => {
      stream.on("error", () => {});
      stream.respond({ ":status": 200 });
      answer(charged(stream));
    }),
};

for (const [name, serve] of Object.entries(outlets)) {
  test(`a peer of HTTP/2 that stops reading a ${name} is cut off, one that reads gets all`, async () => {
    const server = createServer({ settings: { initialWindowSize: 1_000 } });
    const cut: Promise<boolean>[] = [];
    const write = async (out: ResponseWriter) => {
      for (const bytes of [5, 300_000, 0, 300_000]) await writeWithBackpressure(out, Buffer.alloc(bytes));
      if (isGone(out)) return true;
      out.end();
      return false;
    };
    serve(server, (out) => cut.push(write(out)));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const reading = session.request();
    let bytes = 0;
    for await (const chunk of reading) bytes += (chunk as Buffer).length;
    assert.equal(bytes, 600_005);
    const stalled = session.request();
    stalled.on("error", () => {});
    await once(stalled, "response");
    await once(stalled, "close");
    assert.notEqual(stalled.rstCode, 0);
    assert.deepEqual(await Promise.all(cut), [false, true]);
    session.close();
    server.close();
  });
}
