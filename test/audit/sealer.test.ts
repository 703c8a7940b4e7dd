import assert from "node:assert/strict";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { setTimeout as afterMs, setImmediate as nextTurn } from "node:timers/promises";
import { createWatermark } from "../../src/audit/sealer.js";
import { generateKey } from "../../src/issuer/keys/key-generation.js";
import { rotateKey } from "../../src/issuer/keys/key-states.js";
import { unavailable } from "../../src/kernel/errors.js";
import type { Store } from "../../src/store/store.js";
import { spawn } from "../support/child-process.js";
import { startHarness } from "../support/harness.js";
import { mockTimeouts } from "../support/mock-timeouts.js";
import { scriptArguments } from "../support/project.js";
import { rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";
import { attack, auditRow, type Log, openLog } from "./log-kit.js";

const [acme, other] = [rootUid(0xa), rootUid(0xb)];
const rows = (count: number, root = acme) =>
  Array.from({ length: count }, (_, i) => auditRow(root, { requestId: `${i}` }));

/** The ids of the rows of a chain, in its order, after making sure that it is whole. */
async function chainOf(log: Log, root: string): Promise<number[]> {
  const { fault } = await log.verify(root);
  assert.equal(fault, undefined);
  const entries = await log.store.read((tx) => tx.auditChain.listEntries(root, 0, 100_000));
  assert.deepEqual(
    entries.map(({ seq }) => seq),
    entries.map((_, i) => i + 1),
  );
  return entries.map(({ auditId }) => auditId);
}

describe("the sealer", () => {
  test("gives each organisation, and what belongs to none, a chain in the order of the rows", async () => {
    const log = await openLog();
    await log.append(auditRow(acme), auditRow(""), auditRow(other), auditRow(acme), auditRow(""));
    const sealer = log.sealer({ batchRows: 2 });
    assert.equal(await sealer.pass(), 5);
    assert.equal(await sealer.pass(), 0);
    await log.append(auditRow(acme));
    assert.equal(await sealer.pass(), 1);
    assert.deepEqual(await chainOf(log, acme), [1, 4, 6]);
    assert.deepEqual(await chainOf(log, other), [3]);
    assert.deepEqual(await chainOf(log, ""), [2, 5]);
    assert.deepEqual(log.problems, []);
    await log.close();
  });

  test("goes on where another run stopped", async () => {
    const directory = tempDir();
    for (let run = 1; run <= 3; run++) {
      const log = await openLog(directory);
      await log.append(...rows(3));
      const sealer = log.sealer({ holder: `run ${run}` });
      await sealer.stop();
      assert.equal((await chainOf(log, acme)).length, 3 * run);
      await log.close();
    }
  });

  test("two passes at once are one", async () => {
    const log = await openLog();
    await log.append(...rows(4));
    const sealer = log.sealer();
    assert.deepEqual(await Promise.all([sealer.pass(), sealer.pass()]), [4, 4]);
    assert.equal((await chainOf(log, acme)).length, 4);
    await log.close();
  });

  test("one node seals while its lease lasts, and another takes over when it has not been heard of", async () => {
    let nowMs = 1_000_000;
    const first = await openLog(tempDir(), () => nowMs);
    const second = await openLog(first.directory, () => nowMs);
    const [one, two] = [first.sealer({ holder: "one" }), second.sealer({ holder: "two" })];
    const runBoth = async () => {
      await first.append(auditRow(acme));
      return [await two.pass(), await one.pass()];
    };
    await first.append(auditRow(acme));
    assert.equal(await one.pass(), 1);
    assert.deepEqual(await runBoth(), [0, 1]);
    nowMs += 2_999;
    assert.deepEqual(await runBoth(), [0, 1], "each batch renews the lease");
    nowMs += 3_000;
    assert.deepEqual(await runBoth(), [1, 0]);
    nowMs += 100;
    assert.deepEqual(await runBoth(), [1, 0]);
    await two.stop();
    await first.append(auditRow(acme));
    assert.equal(await one.pass(), 1, "and at once when it has stopped");
    assert.equal((await chainOf(first, acme)).length, 6);
    await Promise.all([first.close(), second.close()]);
  });

  test("a lease from a clock that was far ahead is ignored", async () => {
    const log = await openLog();
    const ahead = await openLog(log.directory, () => Date.now() + 3_600_000);
    await log.append(auditRow(acme));
    assert.equal(await ahead.sealer({ holder: "ahead" }).pass(), 1);
    await log.append(auditRow(acme));
    assert.equal(await log.sealer({ holder: "right" }).pass(), 1);
    await Promise.all([log.close(), ahead.close()]);
  });

  test("nodes that believe to have the lease both seal no row twice, and leave out none", async () => {
    const logs = [await openLog()];
    for (let i = 0; i < 2; i++) logs.push(await openLog(logs[0]?.directory));
    // The same name for all, so that the lease keeps none of them away.
    const sealers = logs.map((log) => log.sealer({ holder: "same", batchRows: 5 }));
    let sealed = 0;
    for (let round = 0; round < 15; round++) {
      const [writer] = logs;
      const counts = Promise.all(sealers.map((sealer) => sealer.pass()));
      await writer?.append(...rows(4), ...rows(3, other));
      for (const count of await counts) sealed += count;
    }
    for (const sealer of sealers) sealed += await sealer.pass();
    const [log] = logs;
    assert.ok(log);
    assert.equal(sealed, 15 * 7);
    assert.equal((await chainOf(log, acme)).length, 60);
    assert.equal((await chainOf(log, other)).length, 45);
    assert.deepEqual(
      logs.flatMap(({ problems }) => problems),
      [],
    );
    for (const each of logs) await each.close();
  });

  test("a row that is committed after one with a higher id is sealed after it", async () => {
    const log = await openLog();
    const store: Store = { ...log.store, lateCommitMs: 100_000 };
    let ms = 0;
    const sealer = log.sealer({ store, monotonic: () => ms });
    const appear = async (id: number) => {
      attack(
        log.directory,
        `INSERT INTO audit SELECT ${id}, root_uid, time_ms, type, method, '', '', '', '', '', 3, '', '', '', '' FROM audit LIMIT 1`,
      );
      // Reads of one tick share a snapshot.
      await nextTurn();
    };
    await log.append(auditRow(acme));
    await appear(9);
    assert.equal(await sealer.pass(), 2);
    ms = 99_999;
    await appear(4);
    assert.equal(await sealer.pass(), 1);
    await appear(7);
    ms = 100_000;
    assert.equal(await sealer.pass(), 1, "the reads of this very pass may be the first to see it");
    assert.deepEqual(await chainOf(log, acme), [1, 9, 4, 7]);
    // No commit takes that long, so the row was not written by the service.
    await appear(5);
    assert.equal(await sealer.pass(), 0);
    const { fault, unsealed } = await log.verify(acme);
    assert.equal(unsealed.rows, 1);
    assert.deepEqual(fault, { seq: 4, what: "row 5 was inserted: everything of its time is sealed, and it is not" });
    await log.close();
  });

  test("heads signed with a replaced key stay valid", async () => {
    const log = await openLog();
    await log.append(auditRow(acme));
    await log.sealer({ holder: "before" }).stop();
    const key = await generateKey("audit", log.masterKey, Date.now());
    await log.store.write((tx) => rotateKey(tx, key));
    const after = await openLog(log.directory);
    assert.equal(after.keys.getAuditSigningKey().kid, key.kid);
    assert.deepEqual(await chainOf(after, acme), [1]);
    await after.append(auditRow(acme));
    await after.sealer({ holder: "after" }).pass();
    assert.deepEqual(await chainOf(after, acme), [1, 2]);
    assert.equal(after.keys.findVerifyingKey(key.kid), undefined, "and none of them verifies tokens");
    await Promise.all([log.close(), after.close()]);
  });

  test("a chain that was reset while it runs is not continued; the problem is reported once, and other chains continue", async () => {
    const log = await openLog();
    let ms = 0;
    const sealer = log.sealer({ monotonic: () => ms, batchRows: 2 });
    await log.append(auditRow(acme));
    await sealer.pass();
    const old = await log.store.read((tx) => tx.auditChain.findHead(acme));
    assert.ok(old);
    await log.append(auditRow(acme));
    await sealer.pass();
    const latest = await log.store.read((tx) => tx.auditChain.findHead(acme));
    assert.ok(latest);
    await log.store.write((tx) => tx.auditChain.putHead(old));
    const cut = "DELETE FROM audit_chain WHERE seq = 2";
    attack(log.directory, "CREATE TABLE kept AS SELECT * FROM audit_chain WHERE seq = 2", cut);
    await log.append(...rows(5), ...rows(5, other));
    assert.equal(await sealer.pass(), 5);
    assert.equal(await sealer.pass(), 0);
    const why = "its head was replaced by an older one; run arbor audit verify";
    assert.deepEqual(log.problems, [`the audit log of ${acme} is sealed no further: ${why}`]);
    attack(log.directory, "INSERT INTO audit_chain SELECT * FROM kept", "DROP TABLE kept");
    await log.store.write((tx) => tx.auditChain.putHead(latest));
    ms += 10_000;
    assert.equal(await sealer.pass(), 5, "and once it is as it was, it goes on");
    assert.deepEqual(await chainOf(log, acme), [1, 2, 3, 4, 5, 6, 7]);
    await log.close();
  });

  test("a problem is reported once, until it seals again", async (t) => {
    mockTimeouts(t);
    const log = await openLog();
    let down = true;
    const read: Store["read"] = (unit, options) => {
      if (down) throw unavailable("the database cannot be reached");
      return log.store.read(unit, options);
    };
    const sealer = log.sealer({ store: { ...log.store, read } });
    const tick = async () => {
      // The longest pause after failures.
      t.mock.timers.tick(5_000);
      await nextTurn();
    };
    await log.append(auditRow(acme));
    sealer.start();
    for (let i = 0; i < 5; i++) await tick();
    const problem = "the audit log could not be sealed and will be tried again";
    assert.deepEqual(log.problems, [problem]);
    down = false;
    await tick();
    await sealer.pass();
    assert.deepEqual(await chainOf(log, acme), [1]);
    down = true;
    for (let i = 0; i < 5; i++) await tick();
    assert.deepEqual(log.problems, [problem, problem]);
    await sealer.stop();
    assert.deepEqual(log.problems, [problem, problem, "the audit log could not be sealed before the service stopped"]);
    await log.close();
  });

  test("kill -9 between two batches leaves whole chains, and the next run seals the rest", async () => {
    const directory = tempDir();
    for (let kill = 0; kill < 3; kill++) {
      const child = spawn(process.execPath, [...scriptArguments("test/audit/sealing-process.ts"), directory], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      let sealed = 0;
      for await (const line of createInterface({ input: child.stdout })) {
        sealed += Number(line);
        if (sealed > 40) break;
      }
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      const log = await openLog(directory);
      for (const root of ["", rootUid(1), rootUid(2)]) await chainOf(log, root);
      await log.close();
    }
    const log = await openLog(directory);
    await log.sealer().pass();
    for (const root of ["", rootUid(1), rootUid(2)]) {
      await chainOf(log, root);
      assert.equal((await log.verify(root)).unsealed.rows, 0);
    }
    assert.deepEqual(log.problems, []);
    await log.close();
  });

  test("in a service under load no row stays unsealed for a second, and none is left when it stops", async () => {
    const data = tempDir();
    const harness = await startHarness({ data });
    const { store } = harness.app.installation;
    const orgs = [await harness.organisation("acme.example"), await harness.organisation("other.example")];
    const end = Date.now() + 2_500;
    let [written, oldestMs] = [0, 0];
    const lane = async ({ group, token }: { readonly group: string; readonly token: string }) => {
      for (; Date.now() < end; written++) {
        const response = await fetch(`${harness.url}/iam/v2beta1/groups/${group}`, {
          method: "PATCH",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          body: JSON.stringify({ description: `change ${written}` }),
        });
        assert.equal(response.status, 200, await response.text());
      }
    };
    const watch = async () => {
      while (Date.now() < end) {
        const [oldest] = await store.read((tx) => tx.auditChain.listUnsealed(0, 1));
        if (oldest) oldestMs = Math.max(oldestMs, Date.now() - oldest.timeMs);
        await afterMs(20);
      }
    };
    try {
      await Promise.all([watch(), ...Array.from({ length: 16 }, (_, i) => lane(orgs[i % 2] ?? assert.fail()))]);
      assert.ok(written > 20, `${written} rows were written`);
      assert.ok(oldestMs < 1_000, `a row stayed unsealed for ${oldestMs} ms, of ${written}`);
    } finally {
      await harness.stop();
    }
    const log = await openLog(data);
    let sealed = 0;
    for (const { group } of orgs) {
      sealed += (await chainOf(log, group)).length;
      assert.equal((await log.verify(group)).unsealed.rows, 0);
    }
    assert.equal(sealed, written + orgs.length);
    await log.close();
  });
});

type Step = { readonly ms: number; readonly seen?: number; readonly settled: number };

const cases: readonly { name: string; lateMs: number; steps: readonly Step[] }[] = [
  {
    name: "nothing is settled before anything was seen",
    lateMs: 100_000,
    steps: [
      { ms: 0, settled: 0 },
      { ms: 1e9, settled: 0 },
    ],
  },
  {
    name: "where writers take turns, what is seen is settled",
    lateMs: 0,
    steps: [
      { ms: 5, seen: 3, settled: 3 },
      { ms: 5, seen: 4, settled: 4 },
      { ms: 6, seen: 2, settled: 4 },
    ],
  },
  {
    name: "an id is settled once the longest commit is over, and not a moment before",
    lateMs: 100_000,
    steps: [
      { ms: 10, seen: 7, settled: 0 },
      { ms: 100_009, settled: 0 },
      { ms: 100_010, settled: 7 },
    ],
  },
  {
    name: "each id has its own time",
    lateMs: 100_000,
    steps: [
      { ms: 0, seen: 7, settled: 0 },
      { ms: 50_000, seen: 9, settled: 0 },
      { ms: 100_000, settled: 7 },
      { ms: 149_999, settled: 7 },
      { ms: 150_000, settled: 9 },
    ],
  },
  {
    name: "ids seen within a second count from the end of it",
    lateMs: 100_000,
    steps: [
      { ms: 0, seen: 1, settled: 0 },
      { ms: 500, seen: 90, settled: 0 },
      { ms: 1_000, seen: 90, settled: 0 },
      { ms: 100_500, seen: 90, settled: 1 },
      { ms: 101_000, seen: 90, settled: 90 },
    ],
  },
  {
    name: "an id seen again does not begin anew",
    lateMs: 100_000,
    steps: [
      { ms: 0, seen: 5, settled: 0 },
      { ms: 60_000, seen: 5, settled: 0 },
      { ms: 100_000, seen: 5, settled: 5 },
      { ms: 300_000, seen: 5, settled: 5 },
    ],
  },
];

describe("the watermark", () => {
  for (const { name, lateMs, steps } of cases) {
    test(name, () => {
      const watermark = createWatermark(lateMs);
      for (const { ms, seen, settled } of steps) {
        if (seen !== undefined) watermark.observe(seen, ms);
        assert.equal(watermark.at(ms), settled, `at ${ms} ms`);
      }
    });
  }
});
