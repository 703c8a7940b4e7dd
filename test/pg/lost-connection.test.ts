// A connection that ends while the process uses it for nothing. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import pg from "pg";
import { ApiError } from "../../src/kernel/errors.js";
import { openPg } from "../../src/store/pg/open.js";
import { newDatabase } from "./databases.js";

describe("a transaction on PostgreSQL", () => {
  test("fails when the server ends its connection between two statements, and the process goes on", async (t) => {
    const url = await newDatabase();
    const store = await openPg({ url, poolSize: 2 });
    const operator = new pg.Client({ connectionString: url });
    await operator.connect();
    t.after(() => Promise.all([store.close(), operator.end()]));
    const lost = store.write(async (tx) => {
      await tx.settings.put("lost", "1");
      await operator.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
      );
      await sleep(100);
      await tx.settings.put("lost", "2");
    });
    await assert.rejects(lost, (error) => error instanceof ApiError && error.code === Code.Unavailable);
    assert.equal(await store.read((tx) => tx.settings.find("lost")), undefined);
  });

  test("is ended when its process is silent for longer than it may be", async (t) => {
    const store = await openPg({ url: await newDatabase(), poolSize: 2 });
    t.after(() => store.close());
    const silent = (maxIdleMs: number) =>
      store.write(
        async (tx) => {
          await tx.settings.put("silent", String(maxIdleMs));
          await sleep(400);
          await tx.settings.put("silent", "done");
        },
        { maxIdleMs },
      );
    await assert.rejects(silent(100), (error) => error instanceof ApiError && error.code === Code.Unavailable);
    await silent(10_000);
    assert.equal(await store.read((tx) => tx.settings.find("silent")), "done");
  });
});
