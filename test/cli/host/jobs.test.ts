// `arbor admin jobs list` beside a server that runs.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand } from "../../support/command.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { tempDir } from "../../support/temp-dir.js";

const NAMES = [
  ...[
    "audit-sealer",
    "directory-rights",
    "ended-bindings",
    "event-dead-letters",
    "event-delivery",
    "expired-rows",
    "identity-deletion",
    "key-rotation",
  ],
  "registry-events",
];
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

const data = tempDir();
let harness: Harness;
before(async () => {
  harness = await startHarness({ data });
  const { store } = harness.app.installation;
  const listRecorded = async () => (await store.read((tx) => tx.jobs.list())).filter((row) => row.startTimeMs !== null);
  for (let tries = 0; (await listRecorded()).length < NAMES.length; tries++) {
    assert.ok(tries < 500, "not every job has run");
    await sleep(10);
  }
});
after(() => harness.stop());

const list = (...flags: readonly string[]) => runCommand(["admin", "jobs", "list", "--data", data, ...flags]);

describe("arbor admin jobs list", () => {
  it("shows each job of the server with its leader and its last run", async () => {
    const { code, stdout, stderr } = await list("--json");
    assert.deepEqual([code, stderr], [0, ""]);
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      rows.map(({ name }) => name),
      NAMES,
    );
    for (const { name, leader, fence, lastRunTime, durationMs, changes, nextRunTime, ...rest } of rows) {
      assert.match(String(leader), new RegExp(`-${process.pid}-[0-9a-f]{8}$`), `${name}`);
      assert.equal(fence, 1);
      assert.match(String(lastRunTime), TIME);
      assert.match(String(nextRunTime), TIME);
      assert.equal(typeof durationMs, "number");
      assert.equal(typeof changes, "number");
      assert.deepEqual({ ...rest, leased: true }, { failures: 0, lastError: null, lastErrorTime: null, leased: true });
    }
    assert.equal(new Set(rows.map(({ leader }) => leader)).size, 1);
  });

  it("prints a table, in which an error cannot act upon the terminal", async () => {
    const { store } = harness.app.installation;
    await store.write(async (tx) => {
      const row = (await tx.jobs.find("expired-rows")) ?? assert.fail();
      await tx.jobs.put({
        ...row,
        failures: 2,
        changes: null,
        error: "\u001b[31mno disk",
        errorTimeMs: 1_763_675_334_123,
      });
    });
    const { stdout } = await list();
    const [header = "", ...rows] = stdout.trimEnd().split("\n");
    assert.match(header, /^JOB +LAST RUN +TOOK +CHANGES +NEXT RUN +FAILURES +LAST ERROR +LEADER$/);
    assert.equal(rows.length, NAMES.length);
    const failed = rows.find((row) => row.startsWith("expired-rows"));
    assert.match(failed ?? "", / - +\S+Z +2 +2025-11-20T21:48:54\.123Z \\u001b\[31mno disk +\S+$/);
  });
});
