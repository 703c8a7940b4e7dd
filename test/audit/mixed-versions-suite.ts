// Nodes of version 0.4, which have no leases of jobs, seal the same log as nodes of this version during an upgrade. Runs on
// SQLite and on PostgreSQL.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { buildBatch, CHAIN_START, type Link } from "../../src/audit/chain.js";
import type { Store, UnitOptions } from "../../src/store/store.js";
import type { SealerRow } from "../../src/store/tables/audit.js";
import type { Tx } from "../../src/store/transaction.js";
import { rootUid } from "../support/rows.js";
import { auditRow, type Log } from "./log-kit.js";

const root = rootUid(0xa);
const HOLDER = "version 0.4";
const LEASE_MS = 3_000;

/**
 * A pass of a sealer of version 0.4, in its two steps.
 *
 * @returns what writes the rows that were read: to their number, or to undefined when another node sealed meanwhile; no
 * function when another node has the lease of that version
 */
async function readAsVersion04({
  store,
  keys,
}: Log): Promise<((options?: UnitOptions) => Promise<number | undefined>) | undefined> {
  const found = await store.read(async (tx) => {
    const sealer = await readSealer(tx);
    const leftMs = sealer.expireTimeMs - Date.now();
    if (sealer.holder !== HOLDER && leftMs > 0 && leftMs <= 60_000) return undefined;
    const rows = await tx.auditChain.listUnsealed(sealer.settledId, 64);
    const links = new Map<string, Link>();
    for (const { rootUid } of rows) links.set(rootUid, (await tx.auditChain.findHead(rootUid)) ?? CHAIN_START);
    return { sealer, rows, links };
  });
  if (found === undefined) return undefined;
  const { sealer, rows, links } = found;
  const { passes, settledId } = sealer;
  const { entries, heads } = await buildBatch(rows, links, keys.getAuditSigningKey(), Date.now());
  return (options) =>
    store.write(async (tx) => {
      if ((await readSealer(tx)).passes !== passes) return undefined;
      const expireTimeMs = Date.now() + LEASE_MS;
      await tx.auditChain.putSealer({ holder: HOLDER, expireTimeMs, settledId, passes: passes + 1 });
      await tx.auditChain.append(entries);
      for (const head of heads) await tx.auditChain.putHead(head);
      return rows.length;
    }, options);
}

async function readSealer(tx: Tx): Promise<SealerRow> {
  return (await tx.auditChain.findSealer()) ?? { holder: "", expireTimeMs: 0, settledId: 0, passes: 0 };
}

/** Ends the lease that version 0.4 knows, as three seconds do. */
async function expire({ store }: Log): Promise<void> {
  await store.write(async (tx) => tx.auditChain.putSealer({ ...(await readSealer(tx)), expireTimeMs: 0 }));
}

/** The store, which runs `before` ahead of its `nth` write. */
function interrupt(store: Store, nth: number, before: () => Promise<unknown>): Store {
  let writes = 0;
  return {
    ...store,
    async write(unit, options) {
      if (++writes === nth) await before();
      return store.write(unit, options);
    },
  };
}

/**
 * Registers the tests.
 *
 * @param open opens an empty log
 */
export function testMixedVersions(open: () => Promise<Log>): void {
  async function withLog(work: (log: Log) => Promise<void>): Promise<void> {
    const log = await open();
    try {
      await work(log);
    } finally {
      await log.close();
    }
  }

  async function assertSealed(log: Log, rows: number): Promise<void> {
    const { fault, unsealed } = await log.verify(root);
    assert.equal(fault, undefined);
    assert.equal(unsealed.rows, 0);
    const entries = await log.store.read((tx) => tx.auditChain.listEntries(root, 0, 100_000));
    assert.equal(entries.length, rows);
    assert.deepEqual(log.problems, []);
  }

  describe("sealing with nodes of version 0.4", () => {
    test("what such a node read before a node of this version sealed is not written", () =>
      withLog(async (log) => {
        await log.append(auditRow(root), auditRow(root));
        const write = await readAsVersion04(log);
        assert.equal(await log.sealer().pass(), 2);
        assert.equal(await write?.(), undefined);
        await assertSealed(log, 2);
      }));

    test("what a node of this version read before such a node sealed is not written", () =>
      withLog(async (log) => {
        await log.append(auditRow(root), auditRow(root));
        let sealed: number | undefined;
        // The first write takes the lease of the job, and the second one is the batch.
        const store = interrupt(log.store, 2, async () => {
          sealed = await (await readAsVersion04(log))?.();
        });
        assert.equal(await log.sealer({ store }).pass(), 0);
        assert.equal(sealed, 2);
        await assertSealed(log, 2);
      }));

    test("the counter of passes is what tells them apart: without it both would write", () =>
      withLog(async (log) => {
        await log.append(auditRow(root));
        const write = await readAsVersion04(log);
        const before = await log.store.read(readSealer);
        assert.equal(await log.sealer().pass(), 1);
        await log.store.write(async (tx) => {
          await tx.auditChain.putSealer({ ...(await readSealer(tx)), passes: before.passes });
        });
        // On PostgreSQL such a conflict is tried again until the deadline.
        await assert.rejects(
          async () => write?.({ deadlineMs: Date.now() + 300 }),
          "the database has the entry already",
        );
        await assertSealed(log, 1);
      }));

    test("such a node leaves the sealing to nodes of this version, and goes on when there are none", () =>
      withLog(async (log) => {
        const next = async () => {
          await log.append(auditRow(root));
          const write = await readAsVersion04(log);
          return write === undefined ? 0 : write();
        };
        assert.equal(await next(), 1);
        await log.append(auditRow(root));
        assert.equal(await log.sealer().pass(), 1, "whoever has the lease of that version");
        assert.equal(await next(), 0);
        await expire(log);
        assert.equal(await next(), 2);
        await assertSealed(log, 4);
      }));

    test("side by side they seal each row once and leave out none", () =>
      withLog(async (log) => {
        const [ROUNDS, ROWS] = [20, 6];
        const sealer = log.sealer({ batchRows: 4 });
        const bothSealed = { old: 0, current: 0 };
        const sealOld = async () => {
          await expire(log);
          bothSealed.old += (await (await readAsVersion04(log))?.()) ?? 0;
        };
        const sealCurrent = async () => {
          bothSealed.current += await sealer.pass();
        };
        for (let round = 0; round < ROUNDS; round++) {
          const rows = Array.from({ length: ROWS }, () => auditRow(root));
          await Promise.all([log.append(...rows), sealOld(), sealCurrent()]);
          // One of them always loses when both start at once, so each has a head start in its turn.
          const headStart = (older: boolean) => setTimeout(older === (round % 2 === 0) ? 0 : 10);
          await log.append(auditRow(root));
          await Promise.all([headStart(true).then(sealOld), headStart(false).then(sealCurrent)]);
        }
        await sealCurrent();
        const total = ROUNDS * (ROWS + 1);
        await assertSealed(log, total);
        assert.equal(bothSealed.old + bothSealed.current, total);
        assert.ok(bothSealed.old > 0 && bothSealed.current > 0, JSON.stringify(bothSealed));
      }));
  });
}
