// Entries that were changed while no sealer ran: the next one does not build on them. The suite runs on both databases.
import assert from "node:assert/strict";
import { test } from "node:test";
import { TAIL_ENTRIES } from "../../src/audit/continuation.js";
import type { Store } from "../../src/store/store.js";
import { rootUid } from "../support/rows.js";
import { auditRow, BODY, type Log, openLog } from "./log-kit.js";

/** A database of the suite, while no sealer runs. */
export interface ChangedDatabase {
  /** Opens it, as the next process does. */
  open(): Promise<Store>;
  /** Changes it directly. */
  attack(...statements: readonly string[]): Promise<void>;
}

const [acme, other] = [rootUid(0xa), rootUid(0xb)];
/** More than what is verified at once. */
const LONG = TAIL_ENTRIES + 100;

const attacks: readonly { readonly name: string; readonly sql: (seq: number) => string; readonly what: RegExp }[] = [
  {
    name: "a row is changed",
    sql: (seq) => `UPDATE audit SET actor_uid = 'somebody else' WHERE id = ${idOf(seq)}`,
    what: /row \d+ is not what was sealed here/,
  },
  {
    name: "a body is changed",
    sql: (seq) => `UPDATE audit SET body = '{"after":{}}' WHERE id = ${idOf(seq)}`,
    what: /row \d+ has another body than was sealed/,
  },
  {
    name: "a row is removed",
    sql: (seq) => `DELETE FROM audit WHERE id = ${idOf(seq)}`,
    what: /row \d+ was removed/,
  },
  {
    name: "a row is removed with its entry",
    sql: (seq) => `DELETE FROM audit_chain WHERE root_uid = '${acme}' AND seq = ${seq}`,
    what: /the entry is missing/,
  },
  {
    name: "a hash is changed",
    sql: (seq) => `UPDATE audit_chain SET hash = '${"A".repeat(43)}' WHERE root_uid = '${acme}' AND seq = ${seq}`,
    what: /row \d+ is not what was sealed here/,
  },
];

const idOf = (seq: number) => `(SELECT audit_id FROM audit_chain WHERE root_uid = '${acme}' AND seq = ${seq})`;

/**
 * Adds the tests.
 *
 * @param createDatabase creates a database and the directory of its master key
 */
export function testContinuation(
  createDatabase: () => Promise<{ directory: string; database: ChangedDatabase }>,
): void {
  /** Seals `count` entries, changes one of them while nothing runs, and opens the log again. */
  async function changeAtRest(count: number, ...statements: readonly string[]) {
    const { directory, database } = await createDatabase();
    const before = await openLog(directory, Date.now, await database.open());
    await appendMany(before, count);
    const sealer = before.sealer({ holder: "before" });
    while ((await lastSeq(before)) < count) await sealer.pass();
    await sealer.stop();
    await before.close();
    await database.attack(...statements);
    const stopped: number[] = [];
    const log = await openLog(directory, Date.now, await database.open());
    let ms = 0;
    const next = log.sealer({ holder: "after", monotonic: () => ms, onStopped: (chains) => stopped.push(chains) });
    const passMs = (more: number) => {
      ms += more;
    };
    return { log, database, sealer: next, stopped, passMs };
  }

  for (const { name, sql, what } of attacks) {
    test(`${name} among the last entries: the chain is not continued, and others are`, async () => {
      const { log, sealer, stopped } = await changeAtRest(10, sql(7));
      await log.append(auditRow(acme), auditRow(other));
      assert.equal(await sealer.pass(), 1);
      assert.deepEqual([await lastSeq(log), await lastSeq(log, other)], [10, 1]);
      assert.equal(log.problems.length, 1);
      assert.match(log.problems[0] ?? "", new RegExp(`the audit log of ${acme} is sealed no further: entry \\d+: `));
      assert.match(log.problems[0] ?? "", what);
      assert.equal(stopped.at(-1), 1);
      await log.close();
    });
  }

  test("the chain of an entry that is far from the end is stopped by the background", async () => {
    const { log, sealer, stopped, passMs } = await changeAtRest(LONG, attacks[0]?.sql(3) ?? "");
    // What is verified before a chain is continued has no fault.
    await log.append(auditRow(acme));
    assert.equal(await sealer.pass(), 1);
    for (let runs = 0; log.problems.length === 0; runs++) {
      assert.ok(runs < LONG, "the background found nothing");
      passMs(1_000);
      await sealer.pass();
    }
    assert.match(log.problems[0] ?? "", /is sealed no further: entry 3: row \d+ is not what was sealed here/);
    await log.append(auditRow(acme), auditRow(other));
    assert.equal(await sealer.pass(), 1);
    assert.deepEqual([await lastSeq(log), await lastSeq(log, other)], [LONG + 1, 1]);
    assert.equal(stopped.at(-1), 1);
    await log.close();
  });

  test("a chain whose entry was put back goes on", async () => {
    const { log, database, sealer, passMs } = await changeAtRest(
      10,
      `UPDATE audit SET actor_uid = 'somebody else' WHERE id = ${idOf(7)}`,
    );
    await log.append(auditRow(acme));
    assert.equal(await sealer.pass(), 0);
    await database.attack(`UPDATE audit SET actor_uid = 'actor' WHERE id = ${idOf(7)}`);
    passMs(10_000);
    assert.equal(await sealer.pass(), 1);
    assert.equal((await log.verify(acme)).fault, undefined);
    await log.close();
  });

  for (const count of [1, 10, LONG]) {
    test(`control: a log of ${count} entries that nobody changed goes on, and the background ends`, async () => {
      const { log, sealer, passMs, stopped } = await changeAtRest(count);
      await log.append(auditRow(acme), auditRow(other));
      assert.equal(await sealer.pass(), 2);
      for (let runs = 0; runs < 30; runs++) {
        passMs(1_000);
        await sealer.pass();
      }
      assert.deepEqual([log.problems, stopped.at(-1) ?? 0], [[], 0]);
      assert.equal(await lastSeq(log), count + 1);
      await log.close();
    });
  }
}

function lastSeq(log: Log, root = acme): Promise<number> {
  return log.store.read((tx) => tx.auditChain.lastSeq(root));
}

async function appendMany(log: Log, count: number): Promise<void> {
  await log.store.write(async (tx) => {
    for (let i = 0; i < count; i++) await tx.audit.append(auditRow(acme, { requestId: `${i}`, body: BODY }));
  });
}
