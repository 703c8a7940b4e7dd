// Rows of all versions in one chain, and their bodies; on either store.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { hashBody } from "../../src/kernel/audit-body.js";
import { identityKind } from "../../src/store/iam/identities.js";
import type { Store } from "../../src/store/store.js";
import type { AuditRow, StoredAuditRow } from "../../src/store/tables/audit.js";
import type { Tx } from "../../src/store/transaction.js";
import { childUid, identityRow, rootUid } from "../support/rows.js";
import { auditRow, BODY, type Log, makeOlder } from "./log-kit.js";

const [ann, bob, carol, nameless] = [rootUid(0xf1), rootUid(0xf2), rootUid(0xf3), rootUid(0xf4)];
const LONG = "🌳".repeat(300);

/** A log, and a connection to its database beside the store. */
interface AttackedLog {
  readonly log: Log;
  execute(statement: string): Promise<void>;
}

/** Registers the tests under `name`. `open` opens an empty log. */
export function versionsSuite(name: string, open: () => Promise<AttackedLog>): void {
  describe(name, () => {
    const nowMs = Date.now();
    let log: Log;
    let execute: AttackedLog["execute"];
    before(async () => {
      ({ log, execute } = await open());
      await log.store.write(async (tx) => {
        await tx.table(identityKind).insert(identityRow(ann, { name: "Ann", email: "ann@acme.example" }));
        await tx
          .table(identityKind)
          .insert(identityRow(bob, { name: "", email: "bob@acme.example", emailUnverified: "x@y" }));
        await tx.table(identityKind).insert(identityRow(carol, { name: LONG }));
        await tx.table(identityKind).insert(identityRow(nameless, { name: "", emailUnverified: "x@y" }));
      });
    });
    after(() => log.close());

    const rowsOf = (root: string) => log.store.read((tx) => tx.audit.listNewest(100, root));
    /** Seals everything as a node of another holder, and leaves the lease to others. */
    const sealAs = async (holder: string, store = log.store) => {
      const sealer = log.sealer({ holder, store });
      await sealer.stop();
    };
    const requireWhole = async (root: string, rows: number) => {
      const { fault, sealed, unsealed } = await log.verify(root);
      assert.deepEqual({ fault, sealed, left: unsealed.rows }, { fault: undefined, sealed: rows, left: 0 });
    };
    /** Writes a row as Arbor of an older version did. */
    const appendOlder = async (version: 1 | 2, row: AuditRow) => {
      await log.append(row);
      await execute(makeOlder(version));
    };

    test("rows of all versions are in one chain, and new ones have version 3", async () => {
      const root = rootUid(2);
      await appendOlder(1, auditRow(root, { actorUid: ann }));
      await sealAs("newer");
      await appendOlder(2, auditRow(root, { actorUid: ann }));
      await log.append(auditRow(root, { actorUid: ann, body: BODY }), auditRow(root));
      await sealAs("newer");
      const found = await rowsOf(root);
      assert.deepEqual(found.map(({ version, actorName }) => `${version} ${actorName}`).reverse(), [
        "1 ",
        "2 Ann",
        "3 Ann",
        "3 ",
      ]);
      assert.deepEqual(
        found.map(({ bodyHash, bodyBytes }) => [bodyHash, bodyBytes]),
        [
          ["", 0],
          [hashBody(BODY), Buffer.byteLength(BODY)],
          ["", 0],
          ["", 0],
        ],
      );
      const bodies = await log.store.read((tx) => tx.audit.readBodies(found));
      assert.deepEqual([...bodies.values()], [BODY]);
      await requireWhole(root, 4);
    });

    test("a body that was changed is found, and so is one of a row that had none", async () => {
      for (const [i, change] of [
        "body = body || ' '",
        "body = ''",
        "body = replace(body, 'viewer', 'owner')",
      ].entries()) {
        const root = rootUid(0x30 + i);
        await log.append(auditRow(root, { body: `${BODY} 🌳` }), auditRow(root));
        await sealAs("newer");
        await execute(`UPDATE audit SET ${change} WHERE root_uid = '${root}' AND body <> ''`);
        const { fault } = await log.verify(root);
        assert.match(fault?.what ?? "", /^row \d+ has another body than was sealed$/);
      }
      const root = rootUid(0x40);
      await appendOlder(2, auditRow(root));
      await sealAs("newer");
      await execute(`UPDATE audit SET body = 'x' WHERE root_uid = '${root}'`);
      assert.match(
        (await log.verify(root)).fault?.what ?? "",
        /^row \d+ has another body than was sealed$|^row \d+ is not/,
      );
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
        assert.deepEqual([row?.version, row?.traceId, row?.actorName], [3, "", actorName]);
        await requireWhole(root, 1);
      });
    }

    test("the name is that of the time of the row", async () => {
      const root = rootUid(3);
      await log.append(auditRow(root, { actorUid: ann }));
      await log.store.write((tx) => tx.table(identityKind).update(ann, { name: "Ann Smith" }, nowMs));
      await log.append(auditRow(root, { actorUid: ann }));
      assert.deepEqual(
        (await rowsOf(root)).map(({ actorName }) => actorName),
        ["Ann Smith", "Ann"],
      );
    });

    test("rows of a newer version are not sealed, and other chains are", async () => {
      const [newer, other] = [rootUid(5), rootUid(6)];
      await log.append(auditRow(newer, { type: "known" }), auditRow(newer, { type: "newer" }), auditRow(other));
      const version4 = withUnsealed(log.store, (row) => (row.type === "newer" ? { ...row, version: 4 } : row));
      await sealAs("newer", version4);
      await requireWhole(other, 1);
      const { unsealed, sealed, fault } = await log.verify(newer);
      assert.deepEqual({ sealed, fault, left: unsealed.rows }, { sealed: 0, fault: undefined, left: 2 });
      const problem = `the audit log of ${newer} is sealed no further: its next row has a version that is not known here; run arbor audit verify`;
      // The tests before have changed other logs, and each sealer finds that.
      const ofLog = log.problems.splice(0).filter((text) => text.includes(newer));
      assert.deepEqual(ofLog, [problem]);
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
      findNextHead: (after?: string) => auditChain.findNextHead(after),
      listEntries: (root: string, afterSeq: number, limit: number) => auditChain.listEntries(root, afterSeq, limit),
      lastSeq: (root: string) => auditChain.lastSeq(root),
    };
    const { audit, auditCheckpoints, eventPositions, jobs } = tx;
    return { auditChain: chain, audit, auditCheckpoints, jobs, eventPositions } as unknown as Tx;
  };
  return { ...store, read: (unit, options) => store.read((tx) => unit(viewOf(tx)), options) };
}
