// What operators see of retention: on the host, of a service, and after a service was killed.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { before, describe, test } from "node:test";
import { setTimeout as afterMs } from "node:timers/promises";
import { type Host, startHost, startService } from "../e2e/process.js";
import { spawn } from "../support/child-process.js";
import { scriptArguments } from "../support/project.js";
import { rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";
import { attack, auditRow, openLog } from "./log-kit.js";

const TIME = "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z";
const DAY_MS = 86_400_000;
const root = rootUid(0xa);

/** Appends rows of the last ten days, one for each, and seals them. */
async function fill(data: string, rows: number, ageMs: (i: number) => number): Promise<void> {
  const log = await openLog(data);
  const nowMs = Date.now();
  await log.store.write(async (tx) => {
    for (let i = 0; i < rows; i++) await tx.audit.append(auditRow(root, { timeMs: nowMs - ageMs(i) }));
  });
  await log.sealer({ batchRows: 1_000 }).stop();
  await log.close();
}

describe("arbor audit and arbor check of a log whose beginning was deleted", () => {
  const data = tempDir();
  let host: Host;
  before(async () => {
    host = startHost();
    await host.bootstrap(data, "acme.example");
    await fill(data, 10, (i) => (10 - i) * DAY_MS - 60_000);
    const log = await openLog(data);
    assert.equal(await log.retention(7 * DAY_MS).pass(), 3);
    await log.close();
  });
  const run = (...args: readonly string[]) => host.run([...args, "--data", data]);

  test("verify says from when", async () => {
    const { code, stdout } = await run("audit", "verify", "--root", root);
    const line = `^${root}: 7 sealed rows after entry 3 of ${TIME}, head signed ${TIME}, 0 unsealed\n$`;
    assert.match(stdout, new RegExp(line));
    assert.equal(code, 0);
  });

  test("the export begins with the checkpoint", async () => {
    const { code, stdout } = await run("audit", "export", "--root", root);
    assert.equal(code, 0);
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual([lines.length, lines[0].checkpoint.seq, lines[1].seq, lines[8].head.seq], [9, 3, 4, 10]);
  });

  test("check finds nothing, and a checkpoint that is gone", async () => {
    const sound = await run("check");
    assert.match(sound.stdout, /^audit log: sound$/m);
    attack(data, "CREATE TABLE kept AS SELECT * FROM audit_checkpoints", "DELETE FROM audit_checkpoints");
    const [check, verify] = [await run("check"), await run("audit", "verify")];
    attack(data, "INSERT INTO audit_checkpoints SELECT * FROM kept", "DROP TABLE kept");
    const what = "the entry is missing, the next one is 4";
    assert.ok(check.stdout.includes(`audit_chain ${root}, seq 1: ${what}`), check.stdout);
    assert.deepEqual([check.code, verify.code], [1, 1]);
    assert.ok(verify.stderr.includes(`${root}: seq 1: ${what}`), verify.stderr);
    assert.equal((await run("audit", "verify")).code, 0);
  });

  test("a service with too short a retention does not start", async () => {
    await assert.rejects(startService(data, "--audit-retention", "23h"), /audit-retention.*1d to 36500d/);
  });

  test("a service deletes what is older", async () => {
    forgetRun();
    const service = await startService(data, "--audit-retention", "2d", "--log-level", "error");
    await waitForJob();
    const { stdout, stderr } = await service.stop();
    assert.doesNotMatch(stdout + stderr, /audit log/);
    assert.match((await run("audit", "verify", "--root", root)).stdout, /: 2 sealed rows after entry 8 /);
  });

  // The job is due again an hour after its last run.
  function forgetRun(): void {
    attack(data, "DELETE FROM jobs WHERE name = 'audit-retention'");
  }

  async function waitForJob(): Promise<void> {
    let found = "";
    for (let tries = 0; tries < 100 && !new RegExp(`^audit-retention .*${TIME}.*${TIME}`, "m").test(found); tries++) {
      await afterMs(50);
      found = (await run("admin", "jobs", "list")).stdout;
    }
    const [row] = /^audit-retention .*$/m.exec(found) ?? assert.fail(found);
    assert.match(row, new RegExp(TIME));
  }
});

test("kill -9 between batches leaves no half of one, and the next run deletes the rest", async () => {
  const ROWS = 1_200;
  const directory = tempDir();
  await fill(directory, ROWS, () => 2 * DAY_MS);
  let deleted = 0;
  for (let kill = 0; kill < 3; kill++) {
    const child = spawn(process.execPath, [...scriptArguments("test/audit/retention-process.ts"), directory], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let batches = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      assert.notEqual(line, "end", "it was killed too late");
      if (++batches > 30) break;
    }
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    const log = await openLog(directory);
    const { fault, checkpoint, sealed } = await log.verify(root);
    const seq = checkpoint?.seq ?? 0;
    assert.equal(fault, undefined);
    assert.ok(seq > deleted, "it deleted something");
    assert.equal(seq % 4, 0);
    const { length } = await log.store.read((tx) => tx.audit.listNewest(10_000, root));
    assert.deepEqual([sealed, length], [ROWS - seq, ROWS - seq]);
    deleted = seq;
    await log.close();
  }
  const log = await openLog(directory);
  assert.equal(await log.retention(DAY_MS).pass(), ROWS - 1 - deleted);
  assert.equal((await log.verify(root)).fault, undefined);
  await log.close();
});
