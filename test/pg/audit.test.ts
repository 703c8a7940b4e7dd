// The audit log with concurrent writers. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import pg from "pg";
import { groupKind } from "../../src/store/iam/groups.js";
import { openPg } from "../../src/store/pg/open.js";
import { checkpointAttacksSuite } from "../audit/checkpoint-attacks-suite.js";
import { auditRow, type Log, openLog } from "../audit/log-kit.js";
import { retentionSuite } from "../audit/retention-suite.js";
import { versionsSuite } from "../audit/versions-suite.js";
import { groupRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";
import { newDatabase, withClient } from "./databases.js";

const root = rootUid(0xa);

versionsSuite("versions of audit rows on PostgreSQL", async () => {
  const url = await newDatabase();
  const log = await openLog(tempDir(), Date.now, await openPg({ url }));
  return { log, execute: (statement) => withClient(url, async (client) => void (await client.query(statement))) };
});

const INSERT =
  "INSERT INTO audit (root_uid, time_ms, type, method, subject_uid, actor_uid, token_id, request_id, remote_address) " +
  `VALUES ('${root}', 1, 'late', '', '', '', '', '', '')`;

async function nodes(count: number): Promise<{ url: string; logs: Log[]; close: () => Promise<void> }> {
  const [url, directory] = [await newDatabase(), tempDir()];
  const logs: Log[] = [];
  for (let i = 0; i < count; i++) logs.push(await openLog(directory, Date.now, await openPg({ url })));
  const close = async () => {
    for (const log of logs) await log.close();
  };
  return { url, logs, close };
}

async function typesOf(log: Log, of = root): Promise<(string | undefined)[]> {
  const { fault } = await log.verify(of);
  assert.equal(fault, undefined);
  const entries = await log.store.read((tx) => tx.auditChain.listEntries(of, 0, 100_000));
  return entries.map(({ row }) => row?.type);
}

describe("the audit log on PostgreSQL", () => {
  test("a row committed after one with a higher id is sealed after it", async (t) => {
    const { url, logs, close } = await nodes(1);
    t.after(close);
    const [log] = logs;
    assert.ok(log);
    const late = new pg.Client({ connectionString: url });
    await late.connect();
    await late.query("BEGIN");
    await late.query(INSERT);
    await log.append(auditRow(root, { type: "early" }));
    const sealer = log.sealer();
    assert.equal(await sealer.pass(), 1);
    assert.equal(await sealer.pass(), 0);
    await late.query("COMMIT");
    await late.end();
    assert.equal(await sealer.pass(), 1);
    assert.deepEqual(await typesOf(log), ["early", "late"]);
    const ids = await log.store.read((tx) => tx.auditChain.listEntries(root, 0, 10));
    assert.ok((ids[0]?.auditId ?? 0) > (ids[1]?.auditId ?? 0));
  });

  test("a row whose transaction failed is not waited for", async (t) => {
    const { logs, close } = await nodes(1);
    t.after(close);
    const [log] = logs;
    assert.ok(log);
    const failed = log.store.write(async (tx) => {
      await tx.audit.append(auditRow(root));
      throw new RangeError("no");
    });
    await assert.rejects(failed, RangeError);
    await log.append(auditRow(root, { type: "next" }));
    assert.equal(await log.sealer().pass(), 1);
    assert.deepEqual(await typesOf(log), ["next"]);
  });

  test("several nodes that write and seal at once seal every row once, and make no writer run again", async (t) => {
    const { logs, close } = await nodes(2);
    t.after(close);
    const [ROUNDS, LANES] = [25, 8];
    // Both have the same holder name, so that the lease excludes neither and they conflict at every batch.
    const sealers = logs.map((log) => log.sealer({ holder: "same", batchRows: 16 }));
    let [units, sealed] = [0, 0];
    let writing = true;
    const groups = Array.from({ length: LANES }, (_, i) => rootUid(i + 1));
    for (const group of groups) await logs[0]?.store.write((tx) => tx.table(groupKind).insert(groupRow(group)));
    const write = async (log: Log, group: string) => {
      for (let i = 0; i < ROUNDS; i++) {
        await log.store.write(async (tx) => {
          units++;
          await tx.table(groupKind).find(group);
          await tx.audit.append(auditRow(i % 2 ? group : root));
        });
      }
    };
    const seal = async (sealer: (typeof sealers)[number]) => {
      while (writing) {
        // `sealed += await` would add to the value from before, and lose what the other one added meanwhile.
        const rows = await sealer.pass();
        sealed += rows;
      }
    };
    const sealing = Promise.all(sealers.map(seal));
    await Promise.all(groups.map((group, i) => write(logs[i % 2] ?? assert.fail(), group)));
    writing = false;
    await sealing;
    for (const sealer of sealers) sealed += await sealer.pass();
    assert.equal(units, ROUNDS * LANES, "writes by units that ran");
    assert.equal(sealed, ROUNDS * LANES);
    const [log] = logs;
    assert.ok(log);
    assert.equal((await typesOf(log)).length, Math.ceil(ROUNDS / 2) * LANES);
    for (const group of groups) assert.equal((await typesOf(log, group)).length, Math.floor(ROUNDS / 2));
    assert.deepEqual(
      logs.flatMap(({ problems }) => problems),
      [],
    );
  });

  test("a node that stopped hands over at once", async (t) => {
    const { logs, close } = await nodes(2);
    t.after(close);
    const [one, two] = logs.map((log, i) => log.sealer({ holder: `node ${i}` }));
    const [log] = logs;
    assert.ok(log && one && two);
    const next = async () => {
      await log.append(auditRow(root));
      return [await two.pass(), await one.pass()];
    };
    await log.append(auditRow(root));
    assert.equal(await one.pass(), 1);
    assert.deepEqual(await next(), [0, 1]);
    await one.stop();
    assert.deepEqual(await next(), [1, 0]);
    assert.equal((await typesOf(log)).length, 3);
  });
});

retentionSuite("retention on PostgreSQL", async (clock) => {
  return openLog(tempDir(), clock, await openPg({ url: await newDatabase(), clock }));
});

checkpointAttacksSuite("checkpoints on PostgreSQL, attacked", async (clock) => {
  const url = await newDatabase();
  const log = await openLog(tempDir(), clock, await openPg({ url, clock }));
  return {
    log,
    async execute(...statements) {
      await withClient(url, async (client) => {
        for (const statement of statements) await client.query(statement);
      });
    },
  };
});
