// Commands on an empty PostgreSQL database: they fail, name it and create nothing.
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import pg from "pg";
import { runCommand } from "../support/command.js";
import { listHostCommands, listTree } from "../support/host-commands.js";
import { tempDir } from "../support/temp-dir.js";
import { emptyDatabase } from "./databases.js";

const parent = tempDir();
const url = await emptyDatabase();
const name = new URL(url).pathname.slice(1);
const flags = ["--database-url", url, "--master-key-file", join(parent, "master.key"), "--data", join(parent, "data")];

async function listRelations(): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      "SELECT n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace " +
        "WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'",
    );
    return rows.map((row) => row.name);
  } finally {
    await client.end();
  }
}

describe("on a PostgreSQL database without tables", async () => {
  const { onInstallation } = await listHostCommands("--database-url", parent);
  // Backups are made with other programs, and so is a file made smaller.
  const commands = onInstallation.filter(({ name }) => !/^(backup|migrate --vacuum)\b/.test(name));
  const before = listTree(parent);
  for (const { name: command, args } of commands) {
    test(`arbor ${command} fails and creates nothing`, async () => {
      const { code, stdout, stderr } = await runCommand([...args, ...flags]);
      assert.deepEqual([code, stdout], [6, ""], stderr);
      assert.ok(stderr.includes(`there is no installation in the database ${name}: it has no tables of one`), stderr);
      assert.deepEqual(await listRelations(), []);
      assert.deepEqual(listTree(parent), before);
    });
  }

  test("arbor migrate --expand --dry-run says that there is none, and creates nothing", async () => {
    const { code, stdout } = await runCommand(["migrate", "--expand", "--dry-run", ...flags]);
    assert.equal(code, 0);
    assert.ok(stdout.startsWith(`-- there is no installation in the database ${name}: --expand creates one\nCREATE `));
    assert.deepEqual(await listRelations(), []);
  });

  test("control: a migration that creates the tables is seen", async () => {
    const { code, stderr } = await runCommand(["migrate", "--expand", ...flags]);
    assert.equal(code, 0, stderr);
    assert.notEqual((await listRelations()).length, 0);
    // The installation is complete except for its master key, which must be given with PostgreSQL.
    const missing = await runCommand(["audit", "verify", ...flags]);
    assert.match(missing.stderr, /the master key \S+ of this installation is missing/);
  });
});
