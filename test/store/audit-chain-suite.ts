// The hash chains of the audit log; part of the store suite.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Store } from "../../src/store/store.js";
import type { AuditHead, ChainEntry } from "../../src/store/tables/audit.js";
import { rootUid } from "../support/rows.js";

const [first, second, absent] = [rootUid(0xc1), rootUid(0xc2), rootUid(0xc3)];

function row(root: string, i: number) {
  return {
    rootUid: root,
    timeMs: 4_102_444_800_000 + i,
    type: `test.${i}`,
    method: "/test",
    subjectUid: root,
    actorUid: "ü 'quoted'",
    tokenId: "",
    requestId: "",
    remoteAddress: "::1",
  };
}

/** Registers the tests; other tests may have written to the log before. */
export function auditChainSuite(open: () => Store): void {
  describe("chains of the audit log", () => {
    const write = (...roots: readonly string[]) =>
      open().write(async (tx) => {
        for (const [i, root] of roots.entries()) await tx.audit.append(row(root, i));
      });
    const newest = async () => (await open().read((tx) => tx.auditChain.listUnsealed(0, 1_000_000))).at(-1)?.id ?? 0;
    const listUnsealed = async (afterId: number, limit = 1_000) =>
      (await open().read((tx) => tx.auditChain.listUnsealed(afterId, limit))).map(({ id, ...values }) => ({
        id,
        ...values,
      }));
    const seal = (...entries: readonly ChainEntry[]) => open().write((tx) => tx.auditChain.append(entries));
    const entry = (root: string, seq: number, auditId: number) => ({
      rootUid: root,
      seq,
      auditId,
      hash: `hash ${seq}`,
    });

    test("unsealed rows are returned complete, in the order of ids, after an id and up to a limit", async () => {
      await write(first);
      const from = await newest();
      await write(first, second, "", first, second);
      const all = await listUnsealed(from);
      assert.deepEqual(
        all.map(({ id, version, ...values }) => values),
        [first, second, "", first, second].map((root, i) => ({
          ...row(root, i),
          ...{ traceId: "", actorName: "", bodyHash: "", bodyBytes: 0 },
        })),
      );
      const ids = all.map(({ id }) => id);
      assert.deepEqual(
        ids,
        [...ids].sort((a, b) => a - b),
      );
      assert.deepEqual(
        (await listUnsealed(from, 2)).map(({ id }) => id),
        ids.slice(0, 2),
      );
      assert.deepEqual(
        (await listUnsealed(ids[2] ?? 0)).map(({ id }) => id),
        ids.slice(3),
      );
      const [, one, , three] = ids;
      await seal(entry(second, 1, one ?? 0), entry(first, 1, three ?? 0));
      assert.deepEqual(
        (await listUnsealed(from)).map(({ id }) => id),
        [ids[0], ids[2], ids[4]],
      );
      assert.deepEqual(
        (await listUnsealed(from, 2)).map(({ id }) => id),
        [ids[0], ids[2]],
      );
      const tail = { rows: 1, firstId: ids[4], firstTimeMs: 4_102_444_800_004 };
      assert.deepEqual(await open().read((tx) => tx.auditChain.readUnsealedTail(second)), tail);
      const none = { rows: 0, firstId: null, firstTimeMs: null };
      assert.deepEqual(await open().read((tx) => tx.auditChain.readUnsealedTail(absent)), none);
    });

    test("entries are returned in order with the rows they seal, and null for a deleted row", async () => {
      const root = rootUid(0xc4);
      const from = await newest();
      // Enough rows for several insert statements, of which some insert one row each.
      await write(...Array.from({ length: 70 }, () => root));
      const rows = await listUnsealed(from);
      assert.equal(rows.length, 70);
      const withoutRow = entry(root, 71, 1_000_000_000);
      await seal(...rows.map(({ id }, i) => entry(root, i + 1, id)), withoutRow);
      await open().read(async (tx) => {
        const all = await tx.auditChain.listEntries(root, 0, 1_000);
        assert.deepEqual(
          all.map(({ row: sealed, ...rest }) => ({ ...rest, row: sealed && { ...sealed } })),
          [
            ...rows.map((sealed, i) => ({ seq: i + 1, auditId: sealed.id, hash: `hash ${i + 1}`, row: sealed })),
            { seq: 71, auditId: withoutRow.auditId, hash: "hash 71", row: null },
          ],
        );
        assert.deepEqual(
          (await tx.auditChain.listEntries(root, 10, 3)).map(({ seq }) => seq),
          [11, 12, 13],
        );
        assert.deepEqual(await tx.auditChain.listEntries(root, 71, 3), []);
        assert.equal(await tx.auditChain.lastSeq(root), 71);
        assert.equal(await tx.auditChain.lastSeq(absent), 0);
      });
    });

    test("a row is sealed once, and a number in a chain is used once", async () => {
      const root = rootUid(0xc5);
      await seal(entry(root, 1, 2_000_000_001));
      const options = { deadlineMs: Date.now() + 300 };
      for (const twice of [entry(root, 1, 2_000_000_002), entry(root, 2, 2_000_000_001)]) {
        await assert.rejects(open().write((tx) => tx.auditChain.append([twice]), options));
      }
      assert.equal(await open().read((tx) => tx.auditChain.lastSeq(root)), 1);
    });

    test("a chain has one head and the installation has one sealer; the last write wins", async () => {
      const head = (seq: number): AuditHead => {
        return { rootUid: first, seq, hash: `h${seq}`, timeMs: 4_102_444_800_000 + seq, signature: `s${seq}` };
      };
      assert.equal(await open().read((tx) => tx.auditChain.findHead(absent)), undefined);
      assert.equal(await open().read((tx) => tx.auditChain.findSealer()), undefined);
      for (const seq of [1, 2]) {
        const sealer = { settledId: seq, passes: seq };
        await open().write(async (tx) => {
          await tx.auditChain.putHead(head(seq));
          await tx.auditChain.putSealer(sealer);
        });
        assert.deepEqual({ ...(await open().read((tx) => tx.auditChain.findHead(first))) }, head(seq));
        assert.deepEqual({ ...(await open().read((tx) => tx.auditChain.findSealer())) }, sealer);
      }
    });

    test("roots are all organisations with rows, a chain or a head", async () => {
      const [rows, chain, headed] = [rootUid(0xc6), rootUid(0xc7), rootUid(0xc8)];
      await write(rows, "");
      await seal(entry(chain, 1, 3_000_000_001));
      const head = { rootUid: headed, seq: 1, hash: "", timeMs: 1, signature: "" };
      await open().write((tx) => tx.auditChain.putHead(head));
      const roots = await open().read((tx) => tx.auditChain.listRoots());
      for (const root of [rows, chain, headed, ""]) assert.ok(roots.includes(root), root);
      assert.deepEqual(roots, [...new Set(roots)].sort());
      assert.ok(!roots.includes(absent));
    });
  });
}
