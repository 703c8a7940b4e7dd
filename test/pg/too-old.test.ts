// Databases of versions before 1.0 on PostgreSQL: every command refuses them, and names version 1.7. Needs
// TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";
import { createFilledDirectory } from "../store/copy/copy-kit.js";
import { runCommand } from "../support/command.js";
import { listHostCommands } from "../support/host-commands.js";
import { tempDir } from "../support/temp-dir.js";
import { createOldDirectory, oldPostgres, TOO_OLD } from "../upgrade/too-old.js";
import { emptyDatabase, withClient } from "./databases.js";

it("every command refuses a database of version 0.11, and changes nothing", async () => {
  const url = await emptyDatabase();
  await withClient(url, (client) => client.query(oldPostgres));
  const masterKeyFile = join(createOldDirectory(), "master.key");
  const location = ["--database-url", url, "--master-key-file", masterKeyFile, "--data", tempDir()];
  const readAll = () =>
    withClient(url, async (client) => {
      const names = "SELECT table_schema || '.' || table_name AS name FROM information_schema.tables";
      const tables = await client.query(`${names} WHERE table_schema IN ('public', 'drizzle') ORDER BY 1`);
      const settings = await client.query("SELECT * FROM public.settings ORDER BY name");
      return [tables.rows, settings.rows];
    });
  const before = await readAll();
  const { onInstallation } = await listHostCommands("--database-url", tempDir());
  const commands = [
    // Backups are made with other programs, and so is a file made smaller.
    ...onInstallation.filter(({ name }) => !/^(backup|migrate --vacuum)\b/.test(name)),
    { name: "bootstrap", args: ["bootstrap", "--org", "other.example"] },
    { name: "serve", args: ["serve", "--listen", "127.0.0.1:0"] },
    { name: "migrate --expand", args: ["migrate", "--expand"] },
    { name: "migrate --expand --dry-run", args: ["migrate", "--expand", "--dry-run"] },
  ];
  for (const name of ["copy", "check", "migrate", "migrate --contract"]) {
    assert.ok(
      commands.some((one) => one.name === name),
      name,
    );
  }
  for (const { name, args } of commands) {
    const { code, stdout, stderr } = await runCommand([...args, ...location]);
    assert.deepEqual([name, code, stdout], [name, 6, ""], stderr);
    assert.ok(stderr.includes(`arbor: ${TOO_OLD}\n`), `${name}: ${stderr}`);
  }
  const into = await runCommand(["copy", "--data", createFilledDirectory(), "--to", url]);
  assert.deepEqual([into.code, into.stderr], [6, `arbor: ${TOO_OLD}\n`]);
  assert.deepEqual(await readAll(), before);
});
