// Imports into PostgreSQL end with VACUUM (ANALYZE). Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { groupKind } from "../../src/store/iam/groups.js";
import { openPg } from "../../src/store/pg/open.js";
import { vacuumDatabase } from "../../src/store/pg/vacuum.js";
import { runCommand } from "../support/command.js";
import { groupRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";
import { manyRecord } from "../vulnerabilities/osv-kit.js";
import { emptyDatabase, newDatabase, withClient } from "./databases.js";

/** Whether the server knows how many rows a table has, and pages of it whose rows everybody sees. */
async function isVacuumed(url: string, table: string): Promise<boolean> {
  const { rows } = await withClient(url, (client) =>
    client.query<{ done: boolean }>(
      "SELECT reltuples > 0 AND relallvisible > 0 AS done FROM pg_class WHERE oid = $1::regclass",
      [table],
    ),
  );
  return rows[0]?.done === true;
}

test("a copy into PostgreSQL", async () => {
  const data = tempDir();
  await runCommand(["bootstrap", "--org", "a.example", "--data", data]);
  const url = await emptyDatabase();
  const copied = await runCommand(["copy", "--data", data, "--to", url]);
  assert.equal(copied.code, 0, copied.stderr);
  assert.ok(await isVacuumed(url, "groups"));
});

test("an import of advisories", async () => {
  const url = await newDatabase();
  const key = join(tempDir(), "master.key");
  writeFileSync(key, `${"A".repeat(43)}=\n`, { mode: 0o600 });
  const at = ["--database-url", url, "--master-key-file", key];
  const made = await runCommand(["bootstrap", "--org", "a.example", "--json", ...at]);
  assert.equal(made.code, 0, made.stderr);
  const { group } = JSON.parse(made.stdout);
  const { id, json } = manyRecord(1);
  const file = join(tempDir(), `${id}.json`);
  writeFileSync(file, json);
  const imported = await runCommand(["advisories", "import", file, "--group", group, ...at]);
  assert.equal(imported.code, 0, imported.stderr);
  assert.ok(await isVacuumed(url, "advisories"));
});

test("a role that owns no table does nothing, and does not fail", async () => {
  const url = new URL(await newDatabase());
  const store = await openPg({ url: url.href });
  await store.write((tx) => tx.table(groupKind).insert(groupRow(rootUid(1))));
  await store.close();
  const role = `reader_${process.pid}`;
  await withClient(url.href, (client) => client.query(`CREATE ROLE ${role} LOGIN`));
  const name = "arbor test";
  await vacuumDatabase({ url: url.href.replace(url.username, role), tls: undefined, name });
  assert.equal(await isVacuumed(url.href, "groups"), false);
  await vacuumDatabase({ url: url.href, tls: undefined, name });
  assert.equal(await isVacuumed(url.href, "groups"), true, "control: the owner does");
});
