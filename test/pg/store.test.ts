// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { ApiError } from "../../src/kernel/errors.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { openPg } from "../../src/store/pg/open.js";
import type { UnitOptions } from "../../src/store/store.js";
import { storeSuite } from "../store/store-suite.js";
import { childUid, groupRow, rootUid } from "../support/rows.js";
import { newDatabase, withClient } from "./databases.js";
import { neededSqlSuite } from "./needed-sql.js";
import { statementPlanSuite } from "./statement-plans.js";

storeSuite("the store on PostgreSQL", async () => openPg({ url: await newDatabase() }));
statementPlanSuite();
neededSqlSuite();

test("a unit that conflicts again and again is ABORTED before its deadline, and its connection is usable", async (t) => {
  const store = await openPg({ url: await newDatabase(), poolSize: 1 });
  t.after(() => store.close());
  let tries = 0;
  const deadlineMs = Date.now() + 1_000;
  const conflict = async () => {
    tries++;
    throw Object.assign(new Error("could not serialize access"), { code: "40001" });
  };
  await assert.rejects(store.write(conflict, { deadlineMs }), (error) => {
    return (
      error instanceof ApiError && error.code === Code.Aborted && /too many concurrent changes/.test(error.message)
    );
  });
  assert.ok(Date.now() <= deadlineMs + 500);
  assert.ok(tries > 3, `${tries} tries`);
  await store.write((tx) => tx.settings.put("after", "1"));
});

test("units wait for a connection in turn by their keys, and are given up when they have waited too long", async (t) => {
  const store = await openPg({ url: await newDatabase(), poolSize: 1 });
  t.after(() => store.close());
  const order: string[] = [];
  const readAs = async (key: string, limits: Pick<UnitOptions, "maxWaitMs" | "deadlineMs"> = {}) => {
    await store.read((tx) => tx.settings.find("any"), { key, ...limits });
    order.push(key);
  };
  const many = Array.from({ length: 200 }, () => readAs("many"));
  const late = [
    assert.rejects(
      readAs("many", { maxWaitMs: 1, deadlineMs: Date.now() + 60_000 }),
      /waited too long for the database/,
    ),
    assert.rejects(readAs("many", { maxWaitMs: 60_000, deadlineMs: Date.now() + 1 }), /Deadline exceeded/),
  ];
  await readAs("few");
  assert.ok(order.length < 20, `${order.length} of the other key came before it`);
  assert.ok(store.stats().waiting > 100);
  await Promise.all([...many, ...late]);
  assert.equal(store.stats().waiting, 0);
  assert.equal(order.length, 201);
});

test("transactions of several rows do not wait for each other in a circle", async () => {
  const url = await newDatabase();
  const store = await openPg({ url });
  const root = rootUid(1);
  await store.write((tx) => tx.table(groupKind).insert(groupRow(root)));
  let count = 0;
  const insertRows = async () => {
    const uids = Array.from({ length: 8 }, () => childUid(root, count++));
    await store.write(async (tx) => {
      for (const uid of uids) await tx.table(groupKind).insert(groupRow(uid));
    });
    await store.write(async (tx) => {
      for (const uid of uids) await tx.table(groupKind).delete(uid);
    });
  };
  await Promise.all(Array.from({ length: 48 }, insertRows));
  // A server process counts what it did once it ends.
  await store.close();
  const countDeadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
  await withClient(url, async (client) => {
    assert.deepEqual((await client.query(countDeadlocks)).rows, [{ deadlocks: "0" }]);
  });
});
