// Entries that were changed while no sealer ran: the next one does not build on them. The suite runs on both databases.
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildNextLink } from "../../src/audit/chain.js";
import { ROUND_MS, TAIL_ENTRIES } from "../../src/audit/continuation.js";
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

  const heads: readonly {
    readonly name: string;
    change(log: Log): Promise<readonly string[]>;
    readonly what: RegExp;
  }[] = [
    {
      name: "entries with hashes that were computed anew",
      change: (log) => computeAnew(log, 8),
      what: /its chain was computed anew/,
    },
    {
      name: "another signature of the head",
      change: async () => [
        `UPDATE audit_heads SET signature = substr(signature, 1, length(signature) - 8) || 'AAAAAAAA'`,
      ],
      what: /the signature of its head is wrong/,
    },
  ];
  for (const { name, change, what } of heads) {
    test(`${name}, changed while the sealer runs: the next round stops the chain until it is put right`, async () => {
      const { log, database, sealer, stopped, passMs } = await changeAtRest(10);
      const runFor = async (seconds: number) => {
        for (let second = 0; second < seconds; second++) {
          passMs(1_000);
          await sealer.pass();
        }
      };
      // The process remembers the head, as the one that it signed itself.
      await log.append(auditRow(acme));
      await runFor(5);
      assert.equal(await lastSeq(log), 11);
      const kept = await log.store.read(async (tx) => ({
        entries: await tx.auditChain.listEntries(acme, 0, 100),
        head: await tx.auditChain.findHead(acme),
      }));
      await database.attack(...(await change(log)));
      passMs(ROUND_MS);
      await runFor(5);
      assert.match(log.problems[0] ?? "", what);
      await log.append(auditRow(acme), auditRow(other));
      await runFor(30);
      assert.deepEqual([await lastSeq(log), await lastSeq(log, other)], [11, 1]);
      assert.deepEqual([log.problems.length, stopped.at(-1)], [1, 1]);

      await database.attack(
        `UPDATE audit SET actor_uid = 'actor' WHERE id = ${idOf(8)}`,
        ...kept.entries.map(({ seq, hash }) => setHash(seq, hash)),
        `UPDATE audit_heads SET signature = '${kept.head?.signature}' WHERE root_uid = '${acme}'`,
      );
      await runFor(15);
      assert.deepEqual([await lastSeq(log), stopped.at(-1)], [12, 0]);
      assert.equal((await log.verify(acme)).fault, undefined);
      await log.close();
    });
  }

  test("a chain that was put right is not counted any more, also without a row to seal", async () => {
    const { log, database, sealer, stopped, passMs } = await changeAtRest(
      10,
      `UPDATE audit SET actor_uid = 'somebody else' WHERE id = ${idOf(7)}`,
    );
    await sealer.pass();
    assert.equal(stopped.at(-1), 1);
    passMs(20_000);
    await sealer.pass();
    assert.equal(stopped.at(-1), 1);
    await database.attack(`UPDATE audit SET actor_uid = 'actor' WHERE id = ${idOf(7)}`);
    passMs(10_000);
    await sealer.pass();
    assert.equal(stopped.at(-1), 0);
    await log.close();
  });

  test("a process counts chains that it has stopped while it seals, and not while another one does", async () => {
    const { log, sealer: first } = await changeAtRest(
      10,
      `UPDATE audit SET actor_uid = 'nobody' WHERE id = ${idOf(7)}`,
    );
    await first.stop();
    const counts = new Map<string, number>();
    let ms = 0;
    const monotonic = () => ms;
    // No lease ends by itself during the test.
    const start = (holder: string) =>
      log.sealer({ holder, leaseMs: 60_000, monotonic, onStopped: (chains) => counts.set(holder, chains) });
    const [one, two] = [start("one"), start("two")];
    await log.append(auditRow(acme));
    await one.pass();
    await two.pass();
    assert.deepEqual([counts.get("one"), counts.get("two")], [1, 0]);
    await one.stop();
    await two.pass();
    await one.pass();
    assert.deepEqual([counts.get("one"), counts.get("two")], [0, 1]);
    await two.stop();
    ms += 10_000;
    await one.pass();
    assert.equal(counts.get("one"), 1, "it seals again");
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

const setHash = (seq: number, hash: string) =>
  `UPDATE audit_chain SET hash = '${hash}' WHERE root_uid = '${acme}' AND seq = ${seq}`;

/** Changes the row of an entry, and computes its hash and all after it, as somebody without the key can. */
async function computeAnew(log: Log, changed: number): Promise<readonly string[]> {
  const entries = await log.store.read((tx) => tx.auditChain.listEntries(acme, changed - 2, 100));
  const [before, ...after] = entries;
  assert.ok(before);
  let link = { seq: before.seq, hash: before.hash };
  const statements = [`UPDATE audit SET actor_uid = 'somebody else' WHERE id = ${idOf(changed)}`];
  for (const { seq, row } of after) {
    assert.ok(row);
    link = buildNextLink(link, seq === changed ? { ...row, actorUid: "somebody else" } : row);
    statements.push(setHash(seq, link.hash));
  }
  return statements;
}

function lastSeq(log: Log, root = acme): Promise<number> {
  return log.store.read((tx) => tx.auditChain.lastSeq(root));
}

async function appendMany(log: Log, count: number): Promise<void> {
  await log.store.write(async (tx) => {
    for (let i = 0; i < count; i++) await tx.audit.append(auditRow(acme, { requestId: `${i}`, body: BODY }));
  });
}
