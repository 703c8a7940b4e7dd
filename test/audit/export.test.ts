// `arbor audit export`, and the program of docs/operations.md that verifies an export without Arbor.
import assert from "node:assert/strict";
import * as crypto from "node:crypto";
import { before, describe, test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { CompactSign, calculateJwkThumbprint } from "jose";
import { buildNextLink, CHAIN_START } from "../../src/audit/chain.js";
import { type ExportedEntry, type ExportedHead, exportChain } from "../../src/audit/export.js";
import { escapeControls } from "../../src/cli/output/terminal.js";
import type { StoredAuditRow } from "../../src/store/tables/audit.js";
import { rootUid } from "../support/rows.js";
import { readProgram, runProgram } from "./export-program.js";
import { attack, auditRow, BODY, buildStoredRow, type Log, makeOlder, openLog } from "./log-kit.js";

/** The members of canonical forms, of all versions. */
const members = Object.keys(buildStoredRow(1, ""))
  .filter((name) => name !== "bodyBytes")
  .sort();
const [acme, other] = [rootUid(0xa), rootUid(0xb)];

interface Export {
  readonly entries: ExportedEntry[];
  readonly last: ExportedHead;
}

let program: string;
let kid: string;
let exported: string;

/** Writes rows of all versions into a log and seals it in three steps. */
async function createSealedLog(): Promise<Log> {
  const log = await openLog();
  const sealer = log.sealer();
  const values = { actorName: "Ann ü 🌳 \u2028\u202e\u0007 \"'\\", subjectUid: "" };
  for (const version of [1, 2] as const) {
    await log.append(auditRow(acme, values), auditRow(other), auditRow(acme, values));
    attack(log.directory, makeOlder(version));
    await sealer.pass();
  }
  await log.append(auditRow(acme, { ...values, body: BODY }), auditRow(other), auditRow(acme, values));
  await sealer.stop();
  return log;
}

async function formatExport(log: Log, root = acme): Promise<string> {
  const lines: string[] = [];
  for await (const line of exportChain(log.store, root, log.keys)) lines.push(escapeControls(JSON.stringify(line)));
  return lines.join("\n");
}

function parse(text: string): Export {
  const lines = text.split("\n").map((line) => JSON.parse(line));
  return { last: lines.pop() as ExportedHead, entries: lines as ExportedEntry[] };
}

const format = ({ entries, last }: Export) => [...entries, last].map((line) => JSON.stringify(line)).join("\n");

/**
 * Runs the program, or a changed one, in this process.
 *
 * @returns why it rejects the export; undefined where it accepts it
 */
function verify(input: string, { key = kid, text = program } = {}): string | undefined {
  const modules = { "node:crypto": crypto, "node:fs": { readFileSync: () => input } };
  const body = text.replace(/^import (\{.*\}) from (".*");$/gm, "const $1 = modules[$2];");
  try {
    new Function("modules", "process", "console", body)(modules, { argv: ["", "", key] }, { log() {} });
    return undefined;
  } catch (error) {
    return String((error as Error).message);
  }
}

before(async () => {
  program = readProgram();
  const log = await createSealedLog();
  kid = log.keys.getAuditSigningKey().kid;
  exported = await formatExport(log);
  await log.close();
});

describe("an export", () => {
  test("has the entries of one chain with the members of each row's version, then head and key", () => {
    const { entries, last } = parse(exported);
    assert.deepEqual(
      entries.map(({ seq, row: one }) => [seq, one?.id, one?.version, one?.rootUid]),
      [
        [1, 1, undefined, acme],
        [2, 3, undefined, acme],
        [3, 4, 2, acme],
        [4, 6, 2, acme],
        [5, undefined, 3, acme],
        [6, undefined, 3, acme],
      ],
    );
    const without = (...names: string[]) => members.filter((name) => !names.includes(name));
    const membersOf = (i: number) => Object.keys(entries[i]?.row ?? {});
    assert.deepEqual(membersOf(5), without("id"));
    assert.deepEqual(membersOf(3), without("bodyHash"));
    assert.deepEqual(membersOf(0), without("bodyHash", "actorName", "traceId", "version"));
    assert.deepEqual(
      entries.map(({ body }) => body !== undefined),
      [false, false, false, false, true, false],
    );
    assert.equal(JSON.stringify(entries[4]?.body), BODY);
    assert.equal(last.head.hash, entries[5]?.hash);
    assert.deepEqual(Object.keys(last.key).sort(), ["crv", "kid", "kty", "x", "y"]);
  });

  test("ends at the signed head, and a row that was removed is null", async () => {
    const log = await createSealedLog();
    attack(log.directory, "DELETE FROM audit WHERE id = 3", `INSERT INTO audit_chain VALUES ('${acme}', 7, 99, 'x')`);
    const { entries } = parse(await formatExport(log));
    assert.deepEqual(
      entries.map(({ seq, row: one }) => `${seq} ${one === null}`),
      ["1 false", "2 true", "3 false", "4 false", "5 false", "6 false"],
    );
    await log.close();
  });

  test("fails for a log that was never sealed, and for a head that is signed with another key", async () => {
    const log = await createSealedLog();
    await assert.rejects(formatExport(log, rootUid(0xc)), { message: "this log has no signed head" });
    const header = Buffer.from(JSON.stringify({ alg: "ES256", kid: "x" })).toString("base64url");
    attack(log.directory, `UPDATE audit_heads SET signature = '${header}..x'`);
    // Reads of one tick share a snapshot.
    await nextTick();
    const message = "the head is signed with a key that is not one of this installation";
    await assert.rejects(formatExport(log), { message });
    await log.close();
  });

  test("of some thousand rows is complete", async () => {
    const log = await openLog();
    await log.store.write(async (tx) => {
      for (let i = 0; i < 2_001; i++) await tx.audit.append(auditRow(acme));
    });
    await log.sealer({ batchRows: 1_000 }).stop();
    const text = await formatExport(log);
    assert.equal(text.split("\n").length, 2_002);
    assert.equal(verify(text, { key: log.keys.getAuditSigningKey().kid }), undefined);
    await log.close();
  });
});

/** Changes of an export, each with the reason that the program gives. */
const tamperings: readonly { name: string; change: (whole: Export) => void; reason: string }[] = [
  ...[0, 3, 4].flatMap((i) =>
    members.map((member) => ({
      name: `${member} of entry ${i + 1}`,
      change: ({ entries }: Export) => {
        const one = entries[i]?.row as Record<string, unknown>;
        one[member] = typeof one[member] === "number" ? Number(one[member]) + 1 : `${one[member] ?? ""}x`;
      },
      reason: reasonFor(i, member),
    })),
  ),
  {
    name: "a row without its name",
    change: ({ entries }) => {
      const { actorName, ...rest } = entries[2]?.row ?? {};
      Object.assign(entries[2] ?? {}, { row: rest });
    },
    reason: "entry 3 has other members than its version",
  },
  {
    name: "a row of version 2 as one of version 1",
    change: ({ entries }) => {
      const { actorName, traceId, version, ...rest } = entries[2]?.row ?? {};
      Object.assign(entries[2] ?? {}, { row: rest });
    },
    reason: "entry 3 is not what was sealed",
  },
  {
    name: "a row that says that it has version 1",
    change: ({ entries }) => void Object.assign(entries[0]?.row ?? {}, { version: 1 }),
    reason: "entry 1 has other members than its version",
  },
  {
    name: "a body that was changed",
    change: ({ entries }) => void Object.assign(entries[4]?.body ?? {}, { type: "x" }),
    reason: "entry 5 has another body than was sealed",
  },
  {
    name: "a body that was removed",
    change: ({ entries }) => void delete (entries[4] as { body?: unknown }).body,
    reason: "entry 5 has another body than was sealed",
  },
  {
    name: "a body of a row that had none",
    change: ({ entries }) => void Object.assign(entries[5] ?? {}, { body: {} }),
    reason: "entry 6 has another body than was sealed",
  },
  {
    name: "a body of a row of version 2",
    change: ({ entries }) => void Object.assign(entries[3] ?? {}, { body: {} }),
    reason: "entry 4 has another body than was sealed",
  },
  {
    name: "the last entry cut",
    change: ({ entries }) => void entries.pop(),
    reason: "the chain does not end in the signed head",
  },
  {
    name: "the first entry cut",
    change: ({ entries }) => void entries.shift(),
    reason: "entry 1 is missing or of another chain",
  },
  {
    name: "an entry twice",
    change: ({ entries }) => void entries.push(...entries.slice(5)),
    reason: "entry 7 is missing or of another chain",
  },
  {
    name: "a removed row",
    change: ({ entries }) => void Object.assign(entries[1] ?? {}, { row: null }),
    reason: "entry 2 is missing or of another chain",
  },
  {
    name: "another time of the head",
    change: ({ last }) => void Object.assign(last.head, { timeMs: last.head.timeMs + 1 }),
    reason: "the signature is wrong",
  },
  { name: "the chain computed anew", change: computeAnew, reason: "the signature is wrong" },
];

function reasonFor(i: number, member: string): string {
  if (member === "rootUid") return `entry ${i + 1} is missing or of another chain`;
  const absent = [["actorName", "traceId", "bodyHash"], [], [], ["bodyHash"], ["id"]][i] ?? [];
  const isOther = member === "version" || absent.includes(member);
  return `entry ${i + 1} ${isOther ? "has other members than its version" : "is not what was sealed"}`;
}

// Changes a row and makes all hashes fit it.
function computeAnew({ entries, last }: Export): void {
  let end = CHAIN_START;
  for (const entry of entries) {
    const changed = { ...entry.row, requestId: "x" } as StoredAuditRow;
    const { version = 1, actorName = "", traceId = "" } = changed;
    end = buildNextLink(end, { ...changed, version, actorName, traceId });
    Object.assign(entry, { hash: end.hash, row: changed });
  }
  Object.assign(last.head, { hash: end.hash });
}

/** Lines of the program, each with another that would be a mistake. */
const mistakes: readonly { readonly right: string; readonly wrong: string }[] = [
  { right: '"actorName", "traceId", "version"].sort()', wrong: '"actorName", "traceId", "version"]' },
  { right: 'version2.filter((name) => name !== "id")].sort()', wrong: 'version2.filter((name) => name !== "id")]' },
  { right: "sha256(JSON.stringify(body))", wrong: "sha256(JSON.stringify(body, null, 1))" },
  { right: '(row.bodyHash ?? "")', wrong: "row.bodyHash" },
  { right: '"actorName", "traceId", "version"]', wrong: '"actorName", "version"]' },
  { right: "tokenId type", wrong: "type tokenId" },
  { right: "Buffer.alloc(32)", wrong: "Buffer.alloc(31)" },
  { right: 'createHash("sha256")', wrong: 'createHash("sha512")' },
  { right: 'Buffer.from(hash, "base64url")', wrong: "hash" },
  { right: "String(seq))", wrong: "String(seq - 1))" },
  { right: "entry.seq === seq", wrong: "entry.seq === seq - 1" },
  { right: "row.version ?? 1", wrong: "row.version ?? 2" },
  { right: "JSON.stringify(object, names)", wrong: "JSON.stringify(object, names, 1)" },
  { right: '["hash", "rootUid", "seq", "timeMs"]', wrong: '["rootUid", "hash", "seq", "timeMs"]' },
  { right: "stringify({ crv, kty, x, y })", wrong: "stringify({ kty, crv, x, y })" },
  { right: '"ieee-p1363"', wrong: '"der"' },
  { right: "typ === type", wrong: 'typ === "JWT"' },
];

describe("the program of docs/operations.md", () => {
  test("accepts an export with rows of all versions, and has few lines", () => {
    const time = new Date(parse(exported).last.head.timeMs).toISOString();
    assert.deepEqual(runProgram(exported, [kid]), { status: 0, stdout: `6 rows up to ${time}\n`, reason: undefined });
    const cut = runProgram(exported.split("\n").slice(1).join("\n"), [kid]);
    assert.deepEqual(cut, { status: 1, stdout: "", reason: "entry 1 is missing or of another chain" });
    assert.equal(verify(exported), undefined);
    assert.ok(program.split("\n").length <= 58, program);
    assert.deepEqual(
      [...program.matchAll(/ from "(.*)"/g)].map(([, name]) => name),
      ["node:crypto", "node:fs"],
    );
  });

  for (const { name, change, reason } of tamperings) {
    test(`rejects ${name}`, () => {
      const whole = parse(exported);
      change(whole);
      assert.equal(verify(format(whole)), reason);
    });
  }

  test("rejects a chain that another key has signed, also under the kid of the right one", async () => {
    const { publicKey, privateKey } = crypto.generateKeyPairSync("ec", { namedCurve: "P-256" });
    const jwk = publicKey.export({ format: "jwk" });
    const whole = parse(exported);
    computeAnew(whole);
    const { hash, rootUid: root, seq, timeMs } = whole.last.head;
    const payload = Buffer.from(JSON.stringify({ hash, rootUid: root, seq, timeMs }));
    const sign = async (typ: string) => {
      const header = { alg: "ES256", kid, typ };
      const [first, , last] = (await new CompactSign(payload).setProtectedHeader(header).sign(privateKey)).split(".");
      const signature = `${first}..${last}`;
      return format({ ...whole, last: { head: { ...whole.last.head, signature }, key: { ...jwk, kid } } });
    };
    const forged = await sign("arbor-audit-head");
    assert.equal(verify(forged), "the key is another one");
    const forger = await calculateJwkThumbprint(jwk);
    assert.equal(verify(forged, { key: forger }), undefined, "which is what the kid is for");
    assert.equal(verify(await sign("JWT"), { key: forger }), "the signature is of another kind");
  });

  for (const { right, wrong } of mistakes) {
    test(`with ${wrong} it would reject what is right`, () => {
      assert.ok(program.includes(right), `the program has no ${right}`);
      assert.ok(verify(exported, { text: program.replace(right, wrong) }));
    });
  }

  test("what the document says of hashes holds without the program", () => {
    const [first] = parse(exported).entries;
    const canonical = JSON.stringify(first?.row, Object.keys(first?.row ?? {}).sort());
    const hash = crypto.createHash("sha256").update(Buffer.alloc(32)).update(canonical).update("1").digest("base64url");
    assert.equal(first?.hash, hash);
  });
});
