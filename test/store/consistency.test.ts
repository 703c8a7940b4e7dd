// The consistency check that other tests rely on finds every kind of damage.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { repoKind } from "../../src/store/registry/repos.js";
import { tagKind } from "../../src/store/registry/tags.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
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
      await tx.table(groupKind).insert(groupRow(uid));
    }
    await tx.table(groupKind).update(root, { name: "renamed" }, 2_000);
    await tx.table(identityKind).insert(identityRow(rootUid(3)));
    await tx.table(identityKind).insert(identityRow(childUid(root, 3)));
    await tx.table(roleKind).insert(roleRow(rootUid(4)));
    await tx.table(roleBindingKind).insert(bindingRow(childUid(root, 5), rootUid(3), rootUid(4)));
    const repo = repoRow(childUid(root, 6));
    await tx.table(repoKind).insert(repo);
    for (let n = 0; n < 8; n++) await tx.table(tagKind).insert(tagRow(n, { repoUid: repo.uid }));
    const [usual, hidden] = [tagRow(0, { repoUid: repo.uid }), tagRow(1, { repoUid: repo.uid })];
    for (const tag of [usual, hidden]) await tx.table(tagKind).replace({ ...tag, updateTimeMs: 2_000 });
    for (const n of [2, 4]) await tx.table(tagKind).delete(childUid(repo.uid, n));
  });
  await store.close();
  return openDatabase(join(directory, "arbor.db"));
}

test("an undamaged database has no inconsistencies", async (t) => {
  const db = await database();
  t.after(() => db.close());
  assert.deepEqual(inconsistenciesIn(db), []);
});

test("a deleted group leaves no counters", async (t) => {
  const directory = tempDir();
  const store = openSqlite({ directory });
  const child = childUid(root, 1);
  await store.write(async (tx) => {
    for (const uid of [root, child]) await tx.table(groupKind).insert(groupRow(uid));
  });
  const countersOf = (uid: string) => {
    const db = openDatabase(join(directory, "arbor.db"));
    t.after(() => db.close());
    return db.prepare("SELECT * FROM counters WHERE scope = ?").all(uid).length;
  };
  assert.ok(countersOf(root) > 0, "control: a child is counted");
  await store.write(async (tx) => {
    for (const uid of [child, root]) await tx.table(groupKind).delete(uid);
  });
  await store.close();
  assert.equal(countersOf(root), 0);
});

const damages: readonly { sql: string; found: RegExp; reason: string }[] = [
  {
    sql: "DELETE FROM counters WHERE counter = 8 AND length(scope) = 57",
    found: /counters: 1 missing/,
    reason: "a counter is missing",
  },
  {
    sql: `UPDATE counters SET n = n + 1 WHERE scope = '${root}'`,
    found: /counters: \d+ missing/,
    reason: "a counter is wrong",
  },
  {
    sql: "INSERT INTO counters (scope, counter, slot, n) VALUES ('x', 8, 0, 1)",
    found: /counters: 1 too many/,
    reason: "a counter of nothing",
  },
  {
    sql: "UPDATE groups SET root_uid = 'x' WHERE length(uid) = 57",
    found: /groups: .* has the root x/,
    reason: "a row has another root than its uid",
  },
  {
    sql: "UPDATE tags SET family = 1 WHERE name = 'tag-00'",
    found: /counters: \d+ missing.*\n.*counters: \d+ too many/,
    reason: "a tag is of another family than was counted",
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
