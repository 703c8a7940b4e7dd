// Point-in-time recovery as docs/backup.md describes it, on a PostgreSQL server of its own that archives its log.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { runCommand } from "../support/command.js";
import { freePort } from "../support/free-port.js";
import { startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { withClient } from "./databases.js";
import { readConfiguration, readStatements } from "./documented-restore.js";

const BASE_URL = "http://arbor.example";
// PostgreSQL does not run as root.
const user = process.getuid?.() === 0 ? "postgres" : undefined;
const idOf = (flag: "-u" | "-g") => Number(execFileSync("id", [flag, user ?? ""], { encoding: "utf8" }));
const directory = mkdtempSync(join(tmpdir(), "arbor-pitr-"));
chmodSync(directory, 0o755);
if (user !== undefined) chownSync(directory, idOf("-u"), idOf("-g"));
const port = await freePort();
const url = `postgres://arbor@127.0.0.1:${port}/postgres`;
const started = new Set<string>();

function run(program: string, ...args: readonly string[]): void {
  const [command = "", ...rest] = [...(user === undefined ? [] : ["runuser", "-u", user, "--"]), program, ...args];
  // A server keeps the pipes of its parent open.
  execFileSync(command, rest, { cwd: tmpdir(), stdio: "ignore" });
}

const pathOf = (name: string) => join(directory, name);

/** The documented settings, with the directories and the moment of the test. */
function configure(data: string, block: "archive_mode" | "restore_command", moment?: string): void {
  const lines = readConfiguration(block)
    .replaceAll("/var/backups/wal", pathOf("wal"))
    .replace(/(?<=recovery_target_time = ')[^']+/, moment ?? "");
  appendFileSync(join(pathOf(data), "postgresql.conf"), `\n${lines}`);
}

function start(data: string): void {
  const flags = `-p ${port} -c listen_addresses=127.0.0.1 -c fsync=off -k ${directory}`;
  started.add(data);
  run("pg_ctl", "-D", pathOf(data), "-w", "-t", "30", "-o", flags, "-l", pathOf(`${data}.log`), "start");
}

function stop(data: string, mode: "fast" | "immediate"): void {
  run("pg_ctl", "-D", pathOf(data), "-m", mode, "-w", "stop");
  started.delete(data);
}

after(() => {
  for (const data of started) stop(data, "immediate");
  rmSync(directory, { recursive: true, force: true });
});

async function query(text: string): Promise<Record<string, unknown>[]> {
  return withClient(url, async (client) => (await client.query(text)).rows);
}

test("a base backup and the archive restore the moment before a loss, and no token of before is valid", async (t) => {
  run("mkdir", pathOf("wal"));
  run("initdb", "-D", pathOf("data"), "-U", "arbor", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync");
  configure("data", "archive_mode");
  start("data");
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const serve = () => startHarness({ databaseUrl: url, masterKeyFile, baseUrl: BASE_URL });
  const harness = await serve();
  let isServed = true;
  t.after(() => (isServed ? harness.stop() : undefined));
  run("pg_basebackup", `--pgdata=${pathOf("restored")}`, "--checkpoint=fast", "--no-sync", `--dbname=${url}`);

  // Neither is in the base backup: both come from the archive.
  const { identity, group, token } = await harness.organisation("example");
  const statusOf = async (at: string, bearer: string) =>
    (await fetch(`${at}/iam/v2beta1/groups/${group}`, { headers: { authorization: `Bearer ${bearer}` } })).status;
  assert.equal(await statusOf(harness.url, token), 200);
  const [{ moment } = {}] = await query("SELECT clock_timestamp()::text AS moment");
  await query("DELETE FROM role_bindings");
  assert.equal(await statusOf(harness.url, token), 403, "the loss");
  isServed = false;
  await harness.stop();
  // A server that stops archives the rest of its log.
  stop("data", "fast");

  configure("restored", "restore_command", String(moment));
  if (user !== undefined) run("touch", pathOf("restored/recovery.signal"));
  else writeFileSync(pathOf("restored/recovery.signal"), "");
  start("restored");
  for (let tries = 0; (await query("SELECT pg_is_in_recovery() AS yes"))[0]?.yes === true; tries++) {
    assert.ok(tries < 200, "the server is promoted");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await query(readStatements());
  const restored = await serve();
  t.after(() => restored.stop());
  assert.equal(await statusOf(restored.url, token), 401);
  assert.equal(await statusOf(restored.url, await restored.token(identity)), 200);
  const database = ["--database-url", url, "--master-key-file", masterKeyFile];
  const log = await runCommand(["audit", "list", "--root", "", ...database]);
  assert.match(log.stdout, / arbor\.database\.restored\.v1 /);
  const checked = await runCommand(["check", ...database]);
  assert.equal(checked.code, 0, checked.stdout);
});
