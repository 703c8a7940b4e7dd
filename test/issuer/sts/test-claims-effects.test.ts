// Testing a token issues nothing, changes nothing, counts as no failed attempt, and leaves nothing of the token in the log.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { openDatabase } from "../../../src/store/sqlite/driver.js";
import { createLogger } from "../../../src/telemetry/logger.js";
import { rawClients, requestOf } from "../../contract/iam-clients.js";
import { ask } from "./ask.js";
import { type TestClaims, testOverRest } from "./claims-tester.js";
import { dumpOf, type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";

/** More than the failures that an address may have in a window of four seconds. */
const FAILURES = 250;
/** More than may wait for a slot when the limit is reached. */
const FLOOD = 60;

let world: ExchangeWorld;
let testClaims: TestClaims;
let stopped = false;
const lines: string[] = [];

before(async () => {
  const logger = createLogger("trace", { write: (line) => void lines.push(line) });
  world = await startExchangeWorld({ accessLog: "all" }, { logger });
  testClaims = testOverRest(world);
});
after(async () => {
  if (!stopped) await world.stop();
});

const test = (identity: string, value: string) => testClaims(identity, { case: "token", value });

/** Calls `call` so many times, eight at once. */
async function repeat(count: number, call: () => Promise<unknown>): Promise<void> {
  let left = count;
  const work = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: 8 }, work));
}

function read(sql: string, ...values: readonly string[]): unknown {
  const db = openDatabase(join(world.data, "arbor.db"), { readonly: true });
  try {
    return db
      .prepare(sql)
      .pluck()
      .get(...values);
  } finally {
    db.close();
  }
}

const countAudit = () => Number(read("SELECT count(*) FROM audit"));

it("changes no row, and has no row in the audit log", async () => {
  const identity = await world.workload("row");
  const [stored, rows] = [dumpOf(world.data), countAudit()];
  assert.deepEqual(await test(identity, world.token({ sub: "row" })), { accepted: true });
  for (const bearer of [world.token({ sub: "x" }), "garbage"]) assert.ok((await test(identity, bearer)).failed);
  const claims = { iss: world.workloads.issuer, sub: "row", aud: world.url };
  assert.deepEqual(await testClaims(identity, { case: "claims", value: claims }), { accepted: true });
  assert.deepEqual([dumpOf(world.data), countAudit()], [stored, rows]);
  // The control: a call that changes something is seen by both.
  const updated = await ask(world.url, `/iam/v2beta1/identities/${identity}?updateMask=description`, {
    ...{ method: "PATCH", bearer: world.owner.token, json: { uid: identity, description: "new" } },
  });
  assert.equal(updated.status, 200, updated.text);
  assert.notDeepEqual(dumpOf(world.data), stored);
  assert.equal(countAudit(), rows + 1);
});

/** Whether the exchange rejects some of many failing calls for their number. */
async function isSlowed(identity: string): Promise<boolean> {
  const bearer = world.token({ sub: "somebody else" });
  const exchange = async () => (await world.exchange({ identity }, bearer)).status;
  return (await Promise.all(Array.from({ length: FLOOD }, exchange))).includes(429);
}

it("does not count as a failed attempt of the exchange", async () => {
  const identity = await world.workload("limit");
  const bad = world.token({ sub: "somebody else" });
  await repeat(FAILURES, async () => {
    assert.equal((await test(identity, bad)).failed, "CONDITION_SUBJECT");
  });
  assert.equal(await isSlowed(identity), false);
  // The control: as many failing exchanges do. On a machine that is busy the window may end before it is full.
  let slowed = false;
  for (let i = 0; i < 10 && !slowed; i++) {
    await repeat(FAILURES, () => world.exchange({ identity }, bad));
    slowed = await isSlowed(identity);
  }
  assert.ok(slowed);
  assert.deepEqual(await test(identity, world.token({ sub: "limit" })), { accepted: true });
});

it("leaves nothing of the token in the log, over every protocol", async () => {
  const identity = await world.workload("log");
  const method = AccessService.method.testClaims;
  const tokens = [
    world.token({ sub: "log", x: "tested-x" }),
    world.token({ sub: "tested-subject" }),
    `${world.token({ sub: "log" })}!`,
  ];
  const clients = rawClients(world.url);
  for (const client of clients) {
    for (const value of tokens) {
      const request = requestOf(method, { identity, subject: { case: "token", value } });
      assert.equal((await client.call(method, request, world.owner.token)).code, "OK");
      await client.call(method, request, world.foreignOwner.token);
    }
  }
  for (const client of clients) client.close();
  // A GET, which has the request in its address, is refused, and leaves nothing of it in the log either.
  for (const token of tokens) {
    const message = JSON.stringify({ identity, token });
    const query = new URLSearchParams({ connect: "v1", encoding: "json", message });
    const path = `/${AccessService.typeName}/${method.name}?${query}`;
    assert.equal((await ask(world.url, path, { bearer: world.owner.token })).status, 405);
  }
  const tested = await world.workload("seen by a test");
  const exchanged = await world.workload("seen by the exchange");
  assert.deepEqual(await test(tested, world.token({ sub: "seen by a test" })), { accepted: true });
  await world.exchangeToken({ identity: exchanged }, world.token({ sub: "seen by the exchange" }));
  // Stopping writes the lines that wait, and when identities were seen.
  stopped = true;
  await world.stop();
  const found = lines.filter((line) => line.includes("TestClaims"));
  assert.ok(found.length >= (2 * clients.length + 1) * tokens.length, `${found.length} lines`);
  for (const token of tokens) {
    const part = token.slice(-40, -5);
    assert.ok(lines.every((line) => !line.includes(part)));
  }
  for (const line of lines) assert.doesNotMatch(line, /tested-subject|tested-x/);
  const lastSeen = (uid: string) => read("SELECT last_seen_time_ms FROM identities WHERE uid = ?", uid);
  assert.equal(lastSeen(tested), 1_000, "a test is no use of the identity");
  assert.notEqual(lastSeen(exchanged), 1_000, "an exchange is one");
});
