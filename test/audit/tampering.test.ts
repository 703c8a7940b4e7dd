// What somebody who can write to the database, but has no master key, may do to
// the log, and how it shows.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { getTableColumns } from "drizzle-orm";
import { CompactSign, calculateJwkThumbprint } from "jose";
import { buildNextLink, CHAIN_START } from "../../src/audit/chain.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import type { AuditHead, StoredAuditRow } from "../../src/store/tables/audit.js";
import { schema } from "../../src/store/tables/schema-sqlite.js";
import { rootUid } from "../support/rows.js";
import { memoryDir } from "../support/temp-dir.js";
import { verifyServed } from "./api/chain-service.js";
import { attack as attackLog, auditRow, BODY, makeOlder, openLog } from "./log-kit.js";

const [victim, other] = [rootUid(0xa), rootUid(0xb)];
const CHANGED_BODY = "row 7 has another body than was sealed";
const NOT_SEALED_HERE = "is not what was sealed here: it was changed, moved or inserted";

type Db = SqliteDatabase;

interface Tampering {
  readonly name: string;
  readonly attack: (db: Db) => void;
  readonly seq: number;
  readonly what: string;
}

const run =
  (...statements: readonly string[]) =>
  (db: Db): void => {
    for (const statement of statements)
      db.exec(statement.replaceAll("$A", `'${victim}'`).replaceAll("$B", `'${other}'`));
  };

// Rows 1 to 8, of which the odd ones are the victim's: its entry n seals row 2n - 1. The first four have version 1, the
// next two version 2, the last two version 3. The state of the victim's chain when it had two entries is kept as `old`.
const columns = Object.values(getTableColumns(schema.audit)).map(({ name, columnType }) => ({ name, columnType }));
const sealedRows = [
  {
    id: 3,
    seq: 2,
    version: 1,
    changed: "row 3 was sealed as one of version 1: by an older Arbor, or its version was changed",
  },
  { id: 5, seq: 3, version: 2, changed: `row 5 ${NOT_SEALED_HERE}` },
  { id: 7, seq: 4, version: 3, changed: "row 7 has version 4, which is not known here" },
];
const changes: readonly Tampering[] = sealedRows.flatMap(({ id, seq, version, changed }) =>
  columns
    .filter(({ name }) => name !== "id")
    .map(({ name, columnType }) => ({
      name: `the ${name} of a row of version ${version} is changed`,
      attack: run(
        `UPDATE audit SET ${name} = ${columnType === "SQLiteText" ? `${name} || 'x'` : `${name} + 1`} WHERE id = ${id}`,
      ),
      seq,
      what: findReason(name, version, id, changed),
    })),
);

function findReason(column: string, version: number, id: number, ofVersion: string): string {
  if (column === "version") return ofVersion;
  return column === "body" && version === 3 ? CHANGED_BODY : `row ${id} ${NOT_SEALED_HERE}`;
}

const tamperings: readonly Tampering[] = [
  ...changes,
  {
    name: "the body of a row is removed",
    attack: run("UPDATE audit SET body = '' WHERE id = 7"),
    seq: 4,
    what: CHANGED_BODY,
  },
  {
    name: "the body of a row is removed with its hash",
    attack: run("UPDATE audit SET body = '', body_hash = '' WHERE id = 7"),
    seq: 4,
    what: `row 7 ${NOT_SEALED_HERE}`,
  },
  {
    name: "a row of version 3 becomes one of version 2",
    attack: run("UPDATE audit SET version = 2, body = '', body_hash = '' WHERE id = 7"),
    seq: 4,
    what: `row 7 ${NOT_SEALED_HERE}`,
  },
  ...["version = 1", "version = 1, trace_id = '', actor_name = ''", "actor_name = ''"].map((change) => ({
    name: `a row of version 2 gets ${change}`,
    attack: run(`UPDATE audit SET ${change} WHERE id = 5`),
    seq: 3,
    what: `row 5 ${NOT_SEALED_HERE}`,
  })),
  {
    name: "a row of version 1 is given a name, and the chain computed anew",
    attack: (db) => {
      run("UPDATE audit SET actor_name = 'x' WHERE id = 3")(db);
      computeAnew(db);
    },
    seq: 2,
    what: `row 3 ${NOT_SEALED_HERE}`,
  },
  {
    name: "the id of a row is changed",
    attack: run("UPDATE audit SET id = 99 WHERE id = 3"),
    seq: 2,
    what: "row 3 was removed",
  },
  {
    name: "a row is given to another organisation",
    attack: run("UPDATE audit SET root_uid = $B WHERE id = 5"),
    seq: 3,
    what: `row 5 ${NOT_SEALED_HERE}`,
  },
  {
    name: "the first row is removed",
    attack: run("DELETE FROM audit WHERE id = 1"),
    seq: 1,
    what: "row 1 was removed",
  },
  {
    name: "a row in the middle is removed",
    attack: run("DELETE FROM audit WHERE id = 5"),
    seq: 3,
    what: "row 5 was removed",
  },
  { name: "the last row is removed", attack: run("DELETE FROM audit WHERE id = 7"), seq: 4, what: "row 7 was removed" },
  {
    name: "the first row is removed with its entry",
    attack: run("DELETE FROM audit WHERE id = 1", "DELETE FROM audit_chain WHERE root_uid = $A AND seq = 1"),
    seq: 1,
    what: "the entry is missing, the next one is 2",
  },
  {
    name: "a row is removed with its entry, and the rest moved up",
    attack: run(
      "DELETE FROM audit WHERE id = 3",
      "DELETE FROM audit_chain WHERE root_uid = $A AND seq = 2",
      "UPDATE audit_chain SET seq = 2 WHERE root_uid = $A AND seq = 3",
      "UPDATE audit_chain SET seq = 3 WHERE root_uid = $A AND seq = 4",
    ),
    seq: 2,
    what: `row 5 ${NOT_SEALED_HERE}`,
  },
  {
    name: "two rows change places",
    attack: run(
      "UPDATE audit SET id = 99 WHERE id = 3",
      "UPDATE audit SET id = 3 WHERE id = 5",
      "UPDATE audit SET id = 5 WHERE id = 99",
    ),
    seq: 2,
    what: `row 3 ${NOT_SEALED_HERE}`,
  },
  {
    name: "two entries change places",
    attack: run(
      "UPDATE audit_chain SET seq = 99 WHERE root_uid = $A AND seq = 2",
      "UPDATE audit_chain SET seq = 2 WHERE root_uid = $A AND seq = 3",
      "UPDATE audit_chain SET seq = 3 WHERE root_uid = $A AND seq = 99",
    ),
    seq: 2,
    what: `row 5 ${NOT_SEALED_HERE}`,
  },
  {
    name: "a row is inserted with an entry of its own",
    attack: run(
      "INSERT INTO audit SELECT 99, root_uid, time_ms, type, method, subject_uid, 'x', token_id, request_id, remote_address, version, trace_id, actor_name, body_hash, body FROM audit WHERE id = 3",
      "UPDATE audit_chain SET seq = 5 WHERE root_uid = $A AND seq = 4",
      "UPDATE audit_chain SET seq = 4 WHERE root_uid = $A AND seq = 3",
      "INSERT INTO audit_chain VALUES ($A, 3, 99, 'x')",
    ),
    seq: 3,
    what: `row 99 ${NOT_SEALED_HERE}`,
  },
  {
    name: "a row is inserted among those that are sealed",
    attack: run(
      "DELETE FROM audit WHERE id = 4; DELETE FROM audit_chain WHERE root_uid = $B",
      "INSERT INTO audit SELECT 4, root_uid, time_ms, type, method, subject_uid, 'x', token_id, request_id, remote_address, version, trace_id, actor_name, body_hash, body FROM audit WHERE id = 3",
    ),
    seq: 3,
    what: "row 4 was inserted: everything of its time is sealed, and it is not",
  },
  {
    name: "an entry is removed and its row kept",
    attack: run("DELETE FROM audit_chain WHERE root_uid = $A AND seq = 4"),
    seq: 4,
    what: "row 7 was inserted: everything of its time is sealed, and it is not",
  },
  {
    name: "the hash of an entry is changed",
    attack: run("UPDATE audit_chain SET hash = 'x' WHERE root_uid = $A AND seq = 2"),
    seq: 2,
    what: `row 3 ${NOT_SEALED_HERE}`,
  },
  {
    name: "the tail is cut from rows and chain",
    attack: run("DELETE FROM audit WHERE id >= 5", "DELETE FROM audit_chain WHERE root_uid = $A AND seq >= 3"),
    seq: 3,
    what: "the chain is cut: it ends here, and 4 entries were signed",
  },
  {
    name: "everything is removed but the head",
    attack: run("DELETE FROM audit", "DELETE FROM audit_chain"),
    seq: 1,
    what: "the chain is cut: it ends here, and 4 entries were signed",
  },
  {
    name: "a row is changed and the chain computed anew",
    attack: (db) => {
      run("UPDATE audit SET actor_uid = 'x' WHERE id = 3")(db);
      computeAnew(db);
    },
    seq: 4,
    what: "the chain was computed anew: it does not end in what was signed",
  },
  {
    name: "the tail is cut, and the head made to fit",
    attack: (db) => {
      run("DELETE FROM audit WHERE id >= 5", "DELETE FROM audit_chain WHERE root_uid = $A AND seq >= 3")(db);
      computeAnew(db);
      run(
        "UPDATE audit_heads SET seq = 2, hash = (SELECT hash FROM audit_chain WHERE root_uid = $A AND seq = 2) WHERE root_uid = $A",
      )(db);
    },
    seq: 2,
    what: "the signature of the head is wrong",
  },
  {
    name: "the head is removed",
    attack: run("DELETE FROM audit_heads WHERE root_uid = $A"),
    seq: 4,
    what: "the signed head is missing",
  },
  {
    name: "the head is that of another organisation",
    attack: run(
      "DELETE FROM audit_heads WHERE root_uid = $A",
      "UPDATE audit_heads SET root_uid = $A WHERE root_uid = $B",
    ),
    seq: 4,
    what: "the signature of the head is wrong",
  },
  {
    name: "the head is given another time",
    attack: run("UPDATE audit_heads SET time_ms = time_ms + 1 WHERE root_uid = $A"),
    seq: 4,
    what: "the signature of the head is wrong",
  },
  {
    name: "the head is replaced by an older one that was signed",
    attack: (db) => putHead(db, old),
    seq: 3,
    what: "the head is an older one: the chain goes on to 4 behind it",
  },
  {
    name: "the signature is no signature",
    attack: run("UPDATE audit_heads SET signature = 'x' WHERE root_uid = $A"),
    seq: 4,
    what: "the signature of the head is wrong",
  },
  {
    name: "the head is signed with a key that nobody knows",
    attack: (db) => putHead(db, forged.unknown),
    seq: 4,
    what: "the head is signed with a key that is not one of this installation",
  },
  {
    name: "the public key is replaced by that of the forger",
    attack: (db) => {
      putHead(db, forged.known);
      db.prepare("UPDATE keys SET public_jwk = ? WHERE purpose = 'audit'").run(forged.publicJwk);
    },
    seq: 4,
    what: "the signature of the head is wrong",
  },
  {
    name: "the head is signed for another purpose",
    attack: (db) => putHead(db, otherPurpose),
    seq: 4,
    what: "the signature of the head is wrong",
  },
  {
    name: "the head is not signed at all",
    attack: (db) => putHead(db, unsigned),
    seq: 4,
    what: "the signature of the head is wrong",
  },
];

let template: string;
let old: AuditHead;
let unsigned: AuditHead;
let otherPurpose: AuditHead;
let forged: { readonly known: AuditHead; readonly unknown: AuditHead; readonly publicJwk: string };

async function createSealedLog(): Promise<void> {
  const log = await openLog(memoryDir());
  template = log.directory;
  const sealer = log.sealer();
  const row = (id: number) =>
    auditRow(id % 2 ? victim : other, { timeMs: Date.now(), requestId: `request ${id}`, actorName: "Ann", body: BODY });
  await log.append(row(1), row(2), row(3), row(4));
  attackLog(log.directory, makeOlder(1));
  await sealer.pass();
  old = await headOf();
  await log.append(row(5), row(6));
  attackLog(log.directory, makeOlder(2));
  await log.append(row(7), row(8));
  await sealer.stop();
  assert.deepEqual(
    (await log.store.read((tx) => tx.audit.listNewest(8))).map(({ version, actorName }) => `${version} ${actorName}`),
    ["3 Ann", "3 Ann", "2 Ann", "2 Ann", "1 ", "1 ", "1 ", "1 "],
  );
  const { signature, ...head } = await headOf();
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const publicJwk = publicKey.export({ format: "jwk" });
  const { kid, key } = log.keys.getAuditSigningKey();
  const sign = async (name: string, by = privateKey, typ = "arbor-audit-head", alg = "ES256") => {
    const { hash, seq, timeMs } = head;
    const payload = Buffer.from(JSON.stringify({ hash, rootUid: victim, seq, timeMs }));
    const [header, , last] = (
      await new CompactSign(payload).setProtectedHeader({ alg, kid: name, typ }).sign(by)
    ).split(".");
    return { ...head, signature: `${header}..${last}` };
  };
  forged = {
    known: await sign(kid),
    unknown: await sign(await calculateJwkThumbprint(publicJwk)),
    publicJwk: JSON.stringify(publicJwk),
  };
  otherPurpose = await sign(kid, key, "JWT");
  const none = Buffer.from(JSON.stringify({ alg: "none", kid, typ: "arbor-audit-head" })).toString("base64url");
  unsigned = { ...head, signature: `${none}..` };
  await log.close();

  async function headOf(): Promise<AuditHead> {
    const found = await log.store.read((tx) => tx.auditChain.findHead(victim));
    assert.ok(found);
    return { ...found };
  }
}

function putHead(db: Db, { rootUid, seq, hash, timeMs, signature }: AuditHead): void {
  db.prepare("REPLACE INTO audit_heads VALUES (?, ?, ?, ?, ?)").run(rootUid, seq, hash, timeMs, signature);
}

// Makes every hash of the victim's chain fit its rows again.
function computeAnew(db: Db): void {
  const names = Object.entries(getTableColumns(schema.audit)).map(([property, { name }]) => `${name} AS "${property}"`);
  const rows = db.prepare(`SELECT ${names} FROM audit WHERE root_uid = ? ORDER BY id`).all(victim) as StoredAuditRow[];
  let end = CHAIN_START;
  for (const row of rows) {
    end = buildNextLink(end, row);
    db.prepare("UPDATE audit_chain SET hash = ? WHERE root_uid = ? AND seq = ?").run(end.hash, victim, end.seq);
  }
}

async function copyAndAttackLog(attack: (db: Db) => void) {
  const directory = memoryDir();
  for (const name of ["arbor.db", "master.key"]) cpSync(join(template, name), join(directory, name));
  const db = openDatabase(join(directory, "arbor.db"));
  attack(db);
  db.close();
  return openLog(directory);
}

describe("a log that was tampered with", () => {
  before(createSealedLog);

  test("is verified whole before that", async () => {
    const log = await copyAndAttackLog(() => {});
    for (const root of [victim, other]) {
      for (const { sealed, unsealed, fault } of [await log.verify(root), await verifyServed(log, root)]) {
        assert.deepEqual({ sealed, rows: unsealed.rows, fault }, { sealed: 4, rows: 0, fault: undefined });
      }
    }
    await log.close();
  });

  for (const { name, attack, seq, what } of tamperings) {
    test(`${name}: it is found, and sealing later rows does not repair it`, async () => {
      const log = await copyAndAttackLog(attack);
      const { fault, sealed } = await log.verify(victim);
      assert.deepEqual(fault, { seq, what });
      assert.ok(sealed <= 4);
      // A chain over the API has no bodies, and its rows have the numbers of their organisation.
      const isOnlyBody = /^the body of a row (?:of version \d )?is (?:changed|removed)$/.test(name);
      const served = isOnlyBody ? undefined : { seq, what: what.replace(/^row \d+/, `row ${seq}`) };
      assert.deepEqual((await verifyServed(log, victim)).fault, served, "over the API");

      await log.append(auditRow(victim), auditRow(rootUid(0xc)));
      await log.sealer().pass();
      assert.ok((await log.verify(victim)).fault, "still found out");
      const third = await log.verify(rootUid(0xc));
      assert.deepEqual([third.sealed, third.fault], [1, undefined], "and others are sealed all the same");
      await log.close();
    });
  }

  // What verification cannot detect is documented here.
  test("put back as a whole to what was signed once, it verifies, and shows in the number of rows alone", async () => {
    const log = await copyAndAttackLog((db) => {
      run("DELETE FROM audit WHERE id >= 5", "DELETE FROM audit_chain WHERE root_uid = $A AND seq >= 3")(db);
      putHead(db, old);
    });
    const { fault, sealed } = await log.verify(victim);
    assert.deepEqual({ fault, sealed }, { fault: undefined, sealed: 2 });
    await log.close();
  });

  test("removed with its chain and its head, it is not missed", async () => {
    const log = await copyAndAttackLog(
      run(...["audit", "audit_chain", "audit_heads"].map((table) => `DELETE FROM ${table} WHERE root_uid = $A`)),
    );
    assert.deepEqual(await log.store.read((tx) => tx.auditChain.listRoots()), [other]);
    await log.close();
  });
});
