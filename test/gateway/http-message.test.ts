// Writing at the pace of a peer, and not waiting for ever for one that does not read.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { isGone, writeAtPace } from "../../src/gateway/http-message.js";

test("a peer of HTTP/2 that stops reading is cut off, one that reads gets all", async () => {
  const server = createServer({ settings: { initialWindowSize: 1_000 } });
  const gone: Promise<boolean>[] = [];
  server.on("request", (_req, res) => {
    gone.push(
      writeAtPace(res, Buffer.alloc(500_000), 200).then(() => {
        const cut = isGone(res);
        if (!cut) res.end();
        return cut;
      }),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const reading = session.request();
  let bytes = 0;
  for await (const chunk of reading) bytes += (chunk as Buffer).length;
  assert.equal(bytes, 500_000);
  const stalled = session.request();
  stalled.on("error", () => {});
  await once(stalled, "response");
  await once(stalled, "close");
  assert.notEqual(stalled.rstCode, 0);
  assert.deepEqual(await Promise.all(gone), [false, true]);
  session.close();
  server.close();
});
