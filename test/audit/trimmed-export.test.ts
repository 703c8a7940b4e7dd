// Exports of logs whose beginning was deleted, and the program of docs/operations.md that verifies them without Arbor.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { buildNextLink } from "../../src/audit/chain.js";
import { type ExportedCheckpoint, type ExportedEntry, type ExportedHead, exportChain } from "../../src/audit/export.js";
import { generateKey } from "../../src/issuer/keys/key-generation.js";
import { rotateKey } from "../../src/issuer/keys/key-states.js";
import type { StoredAuditRow } from "../../src/store/tables/audit.js";
import { rootUid } from "../support/rows.js";
import { memoryDir } from "../support/temp-dir.js";
import { runProgram } from "./export-program.js";
import { auditRow, type Log, openLog } from "./log-kit.js";

const [acme, other] = [rootUid(0xa), rootUid(0xb)];
const DAY_MS = 86_400_000;
const nowMs = Date.now();

interface Export {
  readonly first: ExportedCheckpoint;
  readonly entries: ExportedEntry[];
  readonly last: ExportedHead;
}

/** A log whose checkpoints another key has signed than its heads. */
async function createTrimmedLog(): Promise<{ log: Log; kids: string[] }> {
  const log = await openLog(memoryDir(), () => nowMs);
  for (const days of [9, 8, 7, 2, 1]) {
    await log.append(...[acme, other].map((root) => auditRow(root, { timeMs: nowMs - days * DAY_MS })));
  }
  await log.sealer().stop();
  assert.equal(await log.retention(5 * DAY_MS).pass(), 6);
  const kids = [log.keys.getAuditSigningKey().kid];
  const next = generateKey("audit", log.masterKey, nowMs);
  await log.store.write((tx) => rotateKey(tx, next));
  await log.keys.refresh();
  kids.push(log.keys.getAuditSigningKey().kid);
  await log.append(auditRow(acme, { timeMs: nowMs }));
  await log.sealer().stop();
  return { log, kids };
}

async function readExport(log: Log, root = acme): Promise<Export> {
  const lines: unknown[] = [];
  for await (const line of exportChain(log.store, root, log.keys)) lines.push(JSON.parse(JSON.stringify(line)));
  const [first, last] = [lines.shift(), lines.pop()];
  return { first: first as ExportedCheckpoint, entries: lines as ExportedEntry[], last: last as ExportedHead };
}

const format = ({ first, entries, last }: Export) =>
  [first, ...entries, last].map((line) => JSON.stringify(line)).join("\n");

const tamperings: readonly { name: string; change: (whole: Export) => void; reason: string }[] = [
  {
    name: "without its checkpoint",
    change: (whole) => void Object.assign(whole, { first: whole.entries.shift() }),
    reason: "entry 1 is missing or of another chain",
  },
  {
    name: "with its first entry cut",
    change: ({ entries }) => void entries.shift(),
    reason: "entry 4 is missing or of another chain",
  },
  {
    name: "with its first entry cut and the checkpoint moved",
    change({ entries, first }) {
      const { seq, hash } = entries.shift() ?? assert.fail();
      Object.assign(first.checkpoint, { seq, hash });
    },
    reason: "the signature is wrong",
  },
  {
    name: "with another time of the last deleted row",
    change: ({ first: { checkpoint } }) => void Object.assign(checkpoint, { entryTimeMs: checkpoint.entryTimeMs + 1 }),
    reason: "the signature is wrong",
  },
  {
    name: "with another hash at which it begins",
    change: ({ first: { checkpoint } }) =>
      void Object.assign(checkpoint, { hash: Buffer.alloc(32).toString("base64url") }),
    reason: "entry 4 is not what was sealed",
  },
  {
    name: "with a changed row, computed anew from the checkpoint on",
    change({ first, entries, last }) {
      let end: { seq: number; hash: string } = first.checkpoint;
      for (const entry of entries) {
        const row = { ...entry.row, version: 1, actorName: "", traceId: "", ...entry.row, requestId: "x" };
        end = buildNextLink(end, row as StoredAuditRow);
        Object.assign(entry, { hash: end.hash, row: { ...entry.row, requestId: "x" } });
      }
      Object.assign(last.head, { hash: end.hash });
    },
    reason: "the signature is wrong",
  },
  {
    name: "with the head for a checkpoint and nothing between",
    change(whole) {
      const { head, key } = whole.last;
      Object.assign(whole, { first: { checkpoint: { ...head, entryTimeMs: head.timeMs }, key }, entries: [] });
    },
    reason: "the chain does not end in the signed head",
  },
];

describe("an export of a log whose beginning was deleted", () => {
  let whole: Export;
  let others: Export;
  let kids: string[];
  before(async () => {
    const trimmed = await createTrimmedLog();
    kids = trimmed.kids;
    whole = await readExport(trimmed.log);
    others = await readExport(trimmed.log, other);
    await trimmed.log.close();
  });

  test("begins with the checkpoint, and is verified with the keys of both signatures", () => {
    const { first, entries, last } = whole;
    assert.deepEqual([first.checkpoint.seq, first.checkpoint.entryTimeMs], [3, nowMs - 7 * DAY_MS]);
    assert.deepEqual(
      entries.map(({ seq }) => seq),
      [4, 5, 6],
    );
    assert.notEqual(first.key.kid, last.key.kid);
    assert.deepEqual([first.key.kid, last.key.kid], kids);
    const [since, until] = [first.checkpoint.entryTimeMs, last.head.timeMs].map((ms) => new Date(ms).toISOString());
    const stdout = `3 rows after ${since} up to ${until}\n`;
    assert.deepEqual(runProgram(format(whole), kids), { status: 0, stdout, reason: undefined });
    for (const kid of kids) assert.equal(runProgram(format(whole), [kid]).reason, "the key is another one");
  });

  for (const { name, change, reason } of tamperings) {
    test(`is rejected ${name}`, () => {
      const changed = structuredClone(whole);
      change(changed);
      assert.equal(runProgram(format(changed), kids).reason, reason);
    });
  }

  test("is rejected with the checkpoint of another organisation", () => {
    assert.equal(runProgram(format(others), kids).reason, undefined);
    const reason = "the checkpoint is of another chain";
    assert.equal(runProgram(format({ ...whole, first: others.first }), kids).reason, reason);
    const renamed = structuredClone({ ...whole, first: others.first });
    Object.assign(renamed.first.checkpoint, { rootUid: acme });
    assert.equal(runProgram(format(renamed), kids).reason, "entry 4 is not what was sealed");
  });

  test("fails when old rows are deleted while it is read, and says so", async (t) => {
    const log = await openLog(memoryDir(), () => nowMs);
    t.after(() => log.close());
    await log.store.write(async (tx) => {
      for (let i = 0; i < 2_500; i++) await tx.audit.append(auditRow(acme, { timeMs: nowMs - 9 * DAY_MS }));
    });
    await log.sealer({ batchRows: 1_000 }).stop();
    const lines = exportChain(log.store, acme, log.keys);
    for (let i = 0; i < 10; i++) await lines.next();
    await log.retention(DAY_MS, { batchRows: 1_000 }).pass();
    const message = "old rows of this log were deleted while it was exported: export it again";
    await assert.rejects(
      async () => {
        for await (const _ of lines);
      },
      { message },
    );
    const { first, entries } = await readExport(log);
    assert.deepEqual([first.checkpoint.seq, entries.length], [2_499, 1]);
  });
});
