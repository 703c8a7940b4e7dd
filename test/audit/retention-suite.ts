// Retention of the audit log and its checkpoints, on either store.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { readState, redeliverSince, resume, suspend } from "../../src/events/delivery/control.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { subscriptionKind } from "../../src/store/iam/subscriptions.js";
import type { Store } from "../../src/store/store.js";
import type { StoredAuditRow } from "../../src/store/tables/audit.js";
import type { Tx } from "../../src/store/transaction.js";
import { groupRow, rootUid } from "../support/rows.js";
import { chooseScale } from "../support/scale.js";
import { auditRow, BODY, type Log } from "./log-kit.js";

const [acme, other] = [rootUid(0xa), rootUid(0xb)];
const DAY_MS = 86_400_000;

/** Registers the tests. `open` opens an empty log with a clock that the tests set. */
export function retentionSuite(name: string, open: (clock: () => number) => Promise<Log>): void {
  // In the past: the job also asks the clock of the database, which tests cannot set everywhere.
  const nowMs = Date.now() - 60_000;

  async function openSealed(...ages: readonly [root: string, ageMs: number][]): Promise<Log> {
    const log = await open(() => nowMs);
    await log.append(...ages.map(([root, ageMs]) => auditRow(root, { timeMs: nowMs - ageMs })));
    await log.sealer().stop();
    return log;
  }

  const countRows = async (log: Log, root: string) =>
    (await log.store.read((tx) => tx.audit.listNewest(100_000, root))).length;
  const seqsOf = async (log: Log, root: string) =>
    (await log.store.read((tx) => tx.auditChain.listEntries(root, 0, 100_000))).map(({ seq }) => seq);

  describe(name, () => {
    test("bodies go with their rows, and nothing is deleted of a log with a body that was changed", async (t) => {
      const log = await open(() => nowMs);
      t.after(() => log.close());
      const days = [9, 8, 1];
      for (const root of [acme, other]) {
        await log.append(...days.map((age) => auditRow(root, { timeMs: nowMs - age * DAY_MS, body: BODY })));
      }
      await log.sealer().stop();
      const changed: Store = {
        ...log.store,
        read: (unit, options) =>
          log.store.read((tx) => {
            const audit = Object.assign(Object.create(tx.audit), {
              async readBodies(rows: readonly StoredAuditRow[]) {
                const bodies = new Map(await tx.audit.readBodies(rows));
                for (const row of rows) if (row.rootUid === other) bodies.set(row.id, `${BODY} `);
                return bodies;
              },
            });
            return unit(new Proxy(tx, { get: (of, key) => (key === "audit" ? audit : Reflect.get(of, key, of)) }));
          }, options),
      };
      assert.equal(await log.retention(5 * DAY_MS, { store: changed }).pass(), 2);
      const what = "row \\d+ has another body than was sealed";
      assert.match(
        log.problems.join(),
        new RegExp(`^no old rows of the audit log of ${other} are deleted: seq 1: ${what}`),
      );
      const rows = await log.store.read((tx) => tx.audit.listNewest(100));
      assert.deepEqual(
        rows.map(({ rootUid, bodyBytes }) => [rootUid, bodyBytes]),
        [other, other, other, acme].map((root) => [root, Buffer.byteLength(BODY)]),
      );
      assert.equal((await log.verify(acme)).fault, undefined);
    });

    test("rows that a subscription has still to deliver stay, until it is suspended, which it learns then", async (t) => {
      const log = await openSealed(...[9, 8, 7, 6, 1].map((days): [string, number] => [acme, days * DAY_MS]));
      t.after(() => log.close());
      const uid = `${acme}/${"1".repeat(16)}`;
      await log.store.write(async (tx) => {
        await tx.table(groupKind).insert(groupRow(acme));
        const times = { createTimeMs: nowMs, updateTimeMs: nowMs };
        await tx.table(subscriptionKind).insert({ uid, groupUid: acme, sink: "https://a.example/", ...times });
        await tx.eventPositions.begin(uid, acme, 3);
        await tx.eventDeliveries.put({
          ...{ subscriptionUid: uid, seq: 2, subjectUid: acme, sinceMs: nowMs, nextTimeMs: nowMs, deadTimeMs: null },
          ...{ attempts: 1, lastTimeMs: nowMs, lastStatus: 500, lastError: "status 500" },
        });
      });
      const retention = log.retention(5 * DAY_MS);
      // The second waits for another attempt.
      assert.equal(await retention.pass(), 1);
      assert.deepEqual(await seqsOf(log, acme), [2, 3, 4, 5]);
      await log.store.write((tx) => tx.eventDeliveries.delete(uid, 2));
      assert.equal(await retention.pass(), 2);
      assert.deepEqual(await seqsOf(log, acme), [4, 5]);
      await log.store.write((tx) => suspend(tx, uid));
      assert.equal(await retention.pass(), 1);
      await assert.rejects(async () => log.store.write((tx) => resume(tx, uid, nowMs)), {
        message: /the audit log no longer has the next event/,
      });
      await assert.rejects(async () => log.store.write((tx) => redeliverSince(tx, uid, nowMs - 7 * DAY_MS, nowMs)), {
        message: /the audit log no longer has all events since that time/,
      });
      const since = nowMs - 2 * DAY_MS;
      assert.equal(await log.store.write((tx) => redeliverSince(tx, uid, since, nowMs)), 4);
      const state = await log.store.read((tx) => readState(tx, uid));
      assert.deepEqual([state.state, state.seq, state.headSeq], ["live", 4, 5]);
    });

    test("old rows go with their entries, and what is left verifies and says from when", async (t) => {
      const ages = [9, 8, 7, 2, 1].map((days): [string, number] => [acme, days * DAY_MS]);
      const log = await openSealed(...ages, [other, 9 * DAY_MS], [other, DAY_MS], ["", 9 * DAY_MS], ["", DAY_MS]);
      t.after(() => log.close());
      const before = await log.verify(acme);
      assert.deepEqual([before.sealed, before.checkpoint, before.fault], [5, undefined, undefined]);
      assert.equal(await log.retention(5 * DAY_MS).pass(), 5);
      for (const [root, first, left] of [
        [acme, 4, 2],
        [other, 2, 1],
        ["", 2, 1],
      ] as const) {
        const { sealed, checkpoint, fault, unsealed } = await log.verify(root);
        assert.deepEqual([fault, sealed, unsealed.rows], [undefined, left, 0]);
        assert.deepEqual([checkpoint?.rootUid, checkpoint?.seq, checkpoint?.timeMs], [root, first - 1, nowMs]);
        assert.equal(await countRows(log, root), left);
        assert.equal((await seqsOf(log, root))[0], first);
      }
      assert.equal((await log.verify(acme)).checkpoint?.entryTimeMs, nowMs - 7 * DAY_MS);
      // The chain goes on, and so does retention, from one checkpoint to the next.
      await log.append(auditRow(acme, { timeMs: nowMs }));
      await log.sealer().stop();
      assert.equal(await log.retention(1.5 * DAY_MS).pass(), 1);
      const { sealed, checkpoint, fault } = await log.verify(acme);
      assert.deepEqual([sealed, checkpoint?.seq, fault], [2, 4, undefined]);
      assert.deepEqual(log.problems, []);
    });

    test("a row exactly at the limit is kept, one that is a millisecond older is not", async (t) => {
      const log = await openSealed([acme, DAY_MS + 1], [acme, DAY_MS], [acme, DAY_MS - 1]);
      t.after(() => log.close());
      assert.equal(await log.retention(DAY_MS).pass(), 1);
      assert.deepEqual(await seqsOf(log, acme), [2, 3]);
    });

    test("only the beginning of a chain goes: an old row after a newer one stays", async (t) => {
      const log = await openSealed([acme, 9 * DAY_MS], [acme, 1], [acme, 9 * DAY_MS], [acme, 0]);
      t.after(() => log.close());
      assert.equal(await log.retention(DAY_MS).pass(), 1);
      assert.deepEqual(await seqsOf(log, acme), [2, 3, 4]);
      assert.equal((await log.verify(acme)).fault, undefined);
    });

    test("the last sealed row and unsealed rows stay, whatever their age", async (t) => {
      const log = await openSealed([acme, 9 * DAY_MS], [acme, 8 * DAY_MS]);
      t.after(() => log.close());
      await log.append(auditRow(acme, { timeMs: 1 }), auditRow(other, { timeMs: 1 }));
      const retention = log.retention(DAY_MS);
      assert.deepEqual([await retention.pass(), await retention.pass()], [1, 0]);
      const { rootUids } = await log.store.read((tx) => tx.auditCheckpoints.findOld(nowMs));
      assert.deepEqual(rootUids, [], "the chain is not read again");
      assert.deepEqual([await countRows(log, acme), await countRows(log, other)], [2, 1]);
      await log.sealer().stop();
      const { sealed, unsealed, fault } = await log.verify(acme);
      assert.deepEqual([sealed, unsealed.rows, fault], [2, 0, undefined]);
    });

    test("a clock that is ahead of that of the database deletes nothing more", async (t) => {
      const log = await openSealed([acme, 2 * DAY_MS], [acme, 0], [acme, 0]);
      t.after(() => log.close());
      assert.equal(await log.retention(DAY_MS, { clock: () => nowMs + 9_000 * DAY_MS }).pass(), 1);
      assert.deepEqual(await seqsOf(log, acme), [2, 3]);
    });

    test("all organisations are searched, some at once", async (t) => {
      const log = await open(() => nowMs);
      t.after(() => log.close());
      const roots = ["", ...Array.from({ length: 600 }, (_, i) => rootUid(i + 1))];
      await log.store.write(async (tx) => {
        for (const root of [...roots, ...roots]) await tx.audit.append(auditRow(root, { timeMs: nowMs - 9 * DAY_MS }));
      });
      const sealer = log.sealer();
      while ((await sealer.pass()) > 0);
      const found: string[] = [];
      let parts = 0;
      for (let after: string | undefined; parts === 0 || after !== undefined; parts++) {
        const part = await log.store.read((tx) => tx.auditCheckpoints.findOld(nowMs, after));
        found.push(...part.rootUids);
        after = part.next;
      }
      assert.deepEqual([parts, found], [2, roots]);
      const none = await log.store.read((tx) => tx.auditCheckpoints.findOld(nowMs - 9 * DAY_MS));
      assert.deepEqual(none.rootUids, []);
    });

    test("a transaction that fails at its end deletes nothing", async (t) => {
      const log = await openSealed([acme, 9 * DAY_MS], [acme, 8 * DAY_MS], [acme, 0]);
      t.after(() => log.close());
      let deleted = 0;
      const failing = withCheckpoints(log.store, (checkpoints) => ({
        find: (root: string) => checkpoints.find(root),
        findOld: (beforeMs: number, after?: string) => checkpoints.findOld(beforeMs, after),
        async deleteEntries(root: string, afterSeq: number, lastSeq: number) {
          const counts = await checkpoints.deleteEntries(root, afterSeq, lastSeq);
          deleted += counts.rows;
          return counts;
        },
        put() {
          throw new RangeError("no disk");
        },
      }));
      await assert.rejects(log.retention(DAY_MS, { store: failing }).pass(), /no disk/);
      assert.equal(deleted, 2, "the failure came after the deletion");
      assert.deepEqual([await countRows(log, acme), await seqsOf(log, acme)], [3, [1, 2, 3]]);
      const { checkpoint, fault } = await log.verify(acme);
      assert.deepEqual([checkpoint, fault], [undefined, undefined]);
      assert.equal(await log.retention(DAY_MS).pass(), 2);
    });

    test("a node that lost its lease deletes nothing", async (t) => {
      const log = await openSealed([acme, 9 * DAY_MS], [acme, 0]);
      t.after(() => log.close());
      let isTaken = false;
      const read: Store["read"] = async (unit) => {
        const found = await log.store.read(unit);
        await log.store.write(async (tx) => {
          const row = await tx.jobs.find("audit-retention");
          if (row?.holder !== "late") return;
          await tx.jobs.put({ ...row, holder: "next", fence: row.fence + 1 });
          isTaken = true;
        });
        return found;
      };
      const late = log.retention(DAY_MS, { holder: "late", store: { ...log.store, read } });
      assert.deepEqual([await late.pass(), isTaken], [0, true]);
      assert.deepEqual(await seqsOf(log, acme), [1, 2]);
    });

    test("a backlog goes in batches, beside writers and the sealer, and verifies all along", async (t) => {
      const BACKLOG = chooseScale(3_000, 1_000);
      const log = await open(() => nowMs);
      t.after(() => log.close());
      await log.store.write(async (tx) => {
        for (let i = 0; i < BACKLOG; i++) {
          await tx.audit.append(auditRow(i % 3 === 0 ? other : acme, { timeMs: nowMs - 9 * DAY_MS + i }));
        }
      });
      await log.sealer({ batchRows: 1_000 }).stop();
      let batches = 0;
      const counting = withCheckpoints(log.store, (checkpoints) => ({
        find: (root: string) => checkpoints.find(root),
        findOld: (beforeMs: number, after?: string) => checkpoints.findOld(beforeMs, after),
        put: (row: Parameters<typeof checkpoints.put>[0]) => checkpoints.put(row),
        deleteEntries(root: string, afterSeq: number, lastSeq: number) {
          batches++;
          assert.ok(lastSeq - afterSeq <= 128);
          return checkpoints.deleteEntries(root, afterSeq, lastSeq);
        },
      }));
      const retention = log.retention(DAY_MS, { store: counting, batchRows: 128, holder: "retention" });
      const sealer = log.sealer({ holder: "sealer" });
      let [isDeleting, written, longestMs, verified] = [true, 0, 0, 0];
      const deleting = retention.pass().finally(() => {
        isDeleting = false;
      });
      const write = async () => {
        for (; isDeleting; written++) {
          const startMs = performance.now();
          await log.append(auditRow(acme, { timeMs: nowMs }));
          longestMs = Math.max(longestMs, performance.now() - startMs);
          await nextTick();
        }
      };
      const seal = async () => {
        for (; isDeleting; verified++) {
          await sealer.pass();
          assert.equal((await log.verify(acme)).fault, undefined);
          await nextTick();
        }
      };
      await Promise.all([write(), seal()]);
      const deleted = await deleting;
      await sealer.stop();
      t.diagnostic(`${batches} batches, ${written} rows written, the longest write took ${longestMs.toFixed(1)} ms`);
      assert.ok(batches >= BACKLOG / 128 && written > 0 && verified > 0);
      assert.ok(deleted >= BACKLOG - 2, "the last rows may have been those that the heads signed");
      for (const root of [acme, other]) {
        const { fault, unsealed } = await log.verify(root);
        assert.deepEqual([fault, unsealed.rows], [undefined, 0]);
      }
      assert.equal((await countRows(log, acme)) + (await countRows(log, other)) + deleted, BACKLOG + written);
      assert.deepEqual(log.problems, []);
    });
  });
}

// A store whose transactions have another store of checkpoints.
function withCheckpoints(store: Store, change: (checkpoints: Tx["auditCheckpoints"]) => object): Store {
  const view = (tx: Tx) =>
    new Proxy(tx, {
      get(target, name) {
        const found = Reflect.get(target, name, target);
        return name === "auditCheckpoints" ? change(found as Tx["auditCheckpoints"]) : found;
      },
    });
  return {
    ...store,
    read: (unit) => store.read((tx) => unit(view(tx))),
    write: (unit, options) => store.write((tx) => unit(view(tx)), options),
  };
}
