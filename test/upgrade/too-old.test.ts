// Databases of versions before 1.0 on SQLite: every command refuses them, and names version 1.7. On PostgreSQL: test/pg/.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { backupFiles } from "../../src/store/backup/manifest.js";
import { listSchemaMigrations } from "../../src/store/migrate/schema-migrations.js";
import { attack } from "../audit/log-kit.js";
import { runCommand } from "../support/command.js";
import { listHostCommands, listTree } from "../support/host-commands.js";
import { tempDir } from "../support/temp-dir.js";
import { createOldDirectory, TOO_OLD } from "./too-old.js";

describe("a database of version 0.11", async () => {
  const { onInstallation } = await listHostCommands("--data", tempDir());
  const commands = [
    ...onInstallation,
    { name: "bootstrap", args: ["bootstrap", "--org", "other.example"] },
    { name: "serve", args: ["serve", "--listen", "127.0.0.1:0"] },
    { name: "migrate --expand", args: ["migrate", "--expand"] },
    { name: "migrate --expand --dry-run", args: ["migrate", "--expand", "--dry-run"] },
  ];
  for (const { name, args } of commands) {
    test(`is refused by arbor ${name}, which changes nothing`, async () => {
      const data = createOldDirectory();
      const before = listContent(data);
      const { code, stdout, stderr } = await runCommand([...args, "--data", data]);
      assert.deepEqual([code, stdout], [6, ""], stderr);
      assert.ok(stderr.includes(`arbor: ${TOO_OLD}\n`), stderr);
      assert.deepEqual(listContent(data), before);
    });
  }

  test("is refused whatever oldest version it names", async () => {
    for (const statement of [
      "DELETE FROM settings WHERE name = 'oldest_version'",
      "UPDATE settings SET value = '1.0.0' WHERE name = 'oldest_version'",
    ]) {
      const data = createOldDirectory();
      attack(data, statement);
      assert.ok((await runCommand(["migrate", "--data", data])).stderr.includes(TOO_OLD), statement);
    }
  });

  test("control: one whose record has the first change of version 1.0 is another case", async () => {
    const data = createOldDirectory();
    const [first] = listSchemaMigrations("sqlite", 0);
    attack(data, `INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('', ${first?.createdMs})`);
    const { code, stdout, stderr } = await runCommand(["migrate", "--data", data]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^run next: arbor migrate --expand$/m);
  });

  // Not the files that locks and readers leave.
  function listContent(data: string): string[] {
    return listTree(data).filter((line) => !/^\S+(?:\.lock|-wal|-shm) |^\S+ 40/.test(line));
  }
});

test("a backup by version 0.11 is not restored", async () => {
  const data = createOldDirectory();
  const backup = tempDir();
  attack(data, "PRAGMA journal_mode = DELETE");
  const bytes = readFileSync(join(data, "arbor.db"));
  writeFileSync(join(backup, backupFiles.database), bytes, { mode: 0o600 });
  writeFileSync(join(backup, backupFiles.masterKey), readFileSync(join(data, "master.key")), { mode: 0o600 });
  const manifest = {
    format: 1,
    arborVersion: "0.11.0",
    snapshotTime: new Date().toISOString(),
    database: {
      bytes: bytes.length,
      sha256: createHash("sha256").update(bytes).digest("hex"),
      lastMigration: "0016_ticket_origins",
      oldestVersion: "0.11.0",
    },
    includesMasterKey: true,
    auditHeads: [],
  };
  writeFileSync(join(backup, backupFiles.manifest), JSON.stringify(manifest));
  const to = join(tempDir(), "data");
  const { code, stdout, stderr } = await runCommand(["restore", backup, "--data", to]);
  assert.deepEqual([code, stdout, stderr], [6, "", `arbor: ${TOO_OLD}\n`]);
  assert.equal(existsSync(to), false);
});

// A database records the time of the last change that it has, and gets those after it.
test("changes of the schema are in the order of their times", () => {
  for (const dialect of ["sqlite", "pg"] as const) {
    const times = listSchemaMigrations(dialect, 0).map(({ createdMs }) => createdMs);
    assert.ok(times.length > 1);
    assert.deepEqual(
      times,
      [...new Set(times)].sort((a, b) => a - b),
    );
  }
});
