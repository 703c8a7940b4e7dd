// `arbor check` where it is not about one fault: what it prints, and beside a server.
import assert from "node:assert/strict";
import { chmodSync, closeSync, existsSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sql } from "drizzle-orm";
import { type CheckDatabase, readSqlite } from "../../../../src/store/check/database.js";
import { derivedIndexes } from "../../../../src/store/check/derived.js";
import { runCheck } from "../../../../src/store/check/findings.js";
import { createUidCheck, referenceCheck } from "../../../../src/store/check/references.js";
import { groupKind } from "../../../../src/store/iam/groups.js";
import { kinds } from "../../../../src/store/kinds.js";
import { tagKind } from "../../../../src/store/registry/tags.js";
import { openDatabase } from "../../../../src/store/sqlite/driver.js";
import { openSqlite } from "../../../../src/store/sqlite/open.js";
import { attack } from "../../../audit/log-kit.js";
import { runCommand } from "../../../support/command.js";
import { childUid, groupRow, rootUid } from "../../../support/rows.js";
import { memoryDir } from "../../../support/temp-dir.js";
import { fillWorld, uids } from "./world.js";

async function createFilledStore(): Promise<string> {
  const directory = memoryDir();
  const store = openSqlite({ directory });
  await fillWorld(store, directory);
  await store.close();
  return directory;
}

const names = [
  ...[
    "schema",
    "integrity",
    "references",
    "uids",
    "roots",
    "counters",
    "advisory values",
    "advisory texts",
    "overlay selections",
    "words of names",
    "audit log",
    "keys",
  ],
  "quotas",
];
const sound = (checks: readonly string[]) => checks.map((name) => `${name}: sound\n`).join("");

test("a line per check says that it is sound", async () => {
  const data = await createFilledStore();
  assert.deepEqual(await runCommand(["check", "--data", data]), { code: 0, stdout: sound(names), stderr: "" });
  const { stdout, stderr } = await runCommand(["check", "--data", data, "--progress"]);
  assert.equal(stdout, sound(names));
  assert.match(stderr, /^schema\n/);
});

test("a finding has the table, the key and a remedy, and more of its kind are counted", async () => {
  const data = await createFilledStore();
  const inserts = Array.from(
    { length: 15 },
    (_, i) => `INSERT INTO tag_history VALUES ('${uids.gone}', ${i + 10}, 'it''s')`,
  );
  attack(data, ...inserts);
  const { code, stdout, stderr } = await runCommand(["check", "--data", data]);
  assert.equal(code, 1);
  assert.equal(stderr, "arbor: the check has 15 findings\n");
  const lines = stdout.split("\n").filter((line) => !line.endsWith(": sound"));
  assert.equal(lines[0], "references: 15 findings");
  const key = `tag_uid=${uids.gone}, time_ms=10, digest=it's`;
  assert.equal(lines[1], `  tag_history ${key}: tag_uid names ${uids.gone}, which is not in tags`);
  const condition = `tag_uid = '${uids.gone}' AND time_ms = 10 AND digest = 'it''s'`;
  const remedy = `delete the row, which nothing reads: DELETE FROM tag_history WHERE ${condition}`;
  assert.equal(lines[2], `    remedy: ${remedy}`);
  assert.deepEqual(lines.slice(21), ["  and 5 more", ""]);
  attack(data, remedy.slice(remedy.indexOf("DELETE")));
  assert.equal((await runCommand(["check", "--data", data])).stderr, "arbor: the check has 14 findings\n");
});

test("a missing master key file is a finding, and what needs it is left out", async () => {
  const data = await createFilledStore();
  rmSync(join(data, "master.key"));
  const { code, stdout } = await runCommand(["check", "--data", data]);
  const reason = `there is no master key file ${data}/master.key`;
  const lines = stdout.slice(sound(names.slice(0, names.indexOf("audit log"))).length).split("\n");
  assert.deepEqual(
    [code, lines],
    [
      1,
      [
        `audit log: left out: ${reason}`,
        "keys: 1 finding",
        `  settings master-key-check: ${reason}`,
        "    remedy: restore it from where it is kept, or name it with --master-key-file",
        `keys: left out: ${reason}`,
        "quotas: sound",
        "",
      ],
    ],
  );
  assert.equal(existsSync(join(data, "master.key")), false);
});

test("a page that cannot be read is a finding of each check that reads it", async () => {
  const data = await createFilledStore();
  const db = openDatabase(join(data, "arbor.db"));
  const page = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'tag_history'").pluck().get() as number;
  db.pragma("wal_checkpoint(TRUNCATE)");
  db.close();
  const file = openSync(join(data, "arbor.db"), "r+");
  writeSync(file, Buffer.alloc(4096, 0xff), 0, 4096, (page - 1) * 4096);
  closeSync(file);
  const { code, stdout, stderr } = await runCommand(["check", "--data", data]);
  assert.equal(code, 1);
  assert.match(stdout, /^integrity: \d+ findings?$/m, stderr);
  assert.match(stdout, /^references: 1 finding\n.* the file: the check ended early: .*malformed\n.*restore a backup$/m);
  assert.match(stdout, /^uids: sound$/m);
});

test("all checks see the database as of one moment, whatever a server writes meanwhile", async () => {
  const data = await createFilledStore();
  const server = openSqlite({ directory: data, exclusive: true });
  const snapshot = readSqlite(data);
  const checks = [referenceCheck, createUidCheck(kinds), ...derivedIndexes.map(({ check }) => check)];
  const run = async (db: CheckDatabase) => {
    const results: number[] = [];
    for (const check of checks) {
      results.push((await runCheck(check, db, () => {})).findings.length);
      await server.write((tx) => tx.table(groupKind).insert(groupRow(childUid(uids.squad, results.length + 1_000))));
      await server.write((tx) => tx.table(tagKind).delete(childUid(uids.repo, results.length)));
    }
    return results;
  };
  const none = checks.map(() => 0);
  assert.deepEqual(await run(snapshot), none);
  const [old] = await snapshot.all<{ n: number }>(sql`select count(*) as n from groups`);
  assert.equal(old?.n, 4);
  await snapshot.close();
  assert.deepEqual(await runCommand(["check", "--data", data]), { code: 0, stdout: sound(names), stderr: "" });
  await server.close();
});

test("a repair is refused while a server runs", async () => {
  const data = await createFilledStore();
  const server = openSqlite({ directory: data, exclusive: true });
  attack(data, `INSERT INTO counters (scope, counter, slot, n) VALUES ('${rootUid(0xdead)}', 8, 0, 1)`);
  const repair = await runCommand(["check", "--repair", "--data", data]);
  assert.equal(repair.code, 6);
  assert.equal(repair.stderr, `arbor: Precondition failed: a server uses ${data}: stop it, then repair\n`);
  await server.close();
  assert.equal((await runCommand(["check", "--repair", "--data", data])).code, 0);
});

test("it leaves the permissions of files, which a server would correct", async () => {
  const data = await createFilledStore();
  chmodSync(join(data, "arbor.db"), 0o640);
  assert.equal((await runCommand(["check", "--data", data])).code, 0);
  assert.equal(statSync(join(data, "arbor.db")).mode & 0o777, 0o640);
});
