// What the registry reported is forgotten after 30 days, so that its tables do not grow without end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createJobs } from "../../src/jobs/jobs.js";
import { createEventSweep } from "../../src/registry/oci/notification-routes.js";
import { tagKind } from "../../src/store/registry/tags.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { childUid, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";

const DAY_MS = 24 * 3_600_000;

test("events and marks of deleted tags older than 30 days are deleted, all of them", async (t) => {
  const nowMs = 100 * DAY_MS;
  const store = openSqlite({ directory: tempDir(), clock: () => nowMs });
  t.after(() => store.close());
  const repo = childUid(rootUid(1), 1);
  await store.write(async (tx) => {
    for (let i = 0; i < 1_001; i++) await tx.registry.recordEvent(`old ${i}`, nowMs - 30 * DAY_MS - 1);
    await tx.registry.recordEvent("recent", nowMs - 30 * DAY_MS);
    await tx.table(tagKind).putMark(repo, "old", nowMs - 30 * DAY_MS - 1);
    await tx.table(tagKind).putMark(repo, "recent", nowMs - 30 * DAY_MS);
  });
  const jobs = createJobs({ store, holder: "node", onProblem: (problem) => assert.fail(problem) });
  jobs.add(createEventSweep(() => nowMs));
  assert.equal(await jobs.runNow("registry-events"), 1_001);
  await store.write(async (tx) => {
    assert.deepEqual(
      [await tx.registry.recordEvent("old 7", nowMs), await tx.registry.recordEvent("recent", nowMs)],
      [true, false],
    );
    assert.equal(await tx.table(tagKind).findMark(repo, "old"), undefined);
    assert.equal(await tx.table(tagKind).findMark(repo, "recent"), nowMs - 30 * DAY_MS);
  });
});
