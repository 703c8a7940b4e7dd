// The backup and the restore on PostgreSQL that docs/backup.md describes.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { createTokens } from "../../src/issuer/tokens.js";
import { randomIds } from "../../src/kernel/ids.js";
import { runCommand } from "../support/command.js";
import { type Harness, startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { emptyDatabase, withClient } from "./databases.js";
import { readStatements } from "./documented-restore.js";

const BASE_URL = "http://arbor.example";

test("a dump that is restored as documented answers as before, and no token of before is valid", async (t) => {
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const start = (databaseUrl: string) => startHarness({ databaseUrl, masterKeyFile, baseUrl: BASE_URL });
  const url = await emptyDatabase();
  const harness = await start(url);
  const { identity, group, token } = await harness.organisation("example");
  const { store, keys } = harness.app.installation;
  const tokens = createTokens({ keys, ids: randomIds, issuer: BASE_URL });
  const login = await store.write((tx) => tokens.createRefreshToken(tx, identity, { audience: BASE_URL }, Date.now()));
  const before = await getGroup(harness, group, token);
  assert.equal(before.status, 200);
  const dump = join(tempDir(), "dump");
  execFileSync("pg_dump", ["--format=custom", `--file=${dump}`, url]);
  await harness.stop();

  const restored = await emptyDatabase();
  execFileSync("pg_restore", ["--exit-on-error", "--no-owner", `--dbname=${restored}`, dump]);
  // The control: as the dump is, everything is valid.
  const revived = await start(restored);
  assert.deepEqual(await getGroup(revived, group, token), before);
  await revived.stop();

  await withClient(restored, (client) => client.query(readStatements()));
  const voided = await start(restored);
  t.after(() => voided.stop());
  assert.equal((await getGroup(voided, group, token)).status, 401);
  const refreshUrl = `${voided.url}/sts/exchange_refresh_token?aud=${encodeURIComponent(BASE_URL)}`;
  const refreshed = await fetch(refreshUrl, { method: "POST", headers: { authorization: `Bearer ${login}` } });
  assert.equal(refreshed.status, 401);
  assert.deepEqual(await getGroup(voided, group, await voided.token(identity)), before);
  const database = ["--database-url", restored, "--master-key-file", masterKeyFile];
  const log = await runCommand(["audit", "list", "--root", "", ...database]);
  assert.match(log.stdout, / arbor\.database\.restored\.v1 /);
  const checked = await runCommand(["check", ...database]);
  assert.equal(checked.code, 0, checked.stdout);
});

async function getGroup({ url }: Harness, uid: string, token: string) {
  const response = await fetch(`${url}/iam/v2beta1/groups/${uid}`, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: await response.json() };
}
