// The fuzzer reads responses by its own HPACK reader; what it reads must be what Node wrote.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createRandom } from "../../support/openapi/random.js";
import { blockOf, createDecoder, encodeIndexed, type Field, literal, tableSize } from "./hpack.js";
import { openSession } from "./http2-session.js";

const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join("");

for (const size of [0, 4096]) {
  test(`what Node answers, with a dynamic table of ${size} bytes`, async () => {
    const random = createRandom(1);
    const server = createServer();
    const sent: Field[][] = [];
    server.on("stream", (stream) => {
      const fields = Array.from(
        { length: 5 },
        (_, i): Field => [`x-${i}`, `a${random.text(PRINTABLE, 40)}${random.chance(0.3) ? PRINTABLE : ""}z`],
      );
      fields.push(["grpc-status", String(random.int(17))]);
      sent.push(fields);
      stream.respond({ ":status": random.pick([200, 404, 500]), ...Object.fromEntries(fields) });
      stream.end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const received: (readonly Field[])[] = [];
    const session = openSession((server.address() as AddressInfo).port, {
      settings: [[1, size]],
      onFields: (_stream, fields) => received.push(fields),
    });
    for (let i = 0; i < 50; i++) {
      session.headers(
        2 * i + 1,
        blockOf([
          [":method", "GET"],
          [":path", "/"],
          [":scheme", "http"],
          [":authority", "a"],
        ]),
        { endStream: true },
      );
    }
    while (received.length < 50) await session.next();
    session.end();
    await session.closed;
    server.close();
    assert.deepEqual(
      received.map((fields) => fields.filter(([name]) => !name.startsWith(":") && name !== "date")),
      sent,
    );
  });
}

test("what is written is read", () => {
  const fields: Field[] = [
    ["a", ""],
    ["x".repeat(300), "y".repeat(5_000)],
    ["n", "\u00ff"],
  ];
  const block = Buffer.concat([
    tableSize(100),
    encodeIndexed(2),
    ...fields.map((field) => literal(field, "indexed")),
    encodeIndexed(62),
  ]);
  const kept: Field = ["n", "\u00ff"];
  assert.deepEqual(createDecoder().decode(block), [[":method", "GET"], ...fields, kept]);
  assert.throws(() => createDecoder().decode(encodeIndexed(62)), /no field 62/);
});
