// The suite of row versions on SQLite; on PostgreSQL it is part of test/pg/audit.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseAuditVersion, watchAuditVersion } from "../../src/store/audit/version.js";
import { memoryDir } from "../support/temp-dir.js";
import { openLog, requireVersion1 } from "./log-kit.js";
import { versionsSuite } from "./versions-suite.js";

versionsSuite("versions of audit rows on SQLite", async (clock) => {
  const log = await openLog(memoryDir(), clock);
  await requireVersion1(log.store);
  return log;
});

const choices: readonly { oldest: string | undefined; version: number }[] = [
  { oldest: undefined, version: 1 },
  { oldest: "0.1.0", version: 1 },
  { oldest: "0.4.0", version: 1 },
  { oldest: "0.4.99", version: 1 },
  { oldest: "0.5.0", version: 2 },
  { oldest: "0.10.0", version: 2 },
  { oldest: "0.40.0", version: 2 },
  { oldest: "1.0.0", version: 2 },
  { oldest: "10.4.0", version: 2 },
];

for (const { oldest, version } of choices) {
  test(`where ${oldest ?? "any version"} may open the database, rows have version ${version}`, () => {
    assert.equal(chooseAuditVersion(oldest), version);
  });
}

test("the setting is read every five seconds until version 2 begins, and a failed read is tried again", async () => {
  let [nowMs, reads] = [1_000, 0];
  let read = (): string | undefined => undefined;
  const watch = watchAuditVersion(
    () => {
      reads++;
      return read();
    },
    () => nowMs,
  );
  watch.refresh();
  assert.deepEqual([watch.current(), watch.current(), reads], [1, 1, 1]);
  nowMs += 5_000;
  assert.deepEqual([watch.current(), watch.current(), reads], [1, 1, 2]);
  read = () => {
    throw new Error("closed");
  };
  nowMs += 5_000;
  assert.deepEqual([watch.current(), reads], [1, 3]);
  read = () => "0.5.0";
  assert.deepEqual([watch.current(), reads], [1, 3]);
  nowMs += 5_000;
  assert.deepEqual([watch.current(), reads], [2, 4]);
  nowMs += 5_000;
  assert.deepEqual([watch.current(), reads], [2, 4]);
});

test("a read that fails later is tried again too", async () => {
  let nowMs = 0;
  let response: () => Promise<string> = () => Promise.reject(new Error("no connection"));
  const watch = watchAuditVersion(
    () => response(),
    () => nowMs,
  );
  await watch.refresh();
  assert.equal(watch.current(), 1);
  response = async () => "0.5.0";
  nowMs += 5_000;
  assert.equal(watch.current(), 1);
  await Promise.resolve();
  await Promise.resolve();
  assert.equal(watch.current(), 2);
});
