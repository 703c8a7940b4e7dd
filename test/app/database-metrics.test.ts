// Metrics whose values are in the database, with and without a response of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createDatabaseMetrics } from "../../src/app/database-metrics.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { createRenderer } from "../../src/telemetry/metrics/renderer.js";
import { auditRow } from "../audit/log-kit.js";
import { parseMetrics } from "../support/metrics.js";
import { memoryDir } from "../support/temp-dir.js";
import { testEventMetrics } from "./event-metrics-suite.js";

const NOW = 1_700_000_000_000;

function measure(store: Pick<Store, "read">, options: { waitMs?: number; freshMs?: number } = {}) {
  const clock = () => NOW;
  const stored = createDatabaseMetrics({
    store,
    clock,
    holder: "me",
    jobs: () => new Set(["mine", "theirs"]),
    ...options,
  });
  const renderer = createRenderer(stored.sources, { prepare: stored.refresh });
  return async () => parseMetrics((await renderer.render("prometheus")).text);
}

const job = (name: string, holder: string, expireTimeMs: number) => ({
  ...{ name, holder, expireTimeMs, fence: 1, startTimeMs: NOW - 90_000, durationMs: 1_500, changes: 1 },
  ...{ nextTimeMs: NOW - 60_000, failures: 2, error: "secret text", errorTimeMs: NOW },
});

test("jobs and leases of this node and of others; unknown jobs have no metrics", async () => {
  const store = openSqlite({ directory: memoryDir(), clock: () => NOW });
  await store.write(async (tx) => {
    await tx.jobs.put(job("mine", "me", NOW + 1000));
    await tx.jobs.put(job("theirs", "other", NOW + 1000));
    await tx.jobs.put(job("unknown", "me", NOW + 1000));
  });
  const metrics = await measure(store)();
  assert.equal(metrics.sum("arbor_job_leader", { job_name: "mine" }), 1);
  assert.equal(metrics.sum("arbor_job_leader", { job_name: "theirs" }), 0);
  assert.equal(metrics.sum("arbor_job_leased", { job_name: "theirs" }), 1);
  assert.equal(metrics.sum("arbor_job_overdue_seconds", { job_name: "mine" }), 60);
  assert.equal(metrics.sum("arbor_job_last_run_timestamp_seconds", { job_name: "mine" }), NOW / 1000 - 90);
  assert.equal(metrics.sum("arbor_job_last_duration_seconds", { job_name: "mine" }), 1.5);
  assert.equal(metrics.sum("arbor_job_failures", { job_name: "mine" }), 2);
  assert.equal(metrics.sum("arbor_job_leader", { job_name: "unknown" }), undefined);
  await store.close();
});

test("a job that has never run, or whose first run does not end, is due since the start", async () => {
  const store = openSqlite({ directory: memoryDir(), clock: () => NOW });
  await store.write((tx) => tx.jobs.put({ ...job("mine", "me", NOW + 1000), startTimeMs: null, nextTimeMs: null }));
  let nowMs = NOW;
  const metrics = createDatabaseMetrics({
    ...{ store, clock: () => nowMs, holder: "me", jobs: () => new Set(["mine", "theirs"]), freshMs: 0 },
  });
  const renderer = createRenderer(metrics.sources, { prepare: metrics.refresh });
  const read = async () => parseMetrics((await renderer.render("prometheus")).text);
  assert.equal((await read()).sum("arbor_job_overdue_seconds"), 0);
  nowMs += 600_000;
  const late = await read();
  for (const job_name of ["mine", "theirs"]) assert.equal(late.sum("arbor_job_overdue_seconds", { job_name }), 600);
  await store.close();
});

test("keys of every purpose and state are counted, also those that are not there", async () => {
  const store = openSqlite({ directory: memoryDir(), clock: () => NOW });
  const metrics = await measure(store)();
  const keys = metrics.samples.filter(({ name }) => name === "arbor_signing_keys");
  assert.deepEqual([keys.length, metrics.sum("arbor_signing_keys")], [12, 0]);
  assert.equal(metrics.sum("arbor_signing_keys", { purpose: "api-token", state: "active" }), 0);
  await store.close();
});

testEventMetrics(async () => openSqlite({ directory: memoryDir(), clock: () => NOW }));

test("unsealed rows are counted, and the oldest one is the lag", async () => {
  const store = openSqlite({ directory: memoryDir(), clock: () => NOW });
  const read = measure(store, { freshMs: 0 });
  const none = await read();
  assert.deepEqual([none.sum("arbor_audit_unsealed_rows"), none.sum("arbor_audit_sealer_lag_seconds")], [0, 0]);
  await store.write(async (tx) => {
    for (let i = 3; i > 0; i--) await tx.audit.append(auditRow("r", { timeMs: NOW - i * 1000 }));
  });
  const three = await read();
  assert.deepEqual([three.sum("arbor_audit_unsealed_rows"), three.sum("arbor_audit_sealer_lag_seconds")], [3, 3]);
  await store.write(async (tx) => {
    const [first] = await tx.auditChain.listUnsealed(0, 1);
    await tx.auditChain.append([{ rootUid: "r", seq: 1, auditId: first?.id ?? 0, hash: "h" }]);
  });
  const two = await read();
  assert.deepEqual([two.sum("arbor_audit_unsealed_rows"), two.sum("arbor_audit_sealer_lag_seconds")], [2, 2]);
  await store.close();
});

test("of very many unsealed rows the newest are counted", async () => {
  const store = openSqlite({ directory: memoryDir(), clock: () => NOW });
  await store.write(async (tx) => {
    for (let i = 0; i < 30; i++) await tx.audit.append(auditRow("r", { timeMs: NOW }));
  });
  const count = (newest: number) => store.read((tx) => tx.auditChain.countUnsealed(newest));
  assert.deepEqual([(await count(10)).rows, (await count(100)).rows], [10, 30]);
  await store.close();
});

test("values are kept for some time", async () => {
  const store = openSqlite({ directory: memoryDir(), clock: () => NOW });
  let reads = 0;
  const counting: Pick<Store, "read"> = {
    read(unit, options) {
      reads++;
      return store.read(unit, options);
    },
  };
  const kept = measure(counting);
  await kept();
  await kept();
  assert.equal(reads, 1);
  const always = measure(counting, { freshMs: 0 });
  await always();
  await always();
  assert.equal(reads, 3, "the control: without that time each scrape reads");
  await store.close();
});

test("a closed database has no values, and the scrape is answered", async () => {
  const store = openSqlite({ directory: memoryDir(), clock: () => NOW });
  const read = measure(store, { freshMs: 0 });
  assert.equal((await read()).sum("arbor_database_up"), 1);
  await store.close();
  const down = await read();
  assert.equal(down.sum("arbor_database_up"), 0);
  assert.equal(down.sum("arbor_signing_keys"), undefined);
  assert.equal(down.sum("arbor_audit_unsealed_rows"), undefined);
  assert.ok((down.sum("process_resident_memory_bytes") ?? 0) > 0, "the rest");
});

test("a database that hangs holds up a scrape for a bounded time, and one read waits for it", async () => {
  const store = openSqlite({ directory: memoryDir(), clock: () => NOW });
  let release = () => {};
  let reads = 0;
  const hanging: Pick<Store, "read"> = {
    async read(unit, options) {
      reads++;
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return store.read(unit, options);
    },
  };
  const read = measure(hanging, { waitMs: 20, freshMs: 60_000 });
  for (let i = 0; i < 3; i++) assert.equal((await read()).sum("arbor_database_up"), 0);
  assert.equal(reads, 1);
  release();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await read()).sum("arbor_database_up"), 1);
  await store.close();
});
