// Whether a node is ready while a lock in PostgreSQL holds calls: not when none ends any more, and still when others do.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import pg from "pg";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/health/v1/health_pb.js";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { type Harness, startHarness } from "../support/harness.js";
import { scrape } from "../support/metrics.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { newDatabase } from "./databases.js";

let harness: Harness;
let token: string;
let group: string;
let databaseUrl: string;
before(async () => {
  databaseUrl = await newDatabase();
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  harness = await startHarness({ databaseUrl, masterKeyFile, metricsListen: "127.0.0.1:0" });
  ({ token, group } = await harness.organisation("locked"));
  // A list that must be empty is answered from counters, without its table.
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const created = await fetch(`${harness.url}/registry/v2beta1/repos/${group}`, {
    method: "POST",
    headers,
    body: JSON.stringify({ name: "listed" }),
  });
  assert.equal(created.status, 200, await created.text());
});
after(() => harness.stop());

const call = (path: string) =>
  fetch(harness.url + path, { headers: { authorization: `Bearer ${token}` } }).then(async (response) => {
    await response.text();
    return response.status;
  });
// What a failed test has left open would keep its locks, and calls would wait for them.
const clients: pg.Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end();
});

async function begin(...statements: readonly string[]): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  clients.push(client);
  await client.query(["BEGIN", ...statements].join(";"));
  return async () => void (await client.query("ROLLBACK"));
}

/** Locks a table, as a change of the schema does. */
const lock = (table: string) => begin(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);

const readRepos = () => call(`/registry/v2beta1/repos?uidp.descendants_of=${group}`);
const readGroup = () => call(`/iam/v2beta1/groups/${group}`);
const ready = async () => {
  const response = await fetch(`${harness.url}/readyz`);
  return `${response.status} ${await response.text()}`;
};
const health = async () => {
  const client = createClient(Health, createGrpcTransport({ baseUrl: harness.url }));
  return (await client.check({})).status;
};

describe("a lock that holds calls", () => {
  test("for less than 5 s leaves the node ready; then it is not, until the lock is gone", {
    timeout: 60_000,
  }, async () => {
    assert.equal(await readRepos(), 200);
    const unlock = await lock("repos");
    const startMs = performance.now();
    const held = [readRepos(), readRepos()];
    await sleep(3_000);
    assert.equal(await ready(), '200 {"status":"ok"}');
    assert.equal(await health(), Status.SERVING);
    // Scrapes and jobs read other tables meanwhile, and are no sign that calls are served.
    await waitUntil(async () => {
      assert.equal((await scrape(harness.app.metricsUrl)).sum("arbor_database_up"), 1);
      return (await ready()).startsWith("503");
    }, 6_000);
    assert.ok(performance.now() - startMs >= 5_000);
    assert.equal(await ready(), '503 {"status":"unavailable"}');
    assert.equal(await health(), Status.NOT_SERVING);
    assert.equal((await fetch(`${harness.url}/healthz`)).status, 200);
    await unlock();
    assert.deepEqual(await Promise.all(held), [200, 200]);
    assert.equal(await ready(), '200 {"status":"ok"}');
    assert.equal(await health(), Status.SERVING);
  });

  test("leaves the node ready while calls of other tables end: the control", async () => {
    const unlock = await lock("repos");
    const held = readRepos();
    for (let second = 0; second < 9; second++) {
      await sleep(1_000);
      assert.equal(await readGroup(), 200);
      assert.equal(await ready(), '200 {"status":"ok"}', `after ${second + 1} s`);
    }
    await unlock();
    assert.equal(await held, 200);
  });

  test("of a row leaves the node ready while other rows are written: the control", async () => {
    const unlock = await begin(`SELECT 1 FROM groups WHERE uid = '${group}' FOR UPDATE`);
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const body = JSON.stringify({ description: "changed" });
    const held = fetch(`${harness.url}/iam/v2beta1/groups/${group}`, { method: "PATCH", headers, body });
    for (let second = 0; second < 7; second++) {
      await sleep(1_000);
      assert.equal(await readRepos(), 200);
      assert.equal(await ready(), '200 {"status":"ok"}', `after ${second + 1} s`);
    }
    await unlock();
    assert.equal((await held).status, 200);
  });
});
