// The stream of audit events on PostgreSQL, whose writers commit in another order than they begin. Needs
// TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { createEventFeed } from "../../src/audit/event-feed.js";
import { openPg } from "../../src/store/pg/open.js";
import type { Store } from "../../src/store/store.js";
import { auditRow } from "../audit/log-kit.js";
import { rootUid } from "../support/rows.js";
import { waitUntil } from "../support/wait-until.js";
import { newDatabase } from "./databases.js";

const root = rootUid(0xe7);
/** How many writers are late: a look-up takes numbers of rows in powers of two. */
const LATE = 5;

/** Writes a row and keeps its transaction open. */
async function writeLate(url: string, requestId: string): Promise<{ commit(): Promise<void> }> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const names = ["root_uid", "type", "method", "subject_uid", "actor_uid", "token_id", "remote_address", "request_id"];
  const values = [root, "test.thing.made.v1", "/test.Things/Make", root, "actor", "token", "192.0.2.7", requestId];
  await client.query("BEGIN");
  await client.query(
    `INSERT INTO audit (${names.join(", ")}, time_ms) VALUES (${values.map((_, i) => `$${i + 1}`).join(", ")}, 1000)`,
    values,
  );
  return {
    async commit() {
      await client.query("COMMIT");
      await client.end();
    },
  };
}

/** Follows the log while writers are late; the requests whose rows arrived before and after they committed. */
async function followLate(url: string, store: Store, lateCommitMs: number) {
  const feed = createEventFeed({ store: { ...store, lateCommitMs }, onProblem: assert.fail, pollMs: 10 });
  const reader = feed.follow(root, () => true);
  const ended = new AbortController();
  await reader.begin(ended.signal);
  const arrived: string[] = [];
  const follow = async () => {
    while (!ended.signal.aborted)
      for (const { requestId } of await reader.next(20, ended.signal)) arrived.push(requestId);
  };
  const following = follow();
  const append = (requestId: string) => store.write((tx) => tx.audit.append(auditRow(root, { requestId })));
  try {
    const writers = [];
    for (let i = 0; i < LATE; i++) writers.push(await writeLate(url, `late ${i}`));
    await append("early");
    await waitUntil(() => arrived.length > 0);
    const before = [...arrived];
    for (const writer of writers) await writer.commit();
    await append("last");
    await waitUntil(() => arrived.includes("last"));
    // Rows that were late come with the look-up after theirs.
    await sleep(100);
    return { before, after: arrived.slice(before.length).sort() };
  } finally {
    ended.abort();
    await following.catch(() => {});
    reader.close();
  }
}

test("rows that are committed after later rows arrive, and without the look-up of missing ones they do not", async (t) => {
  const url = await newDatabase();
  const store = await openPg({ url, poolSize: 3 });
  t.after(() => store.close());
  const late = Array.from({ length: LATE }, (_, i) => `late ${i}`);
  assert.deepEqual(await followLate(url, store, store.lateCommitMs), { before: ["early"], after: ["last", ...late] });
  assert.deepEqual(await followLate(url, store, 0), { before: ["early"], after: ["last"] }, "the control");
  await store.read(async ({ auditEvents }) => {
    const rows = await auditEvents.listAfter(0, 100);
    for (const count of [1, 2, 3, LATE]) {
      const some = rows.slice(0, count);
      const ids = some.map(({ id }) => id);
      assert.deepEqual(await auditEvents.findByIds([1_000_000, ...ids]), some, `${count} rows`);
    }
  });
});
