import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { ApiError } from "../../src/kernel/errors.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { createWorkGate } from "../../src/store/work-gate.js";
import { tempDir } from "../support/temp-dir.js";

const isUnavailable = (error: unknown) => error instanceof ApiError && error.code === Code.Unavailable;

test("units that have begun are committed; queued and new units are rejected", async () => {
  const directory = tempDir();
  const { store, reject } = createWorkGate(openSqlite({ directory }));
  // Called in one tick, so that all three are in one batch.
  const results = await Promise.allSettled([
    store.write(async (tx) => {
      await tx.settings.put("first", "1");
      reject();
      await tx.settings.put("second", "2");
    }),
    store.write((tx) => tx.settings.put("third", "3")),
    store.write((tx) => tx.settings.put("fourth", "4")),
  ]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ["fulfilled", "rejected", "rejected"],
  );
  for (const result of results.slice(1)) assert.ok(result.status === "rejected" && isUnavailable(result.reason));
  await assert.rejects(async () => store.read((tx) => tx.settings.find("first")), isUnavailable);
  await assert.rejects(store.check(), isUnavailable);
  await store.close();

  const again = openSqlite({ directory });
  const found = await again.read(async (tx) => {
    const names = ["first", "second", "third", "fourth"];
    return Promise.all(names.map(async (name) => (await tx.settings.find(name)) ?? "none"));
  });
  await again.close();
  assert.deepEqual(found, ["1", "2", "none", "none"]);
});
