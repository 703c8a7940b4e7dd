// Metrics of the store on PostgreSQL, also while the database does not answer.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { createDatabaseMetrics } from "../../src/app/database-metrics.js";
import { openPg } from "../../src/store/pg/open.js";
import type { Store } from "../../src/store/store.js";
import { createRenderer } from "../../src/telemetry/metrics/renderer.js";
import { testEventMetrics } from "../app/event-metrics-suite.js";
import { auditRow } from "../audit/log-kit.js";
import { parseMetrics } from "../support/metrics.js";
import { newDatabase } from "./databases.js";

let url: string;
let store: Store;
before(async () => {
  url = await newDatabase();
  store = await openPg({ url, poolSize: 4 });
});
after(() => store.close());

test("commits, conflicts and connections are counted", async () => {
  await store.write((tx) => tx.settings.put("counter", "0"));
  const before = store.stats().commitSeconds.counts.reduce((sum, count) => sum + count, 0);
  const increment = () =>
    store.write(async (tx) => tx.settings.put("counter", String(Number(await tx.settings.find("counter")) + 1)));
  await Promise.all(Array.from({ length: 12 }, increment));
  assert.equal(await store.read((tx) => tx.settings.find("counter")), "12");
  const stats = store.stats();
  assert.equal(
    stats.commitSeconds.counts.reduce((sum, count) => sum + count, 0),
    before + 12,
    "reads are not counted",
  );
  assert.ok(stats.conflicts > 0);
  assert.equal(stats.files, undefined);
  assert.deepEqual([stats.pool?.max, stats.pool?.busy], [4, 0]);
  const reading = store.read(async (tx) => {
    await tx.settings.find("counter");
    return store.stats().pool?.busy;
  });
  assert.equal(await reading, 1);
});

testEventMetrics(async () => openPg({ url: await newDatabase(), poolSize: 2 }));

test("a scrape is answered while a lock keeps the database from answering", async () => {
  await store.write((tx) => tx.audit.append(auditRow("r", { timeMs: Date.now() - 5_000 })));
  const stored = createDatabaseMetrics({
    ...{ store, clock: Date.now, holder: "me", jobs: () => new Set<string>() },
    ...{ waitMs: 200, freshMs: 0 },
  });
  const renderer = createRenderer(stored.sources, { prepare: stored.refresh });
  const read = async () => parseMetrics((await renderer.render("prometheus")).text);
  const well = await read();
  assert.deepEqual([well.sum("arbor_database_up"), well.sum("arbor_audit_unsealed_rows")], [1, 1]);
  assert.ok((well.sum("arbor_audit_sealer_lag_seconds") ?? 0) >= 5);

  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("BEGIN; LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE");
  const locked = await read();
  assert.deepEqual([locked.sum("arbor_database_up"), locked.sum("arbor_audit_unsealed_rows")], [0, undefined]);
  assert.ok((locked.sum("process_resident_memory_bytes") ?? 0) > 0);
  await client.query("ROLLBACK");
  await client.end();
  for (let tries = 0; tries < 20 && (await read()).sum("arbor_database_up") !== 1; tries++);
  assert.equal((await read()).sum("arbor_database_up"), 1);
});
