// The consistency check that other tests rely on finds every kind of damage.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { openSqlite } from "../../src/store/open-sqlite.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite-driver.js";
import { inconsistenciesIn } from "../support/consistency.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";
import { repoRow, tagRow } from "./registry-suite.js";

const root = rootUid(1);

async function database(): Promise<SqliteDatabase> {
  const directory = tempDir();
  const store = openSqlite({ directory });
  await store.write(async (tx) => {
    for (const uid of [root, childUid(root, 1), childUid(childUid(root, 1), 2), rootUid(2)]) {
      await tx.groups.insert(groupRow(uid));
    }
    await tx.groups.update(root, { name: "renamed" }, 2_000);
    await tx.identities.insert(identityRow(rootUid(3)));
    await tx.identities.insert(identityRow(childUid(root, 3)));
    await tx.roles.insert(roleRow(rootUid(4)));
    await tx.roleBindings.insert(bindingRow(childUid(root, 5), rootUid(3), rootUid(4)));
    const repo = repoRow(childUid(root, 6));
    await tx.repos.insert(repo);
    for (let n = 0; n < 8; n++) await tx.tags.insert(tagRow(n, { repoUid: repo.uid }));
    const [usual, hidden] = [tagRow(0, { repoUid: repo.uid }), tagRow(1, { repoUid: repo.uid })];
    for (const tag of [usual, hidden]) await tx.tags.replace({ ...tag, updateTimeMs: 2_000 });
    for (const n of [2, 4]) await tx.tags.delete(childUid(repo.uid, n));
  });
  await store.close();
  return openDatabase(join(directory, "arbor.db"));
}

test("an undamaged database has no inconsistencies", async (t) => {
  const db = await database();
  t.after(() => db.close());
  assert.deepEqual(inconsistenciesIn(db), []);
});

const damages: readonly { sql: string; found: RegExp; reason: string }[] = [
  {
    sql: "DELETE FROM text_entries WHERE (list, scope, below) IN (SELECT list, scope, below FROM text_entries LIMIT 1)",
    found: /text_entries: 1 missing/,
    reason: "an entry is missing",
  },
  {
    sql: "DELETE FROM time_entries WHERE length(below) = 8",
    found: /time_entries: \d+ missing/,
    reason: "entries are missing",
  },
  {
    sql: "UPDATE groups SET name = 'other' WHERE parent_uid IS NOT NULL AND length(uid) = 57",
    found: /text_entries: \d+ missing.*\n.*text_entries: \d+ too many/,
    reason: "a row changed without its entries",
  },
  {
    sql: `INSERT INTO text_entries SELECT 8, id, 'x', x'00' FROM scopes WHERE uid = '${root}'`,
    found: /text_entries: 1 too many/,
    reason: "an entry without a row",
  },
  {
    sql: `UPDATE totals SET n = n + 1 WHERE scope = (SELECT id FROM scopes WHERE uid = '${root}')`,
    found: /totals: \d+ missing/,
    reason: "a total is wrong",
  },
  {
    sql: "INSERT INTO totals VALUES (2, 999, 0, 1)",
    found: /totals: 1 too many/,
    reason: "a total of nothing",
  },
  {
    sql: `INSERT INTO scopes (uid) VALUES ('${root}/x')`,
    found: /scopes: .* has neither/,
    reason: "lists of nothing",
  },
  {
    sql: "UPDATE tags SET family = 1 WHERE name = 'tag-00'",
    found: /text_entries: 2 too many.*\n.*time_entries: 4 too many/,
    reason: "a tag is of another family than in the index",
  },
  {
    sql: "PRAGMA foreign_keys = OFF; DELETE FROM roles",
    found: /foreign_key_check/,
    reason: "a referenced row is missing",
  },
];

for (const { sql, found, reason } of damages) {
  test(`found: ${reason}`, async (t) => {
    const db = await database();
    t.after(() => db.close());
    db.exec(sql);
    assert.match(inconsistenciesIn(db).join("\n"), found);
  });
}
