// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { ApiError } from "../../src/kernel/errors.js";
import { openPg } from "../../src/store/open-pg.js";
import { storeSuite } from "../store/store-suite.js";
import { newDatabase } from "./databases.js";

storeSuite("the store on PostgreSQL", async () => openPg({ url: await newDatabase() }));

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

test("there is no room while too many units wait for a connection", async (t) => {
  const store = await openPg({ url: await newDatabase(), poolSize: 1 });
  t.after(() => store.close());
  assert.equal(store.hasRoom("read"), true);
  // All of them are called before the first connection is there.
  const reads = Array.from({ length: 2_049 }, async () => store.read((tx) => tx.settings.find("any")));
  await new Promise(setImmediate);
  assert.equal(store.hasRoom("read"), false);
  await Promise.all(reads);
  assert.equal(store.hasRoom("read"), true);
});
