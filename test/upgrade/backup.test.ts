// Backups of databases of versions 0.10 and 0.11: restored, they are converted and answer as before.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { backupFiles } from "../../src/store/backup/manifest.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { attack } from "../audit/log-kit.js";
import { runCommand } from "../support/command.js";
import { tempDir } from "../support/temp-dir.js";
import { type Fixture, oldFixtures, restoreSqlite } from "./fixtures.js";
import { compareResponses, startUpgraded } from "./upgrade-suite.js";

for (const fixture of oldFixtures) {
  const { version, sqlite } = fixture;
  test(`a backup by version ${version} restores, is converted and answers`, async (t) => {
    const backup = backUp(fixture);
    const to = join(tempDir(), "data");
    const restored = await runCommand(["restore", backup, "--data", to]);
    assert.equal(restored.code, 0, restored.stderr);
    assert.match(restored.stdout, /^the database is that of version 0\.10 or 0\.11: .* run `arbor migrate` /m);
    const served = await runCommand(["serve", "--listen", "127.0.0.1:0", "--data", to]);
    assert.deepEqual([served.code, /run `arbor migrate`/.test(served.stderr)], [6, true], served.stderr);
    const converted = await runCommand(["migrate", "--data", to]);
    assert.equal(converted.code, 0, converted.stderr);

    const harness = await startUpgraded({ data: to });
    t.after(() => harness.stop());
    assert.deepEqual(await compareResponses(harness, sqlite.owner, sqlite.answers), []);
    const log = await runCommand(["audit", "list", "--root", "", "--data", to]);
    assert.match(log.stdout, / arbor\.database\.restored\.v1 /);
    const checked = await runCommand(["check", "--data", to]);
    assert.equal(checked.code, 0, checked.stdout);
  });
}

test("a restored database that cannot be converted names the version that makes it ready", async () => {
  const backup = backUp(oldFixtures[0] as Fixture, "UPDATE settings SET value = '0.9.0' WHERE name = 'oldest_version'");
  const to = join(tempDir(), "data");
  const restored = await runCommand(["restore", backup, "--data", to]);
  assert.equal(restored.code, 0, restored.stderr);
  assert.match(restored.stdout, /: run `arbor migrate --expand --contract` of version 0\.11\.0 /);
});

test("a backup of another database gives other answers", async (t) => {
  const fixture = oldFixtures[0] as Fixture;
  const backup = backUp(fixture, "UPDATE groups SET description = 'changed' WHERE name = 'storage'");
  const to = join(tempDir(), "data");
  for (const args of [["restore", backup], ["migrate"]]) {
    const { code, stderr } = await runCommand([...args, "--data", to]);
    assert.equal(code, 0, stderr);
  }
  const harness = await startUpgraded({ data: to });
  t.after(() => harness.stop());
  assert.ok((await compareResponses(harness, fixture.sqlite.owner, fixture.sqlite.answers)).length > 0);
});

/** A backup as `arbor backup --with-master-key` of that version makes it. */
function backUp(fixture: Fixture, statement?: string): string {
  const data = restoreSqlite(fixture);
  if (statement !== undefined) attack(data, statement);
  const backup = tempDir();
  const file = join(backup, backupFiles.database);
  const db = openDatabase(join(data, "arbor.db"));
  db.pragma("journal_mode = DELETE");
  const heads = db.prepare(
    "SELECT root_uid AS rootUid, seq, hash, time_ms AS timeMs FROM audit_heads ORDER BY root_uid",
  );
  const auditHeads = (heads.all() as { timeMs: number }[]).map(({ timeMs, ...head }) => ({
    ...head,
    signTime: new Date(timeMs).toISOString(),
  }));
  db.close();
  const bytes = readFileSync(join(data, "arbor.db"));
  writeFileSync(file, bytes, { mode: 0o600 });
  writeFileSync(join(backup, backupFiles.masterKey), readFileSync(join(data, "master.key")), { mode: 0o600 });
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const manifest = {
    format: 1,
    arborVersion: fixture.version,
    snapshotTime: new Date().toISOString(),
    database: {
      bytes: bytes.length,
      sha256,
      lastMigration: fixture.version === "0.10.0" ? "0015_audit_checkpoints" : "0016_ticket_origins",
      oldestVersion: fixture.version,
    },
    includesMasterKey: true,
    auditHeads,
  };
  writeFileSync(join(backup, backupFiles.manifest), JSON.stringify(manifest));
  return backup;
}
