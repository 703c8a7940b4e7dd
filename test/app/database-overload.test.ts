// Writes that the database has no time for: while another process holds it, a bounded number waits, the others get
// UNAVAILABLE over every protocol, and reads and health checks are answered.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { type Harness, startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";

/** The writes that are sent, and how many of them when the first has waited too long. */
const MANY = 100;
const LATE = 30;
const FEW = 10;

let service: Harness;
let other: SqliteDatabase;
let root: string;
let token: string;
before(async () => {
  const data = tempDir();
  service = await startHarness({ data });
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

/**
 * Lets so many writes wait for a database that another process holds, and looks at the service meanwhile.
 *
 * @param late how many more are sent when the first has waited for longer than writes may
 */
async function whileWaiting(
  prefix: string,
  { writes, late = 0 }: { readonly writes: number; readonly late?: number },
  look: () => Promise<void>,
): Promise<readonly Outcome[]> {
  const createGroups = (count: number, from = 0) =>
    Array.from({ length: count }, (_, i) => createGroup(`${prefix} ${from + i}`));
  const { store } = service.app.installation;
  const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
  other.exec("BEGIN IMMEDIATE");
  const outcomes: Promise<Outcome>[] = [];
  try {
    outcomes.push(...createGroups(writes));
    while (service.app.openWork().calls < writes) await pause();
    if (late > 0) while (store.hasRoom("write")) await pause();
    outcomes.push(...createGroups(late, writes));
    await look();
  } finally {
    other.exec("ROLLBACK");
  }
  return Promise.all(outcomes);
}

test("writes beyond a bound get UNAVAILABLE, over every protocol; reads and health checks do not", async () => {
  const outcomes = await whileWaiting("many", { writes: MANY - LATE, late: LATE }, async () => {
    assert.equal(service.app.installation.store.hasRoom("write"), false);
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
    assert.equal(await readGroup(), 200);
    for (const path of ["/healthz", "/readyz"]) assert.equal((await fetch(service.url + path)).status, 200);
  });
  const rejected = outcomes.filter(({ status }) => status === 503);
  assert.ok(rejected.length > 0, "none was rejected");
  for (const { retryAfter, body } of rejected) {
    assert.equal(retryAfter, "1");
    assert.equal(body.code, Code.Unavailable);
    assert.ok(body.details?.some((detail) => detail["@type"].endsWith("RetryInfo")));
  }
  const written = outcomes.filter(({ status }) => status === 200).map(({ body }) => body.uid);
  assert.equal(written.length + rejected.length, MANY);
  const stored = other
    .prepare("SELECT count(*) FROM groups WHERE parent_uid = ? AND name LIKE 'many %'")
    .pluck()
    .get(root);
  assert.equal(stored, written.length, "what was rejected must not be written");
});

test("afterwards writes are accepted again", async () => {
  assert.equal((await createGroup("later")).status, 200);
});

test("control: few writes wait, and none is rejected", async () => {
  const outcomes = await whileWaiting("few", { writes: FEW }, async () => {
    assert.equal(service.app.installation.store.hasRoom("write"), true);
  });
  assert.deepEqual(new Set(outcomes.map(({ status }) => status)), new Set([200]));
});
