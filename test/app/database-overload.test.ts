// Writes that the database has no time for: while another process holds it they wait, for as long as calls may wait, and
// then get UNAVAILABLE over every protocol. Reads and health checks are answered.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { type Harness, startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";

/** How long calls may wait here, in seconds, and how many writes are sent. */
const MAX_WAIT_S = 3;
const WRITES = 50;

let service: Harness;
let other: SqliteDatabase;
let root: string;
let token: string;
before(async () => {
  const data = tempDir();
  service = await startHarness({ data }, { values: { maxWait: MAX_WAIT_S } });
  ({ group: root, token } = await service.organisation("busy"));
  other = openDatabase(join(data, "arbor.db"));
});
after(async () => {
  other.close();
  await service.stop();
});

interface Outcome {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly body: { readonly code?: number; readonly uid?: string; readonly details?: readonly { "@type": string }[] };
}

async function createGroup(name: string): Promise<Outcome> {
  const response = await fetch(`${service.url}/iam/v2beta1/groups/${root}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ name }),
  });
  const body = (await response.json()) as Outcome["body"];
  return { status: response.status, retryAfter: response.headers.get("retry-after"), body };
}

async function readGroup(): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${service.url}/iam/v2beta1/groups/${root}`, { headers })).status;
}

/** Sends writes while another process holds the database, and looks at the service meanwhile. */
async function whileHeld(prefix: string, look: () => Promise<void>): Promise<readonly Outcome[]> {
  other.exec("BEGIN IMMEDIATE");
  const outcomes: Promise<Outcome>[] = [];
  try {
    outcomes.push(...Array.from({ length: WRITES }, (_, i) => createGroup(`${prefix} ${i}`)));
    while (service.app.openWork().calls < WRITES) await delay(5);
    await look();
  } finally {
    other.exec("ROLLBACK");
  }
  return Promise.all(outcomes);
}

test("writes that wait too long get UNAVAILABLE, over every protocol; reads and health checks do not wait", async () => {
  const startMs = performance.now();
  const outcomes = await whileHeld("many", async () => {
    assert.equal(await readGroup(), 200);
    for (const path of ["/healthz", "/readyz"]) assert.equal((await fetch(service.url + path)).status, 200);
    const headers = { authorization: `Bearer ${token}` };
    for (const transport of [
      createGrpcTransport({ baseUrl: service.url }),
      createConnectTransport({ baseUrl: service.url, httpVersion: "2" }),
    ]) {
      const call = createClient(GroupsService, transport).createGroup(
        { parent: root, group: { name: "x" } },
        { headers },
      );
      const error = await call.then(
        () => undefined,
        (failure: unknown) => ConnectError.from(failure),
      );
      assert.equal(error?.code, Code.Unavailable);
      assert.equal(error.findDetails(RetryInfoSchema)[0]?.retryDelay?.seconds, 1n);
    }
    assert.ok(performance.now() - startMs >= MAX_WAIT_S * 1_000);
  });
  for (const { status, retryAfter, body } of outcomes) {
    assert.equal(status, 503);
    assert.equal(retryAfter, "1");
    assert.equal(body.code, Code.Unavailable);
    assert.ok(body.details?.some((detail) => detail["@type"].endsWith("RetryInfo")));
  }
  const stored = other.prepare("SELECT count(*) FROM groups WHERE parent_uid = ?").pluck().get(root);
  assert.equal(stored, 0, "what was refused must not be written");
});

test("a caller that waits for less gets DEADLINE_EXCEEDED, over every protocol", async () => {
  await whileHeld("impatient", async () => {
    const headers = { authorization: `Bearer ${token}`, "grpc-timeout": "500m", "connect-timeout-ms": "500" };
    for (const transport of [
      createGrpcTransport({ baseUrl: service.url }),
      createConnectTransport({ baseUrl: service.url, httpVersion: "2" }),
    ]) {
      const startMs = performance.now();
      const call = createClient(GroupsService, transport).createGroup(
        { parent: root, group: { name: "x" } },
        { headers },
      );
      const error = await call.then(
        () => undefined,
        (failure: unknown) => ConnectError.from(failure),
      );
      assert.equal(error?.code, Code.DeadlineExceeded);
      assert.ok(performance.now() - startMs >= 450);
    }
  });
});

test("afterwards writes are accepted again", async () => {
  assert.equal((await createGroup("later")).status, 200);
});

test("control: writes that wait for less are carried out", async () => {
  const outcomes = await whileHeld("few", () => delay(200));
  assert.deepEqual(new Set(outcomes.map(({ status }) => status)), new Set([200]));
});
