// Rows of version 1 and 2 in one chain, and what a node of a version that knows only the first does with them; on either
// store.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Store } from "../../src/store/store.js";
import type { StoredAuditRow } from "../../src/store/tables/audit.js";
import type { Tx } from "../../src/store/transaction.js";
import { childUid, identityRow, rootUid } from "../support/rows.js";
import { allowVersion2, auditRow, type Log } from "./log-kit.js";

const [ann, bob, carol, nameless] = [rootUid(0xf1), rootUid(0xf2), rootUid(0xf3), rootUid(0xf4)];
const LONG = "🌳".repeat(300);

/** Registers the tests under `name`. `open` opens an empty log of version 1 with a clock that the tests set. */
export function versionsSuite(name: string, open: (clock: () => number) => Promise<Log>): void {
  describe(name, () => {
    let nowMs = Date.now();
    let log: Log;
    before(async () => {
      log = await open(() => nowMs);
      await log.store.write(async (tx) => {
        await tx.identities.insert(identityRow(ann, { name: "Ann", email: "ann@acme.example" }));
        await tx.identities.insert(identityRow(bob, { name: "", email: "bob@acme.example", emailUnverified: "x@y" }));
        await tx.identities.insert(identityRow(carol, { name: LONG }));
        await tx.identities.insert(identityRow(nameless, { name: "", emailUnverified: "x@y" }));
      });
    });
    after(() => log.close());

    const rowsOf = (root: string) => log.store.read((tx) => tx.audit.listNewest(100, root));
    const versionsOf = async (root: string) => (await rowsOf(root)).map(({ version }) => version).reverse();
    /** Seals everything as a node of another holder, and leaves the lease to others. */
    const sealAs = async (holder: string, store = log.store) => {
      const sealer = log.sealer({ holder, store });
      await sealer.stop();
    };
    const requireWhole = async (root: string, rows: number) => {
      const { fault, sealed, unsealed } = await log.verify(root);
      assert.deepEqual({ fault, sealed, left: unsealed.rows }, { fault: undefined, sealed: rows, left: 0 });
    };
    const older = () => withUnsealed(log.store, (row) => ({ ...row, version: 1, traceId: "", actorName: "" }));
    const begin = async () => {
      await allowVersion2(log.store);
      nowMs += 5_000;
      // On PostgreSQL the setting is read beside the write that finds that it is time to.
      for (let i = 0; i < 1_000; i++) {
        await log.append(auditRow(""));
        if ((await rowsOf(""))[0]?.version === 2) return;
      }
      assert.fail("version 2 did not begin");
    };

    test("where an older version may be connected, rows have version 1 and it may seal them", async () => {
      const root = rootUid(1);
      for (const oldest of ["0.1.0", "0.4.0", "0.4.7"]) {
        await log.store.write((tx) => tx.settings.put("oldest_version", oldest));
        nowMs += 5_000;
        await log.append(auditRow(root, { actorUid: ann, actorName: "Ann" }));
        await sealAs("older", older());
        await log.append(auditRow(root, { actorUid: ann }));
        await sealAs("newer");
      }
      assert.deepEqual(await versionsOf(root), [1, 1, 1, 1, 1, 1]);
      assert.deepEqual(new Set((await rowsOf(root)).map(({ actorName }) => actorName)), new Set([""]));
      await requireWhole(root, 6);
    });

    test("version 2 begins within seconds, without a restart, in the same chain", async () => {
      const root = rootUid(2);
      await log.append(auditRow(root, { actorUid: ann }));
      await begin();
      await log.append(auditRow(root, { actorUid: ann }));
      await sealAs("newer");
      await log.append(auditRow(root, { actorUid: ann }));
      await sealAs("newer");
      assert.deepEqual(await versionsOf(root), [1, 2, 2]);
      await requireWhole(root, 3);
    });

    const names: readonly { reason: string; actorUid: string; given?: string; actorName: string }[] = [
      { reason: "the name of the identity", actorUid: ann, actorName: "Ann" },
      { reason: "that of the store where another is given", actorUid: ann, given: "x", actorName: "Ann" },
      { reason: "without a name the confirmed address", actorUid: bob, actorName: "bob@acme.example" },
      { reason: "never an unconfirmed address", actorUid: nameless, actorName: "" },
      { reason: "255 characters of it", actorUid: carol, actorName: "🌳".repeat(255) },
      { reason: "nothing for an identity that does not exist", actorUid: childUid(ann, 9), actorName: "" },
      { reason: "what is given for one that was deleted", actorUid: childUid(ann, 9), given: "Bot", actorName: "Bot" },
      {
        reason: "255 characters of what is given",
        actorUid: childUid(ann, 9),
        given: LONG,
        actorName: "🌳".repeat(255),
      },
      { reason: "nothing on the host", actorUid: "", actorName: "" },
    ];
    for (const [i, { reason, actorUid, given, actorName }] of names.entries()) {
      test(`the actor's name: ${reason}`, async () => {
        const root = rootUid(0x10 + i);
        await log.append(auditRow(root, { actorUid, actorName: given }));
        await sealAs("newer");
        const [row] = await rowsOf(root);
        assert.deepEqual([row?.version, row?.traceId, row?.actorName], [2, "", actorName]);
        await requireWhole(root, 1);
      });
    }

    test("the name is that of the time of the row", async () => {
      const root = rootUid(3);
      await log.append(auditRow(root, { actorUid: ann }));
      await log.store.write((tx) => tx.identities.update(ann, { name: "Ann Smith" }, nowMs));
      await log.append(auditRow(root, { actorUid: ann }));
      assert.deepEqual(
        (await rowsOf(root)).map(({ actorName }) => actorName),
        ["Ann Smith", "Ann"],
      );
    });

    // Why version 2 waits for the setting.
    test("an older node that seals a row of version 2 breaks its chain, and verification says by what", async () => {
      const root = rootUid(4);
      await log.append(auditRow(root), auditRow(root, { actorUid: ann }));
      await sealAs("older", older());
      const { fault, sealed } = await log.verify(root);
      assert.equal(sealed, 0);
      assert.match(
        fault?.what ?? "",
        /^row \d+ was sealed as one of version 1: by an older Arbor, or its version was changed$/,
      );
    });

    test("rows of a newer version are not sealed, and other chains are", async () => {
      const [newer, other] = [rootUid(5), rootUid(6)];
      await log.append(auditRow(newer, { type: "known" }), auditRow(newer, { type: "newer" }), auditRow(other));
      const version3 = withUnsealed(log.store, (row) => (row.type === "newer" ? { ...row, version: 3 } : row));
      await sealAs("newer", version3);
      await requireWhole(other, 1);
      const { unsealed, sealed, fault } = await log.verify(newer);
      assert.deepEqual({ sealed, fault, left: unsealed.rows }, { sealed: 0, fault: undefined, left: 2 });
      const problem = `the audit log of ${newer} is sealed no further: its next row has a version that is not known here; run arbor audit verify`;
      assert.deepEqual(log.problems.splice(0), [problem]);
      await sealAs("newer");
      await requireWhole(newer, 2);
    });
  });
}

/** The store as a node with another view of unsealed rows sees it. */
function withUnsealed(store: Store, view: (row: StoredAuditRow) => StoredAuditRow): Store {
  const viewOf = (tx: Tx): Tx => {
    const { auditChain } = tx;
    const listUnsealed: typeof auditChain.listUnsealed = async (afterId, limit) =>
      (await auditChain.listUnsealed(afterId, limit)).map(view);
    const chain = {
      listUnsealed,
      findSealer: () => auditChain.findSealer(),
      findHead: (root: string) => auditChain.findHead(root),
      lastSeq: (root: string) => auditChain.lastSeq(root),
    };
    return { auditChain: chain, jobs: tx.jobs } as unknown as Tx;
  };
  return { ...store, read: (unit, options) => store.read((tx) => unit(viewOf(tx)), options) };
}
