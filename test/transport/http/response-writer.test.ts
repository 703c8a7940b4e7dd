// Writing at the pace of a peer, and not waiting for ever for one that does not read.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createBudgets } from "../../../src/transport/http/limits/budgets.js";
import { defaultLimits } from "../../../src/transport/http/limits/limits.js";
import type { Request } from "../../../src/transport/http/request.js";
import { beginHttp2 } from "../requests.js";

const budgets = createBudgets({ ...defaultLimits, responseStallMs: 200 });

test("a peer of HTTP/2 that stops reading a response is cut off, one that reads gets all", async () => {
  const server = createServer({ settings: { initialWindowSize: 1_000 } });
  const cut: Promise<boolean>[] = [];
  const write = async (request: Request) => {
    request.writeHead(200, {}, "pieces");
    for (const bytes of [5, 300_000, 0, 300_000]) await request.write(Buffer.alloc(bytes));
    if (request.isGone) return true;
    request.end();
    return false;
  };
  server.on("stream", (stream, fields) => void cut.push(write(beginHttp2(stream, fields, [], budgets))));
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
