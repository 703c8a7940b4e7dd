// What somebody who can write to the database, but has no master key, may do to a log whose beginning was deleted, and how
// it shows; on either store.
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { CompactSign } from "jose";
import { signCheckpoint } from "../../src/audit/chain.js";
import type { AuditCheckpoint } from "../../src/store/tables/audit.js";
import { rootUid } from "../support/rows.js";
import { type ServedLog, serveLog } from "./api/chain-service.js";
import { auditRow, type Log } from "./log-kit.js";

const DAY_MS = 86_400_000;
const WRONG = "the signature of the checkpoint is wrong";

/** An open log, and what runs statements in its database as an attacker does. */
export interface AttackedLog {
  readonly log: Log;
  execute(...statements: readonly string[]): Promise<void> | void;
}

/** A log of eight entries of which four are deleted, two by each of two checkpoints. */
interface Victim {
  readonly root: string;
  readonly other: string;
  readonly log: Log;
  readonly older: AuditCheckpoint;
  readonly newer: AuditCheckpoint;
  /** Runs statements, with the victim for `$A` and the other organisation for `$B`. */
  run(...statements: readonly string[]): Promise<void>;
  put(checkpoint: AuditCheckpoint): Promise<void>;
}

interface Attack {
  readonly name: string;
  readonly attack: (victim: Victim) => Promise<void>;
  readonly seq: number;
  readonly what: string | RegExp;
}

const run =
  (...statements: readonly string[]) =>
  (victim: Victim) =>
    victim.run(...statements);

const deleteEntries = (which: string) => [
  `DELETE FROM audit WHERE id IN (SELECT audit_id FROM audit_chain WHERE root_uid = $A AND ${which})`,
  `DELETE FROM audit_chain WHERE root_uid = $A AND ${which}`,
];
const putBackRows = [
  "INSERT INTO audit SELECT * FROM kept_rows WHERE root_uid = $A AND id NOT IN (SELECT id FROM audit)",
  "INSERT INTO audit_chain SELECT * FROM kept_chain WHERE root_uid = $A AND seq IN (3, 4)",
];
const changeRow = (seq: number) =>
  `UPDATE audit SET request_id = 'x' WHERE id = (SELECT audit_id FROM audit_chain WHERE root_uid = $A AND seq = ${seq})`;

// Deletes entry 5 with a checkpoint that is signed otherwise than checkpoints are.
async function forge(victim: Victim, typ: string, signing?: { kid?: string; key?: KeyObject; alg?: string }) {
  const { log, root, newer } = victim;
  const [fifth] = await log.store.read((tx) => tx.auditChain.listEntries(root, 4, 1));
  assert.ok(fifth?.row);
  const checkpoint = { ...newer, seq: 5, hash: fifth.hash, entryTimeMs: fifth.row.timeMs };
  const { entryTimeMs, hash, rootUid, seq, timeMs } = checkpoint;
  const { kid, key } = { ...log.keys.getAuditSigningKey(), ...signing };
  const header = { alg: signing?.alg ?? "ES256", kid, typ };
  const payload = Buffer.from(JSON.stringify({ entryTimeMs, hash, rootUid, seq, timeMs }));
  const signature =
    header.alg === "none"
      ? `${Buffer.from(JSON.stringify(header)).toString("base64url")}..`
      : (await new CompactSign(payload).setProtectedHeader(header).sign(key)).replace(/\..*\./, "..");
  await victim.run(...deleteEntries("seq = 5"));
  await victim.put({ ...checkpoint, signature });
}

const { privateKey: foreignKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

const attacks: readonly Attack[] = [
  {
    name: "the next entry is deleted, and the checkpoint left as it is",
    attack: run(...deleteEntries("seq = 5")),
    seq: 5,
    what: "the entry is missing, the next one is 6",
  },
  {
    name: "the next entry is deleted, and the checkpoint moved without a signature",
    attack: run(
      "UPDATE audit_checkpoints SET seq = 5, hash = (SELECT hash FROM audit_chain WHERE root_uid = $A AND seq = 5) WHERE root_uid = $A",
      ...deleteEntries("seq = 5"),
    ),
    seq: 5,
    what: WRONG,
  },
  ...[
    "seq = seq + 1",
    "hash = 'x'",
    "entry_time_ms = entry_time_ms + 1",
    "time_ms = time_ms + 1",
    "signature = 'x'",
  ].map((change) => ({
    name: `the checkpoint gets ${change}`,
    attack: run(`UPDATE audit_checkpoints SET ${change} WHERE root_uid = $A`),
    seq: change.startsWith("seq") ? 5 : 4,
    what: WRONG,
  })),
  {
    name: "the checkpoint is deleted",
    attack: run("DELETE FROM audit_checkpoints WHERE root_uid = $A"),
    seq: 1,
    what: "the entry is missing, the next one is 5",
  },
  {
    name: "an older checkpoint is put back",
    attack: ({ put, older }) => put(older),
    seq: 3,
    what: "the entry is missing, the next one is 5",
  },
  {
    name: "a newer checkpoint is put where the rows before it still are",
    attack: run(...putBackRows),
    seq: 3,
    what: "the entry does not belong here: the chain begins after 4",
  },
  {
    name: "the checkpoint of another organisation is moved here",
    attack: run(
      "DELETE FROM audit_checkpoints WHERE root_uid = $A",
      "UPDATE audit_checkpoints SET root_uid = $A WHERE root_uid = $B",
    ),
    seq: 4,
    what: WRONG,
  },
  {
    name: "the head is used as a checkpoint, and everything before it deleted",
    attack: run(
      "DELETE FROM audit_checkpoints WHERE root_uid = $A",
      "INSERT INTO audit_checkpoints (root_uid, seq, hash, entry_time_ms, time_ms, signature) SELECT root_uid, seq, hash, time_ms, time_ms, signature FROM audit_heads WHERE root_uid = $A",
      ...deleteEntries("seq <= 8"),
    ),
    seq: 8,
    what: WRONG,
  },
  {
    name: "a checkpoint has a signature of another type by the right key",
    attack: (victim) => forge(victim, "arbor-audit-head"),
    seq: 5,
    what: WRONG,
  },
  {
    name: "a checkpoint is signed by another key under the kid of the right one",
    attack: (victim) => forge(victim, "arbor-audit-checkpoint", { key: foreignKey }),
    seq: 5,
    what: WRONG,
  },
  {
    name: "a checkpoint is signed by a key that is not stored",
    attack: (victim) => forge(victim, "arbor-audit-checkpoint", { key: foreignKey, kid: "x" }),
    seq: 5,
    what: "the checkpoint is signed with a key that is not one of this installation",
  },
  {
    name: "a checkpoint names the algorithm none",
    attack: (victim) => forge(victim, "arbor-audit-checkpoint", { alg: "none" }),
    seq: 5,
    what: WRONG,
  },
  {
    name: "everything is deleted up to the head, with a right checkpoint there",
    async attack({ log, root, newer, run, put }) {
      const head = (await log.store.read((tx) => tx.auditChain.findHead(root))) ?? assert.fail();
      await run(...deleteEntries("seq <= 8"));
      const { seq, hash } = head;
      await put(await signCheckpoint({ ...newer, seq, hash }, log.keys.getAuditSigningKey()));
    },
    seq: 8,
    what: "all entries were removed: the last one is never deleted",
  },
  {
    name: "everything but the checkpoint is deleted",
    attack: run(...deleteEntries("seq > 0"), "DELETE FROM audit_heads WHERE root_uid = $A"),
    seq: 4,
    what: "the signed head is missing",
  },
  {
    name: "the end is cut",
    attack: run(...deleteEntries("seq = 8")),
    seq: 8,
    what: "the chain is cut: it ends here, and 8 entries were signed",
  },
  {
    name: "a row is inserted with an entry that has the number 0",
    attack: run(
      "INSERT INTO audit (id, root_uid, time_ms, type, method, subject_uid, actor_uid, token_id, request_id, remote_address) SELECT 1000000, $A, 1, 'x', '', '', '', '', '', ''",
      "INSERT INTO audit_chain (root_uid, seq, audit_id, hash) VALUES ($A, 0, 1000000, 'x')",
    ),
    seq: 0,
    what: "the entry does not belong here: the chain begins after 4",
  },
  // Retention would delete the first two of these, so it must find the change before.
  ...[5, 6, 7, 8].map((seq) => ({
    name: `row ${seq} is changed`,
    attack: run(changeRow(seq)),
    seq,
    what: /^row \d+ is not what was sealed here: it was changed, moved or inserted$/,
  })),
];

/** Registers the tests. `open` opens an empty log with a clock that stands still. */
export function checkpointAttacksSuite(name: string, open: (clock: () => number) => Promise<AttackedLog>): void {
  describe(name, () => {
    const nowMs = Date.now() - 60_000;
    const victims: Victim[] = [];
    let attacked: AttackedLog;
    let served: ServedLog;

    // One database serves all: each attack has two organisations of its own.
    before(async () => {
      attacked = await open(() => nowMs);
      const { log, execute } = attacked;
      const roots = Array.from({ length: 2 * (attacks.length + 2) }, (_, i) => rootUid(i + 1));
      for (const days of [20, 19, 10, 9, 2, 1.5, 1, 0.5]) {
        await log.store.write(async (tx) => {
          for (const root of roots) await tx.audit.append(auditRow(root, { timeMs: nowMs - days * DAY_MS }));
        });
      }
      await log.sealer().stop();
      assert.equal(await log.retention(15 * DAY_MS).pass(), 2 * roots.length);
      const older = await checkpointsOf(log, roots);
      for (const table of ["rows", "chain"]) {
        await execute(`CREATE TABLE kept_${table} AS SELECT * FROM audit${table === "rows" ? "" : "_chain"}`);
      }
      assert.equal(await log.retention(5 * DAY_MS).pass(), 2 * roots.length);
      served = await serveLog(log, roots);
      const newer = await checkpointsOf(log, roots);
      for (let i = 0; i < roots.length; i += 2) {
        const [root, other] = [roots[i] ?? "", roots[i + 1] ?? ""];
        const quote = (text: string) => text.replaceAll("$A", `'${root}'`).replaceAll("$B", `'${other}'`);
        victims.push({
          ...{ root, other, log },
          older: older[i] ?? assert.fail(),
          newer: newer[i] ?? assert.fail(),
          async run(...statements) {
            await execute(...statements.map(quote));
            // Reads of one tick share a snapshot.
            await nextTick();
          },
          put: (checkpoint) => log.store.write((tx) => tx.auditCheckpoints.put(checkpoint)),
        });
      }
    });
    after(async () => {
      await served.stop();
      await attacked.log.close();
    });

    const requireSound = async ({ log }: Victim, root: string, expected: { first: number; sealed: number }) => {
      for (const verify of [log.verify, served.verify]) {
        const { fault, sealed, checkpoint } = await verify(root);
        assert.deepEqual([fault, checkpoint?.seq, sealed], [undefined, expected.first - 1, expected.sealed]);
      }
    };

    for (const [i, { name, attack, seq, what }] of attacks.entries()) {
      test(`${name}: it is found`, async () => {
        const victim = victims[i] ?? assert.fail();
        const { log, root, other } = victim;
        for (const one of [root, other]) await requireSound(victim, one, { first: 5, sealed: 4 });
        await attack(victim);
        const { fault } = await log.verify(root);
        assert.equal(fault?.seq, seq);
        if (typeof what === "string") assert.equal(fault?.what, what);
        else assert.match(fault?.what ?? "", what);
        // Over the API rows have the numbers of their entries.
        const shown = fault && { ...fault, what: fault.what.replace(/^row \d+/, `row ${fault.seq}`) };
        assert.deepEqual((await served.verify(root)).fault, shown, "over the API");
        assert.ok((await log.store.read((tx) => tx.auditChain.listRoots())).includes(root));
      });
    }

    test("control: a checkpoint that is signed as the forged ones, but rightly, is accepted", async () => {
      const victim = victims.at(-1) ?? assert.fail();
      await forge(victim, "arbor-audit-checkpoint");
      await requireSound(victim, victim.root, { first: 6, sealed: 3 });
    });

    test("neither sealing nor retention repairs a log, and the others lose their old rows", async () => {
      const { log } = attacked;
      for (const { root } of victims) await log.append(auditRow(root, { timeMs: nowMs }));
      await log.sealer().stop();
      await log.retention(1.2 * DAY_MS).pass();
      for (const [i, victim] of victims.entries()) {
        const { name } = attacks[i] ?? {};
        if (name !== undefined) assert.ok((await log.verify(victim.root)).fault, name);
        else await requireSound(victim, victim.root, { first: 7, sealed: 3 });
        const isRobbed = name?.startsWith("the checkpoint of another") ?? false;
        if (!isRobbed) await requireSound(victim, victim.other, { first: 7, sealed: 2 });
      }
    });

    test("of a chain with a changed row before or right after the last old one nothing is deleted, and that is logged", async () => {
      for (const seq of [5, 6, 7]) {
        const i = attacks.findIndex(({ name }) => name === `row ${seq} is changed`);
        const { log, root } = victims[i] ?? assert.fail();
        const rows = await log.store.read((tx) => tx.audit.listNewest(100, root));
        assert.equal(rows.length, 5);
        const start = `no old rows of the audit log of ${root} are deleted: seq ${seq}: row `;
        assert.ok(
          log.problems.some((problem) => problem.startsWith(start)),
          log.problems.join("\n"),
        );
      }
    });

    // What verification cannot detect is documented here.
    test("rows that were deleted may be put back with the checkpoint of the time", async () => {
      const victim = victims.at(-2) ?? assert.fail();
      // Retention has deleted more since; all that is put back as well.
      await victim.run(
        "INSERT INTO audit SELECT * FROM kept_rows WHERE root_uid = $A AND id NOT IN (SELECT id FROM audit)",
        "INSERT INTO audit_chain SELECT * FROM kept_chain WHERE root_uid = $A AND audit_id NOT IN (SELECT audit_id FROM audit_chain)",
      );
      await victim.put(victim.older);
      await requireSound(victim, victim.root, { first: 3, sealed: 7 });
    });
  });
}

async function checkpointsOf(log: Log, roots: readonly string[]): Promise<AuditCheckpoint[]> {
  return log.store.read(async (tx) => {
    const found: AuditCheckpoint[] = [];
    for (const root of roots) found.push({ ...((await tx.auditCheckpoints.find(root)) ?? assert.fail()) });
    return found;
  });
}
