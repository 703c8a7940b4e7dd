// The resolvers, against a name server on the loopback address.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { createDnsResolver, type Resolve, systemResolve } from "../../src/outbound/guarded-fetch.js";
import { startStopwatch } from "../support/stopwatch.js";

const A = 1;
const AAAA = 28;
const loopback6 = [...Array<number>(15).fill(0), 1];

/** The records of names by type. A name without any does not exist; one that is null is never answered. */
const records: Readonly<Record<string, Readonly<Record<number, readonly (readonly number[])[]>> | null>> = {
  "both.test": {
    [A]: [
      [1, 1, 1, 1],
      [10, 0, 0, 1],
    ],
    [AAAA]: [loopback6],
  },
  "four.test": { [A]: [[8, 8, 8, 8]] },
  "six.test": { [AAAA]: [loopback6] },
  "silent.test": null,
};

const socket = createSocket("udp4");
let queries: string[] = [];
let resolve: Resolve;

before(async () => {
  socket.on("message", (query, { port, address }) => {
    let end = 12;
    const labels: string[] = [];
    for (let length = query[end] ?? 0; length > 0; length = query[end] ?? 0) {
      labels.push(query.toString("latin1", end + 1, end + 1 + length));
      end += 1 + length;
    }
    const name = labels.join(".");
    const type = query.readUInt16BE(end + 1);
    queries.push(`${name} ${type}`);
    const known = records[name];
    if (known === null) return;
    const responses = known?.[type] ?? [];
    const header = Buffer.from([
      ...query.subarray(0, 2),
      0x81,
      known ? 0x80 : 0x83,
      0,
      1,
      0,
      responses.length,
      0,
      0,
      0,
      0,
    ]);
    const found = responses.map((bytes) =>
      Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes]),
    );
    socket.send(Buffer.concat([header, query.subarray(12, end + 5), ...found]), port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  resolve = createDnsResolver([`127.0.0.1:${socket.address().port}`]);
});

after(() => socket.close());

const open = () => new AbortController().signal;

const cases: Readonly<Record<string, readonly string[]>> = {
  "both.test": ["1.1.1.1", "10.0.0.1", "::1"],
  "four.test": ["8.8.8.8"],
  "six.test": ["::1"],
  "missing.test": [],
};

for (const [name, addresses] of Object.entries(cases)) {
  test(`${name}: ${addresses.join() || "no address"}`, async () => {
    queries = [];
    const found = await resolve(name, open());
    assert.deepEqual(
      found,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
    assert.deepEqual(queries.sort(), [`${name} ${A}`, `${name} ${AAAA}`]);
  });
}

test("a query can be called off", async () => {
  const controller = new AbortController();
  const elapsedMs = startStopwatch();
  setTimeout(() => controller.abort(), 100);
  assert.deepEqual(await resolve("silent.test", controller.signal), []);
  assert.ok(elapsedMs() < 1_000);
});

test("the machine itself knows localhost", async () => {
  const found = await systemResolve("localhost", open());
  assert.ok(found.some(({ address }) => address === "127.0.0.1" || address === "::1"));
});
