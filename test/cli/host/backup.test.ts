// `arbor backup` and `arbor restore`: what they print, what they refuse, and which tokens a restore leaves valid.
import assert from "node:assert/strict";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, describe, it, test } from "node:test";
import { readMasterKey } from "../../../src/issuer/keys/master-key.js";
import { createTokens } from "../../../src/issuer/tokens.js";
import { randomIds } from "../../../src/kernel/ids.js";
import type { BackupManifest } from "../../../src/store/backup/manifest.js";
import { holdFileLock } from "../../../src/store/sqlite/data-directory.js";
import { runCommand } from "../../support/command.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { tempDir } from "../../support/temp-dir.js";

const BASE_URL = "http://arbor.example";
const settings = (data: string) => ({ data, baseUrl: BASE_URL });
const get = async (harness: Harness, path: string, token: string) => {
  const response = await fetch(`${harness.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};
const refresh = async (harness: Harness, token: string) => {
  const url = `${harness.url}/sts/exchange_refresh_token?aud=${encodeURIComponent(BASE_URL)}`;
  return (await fetch(url, { method: "POST", headers: { authorization: `Bearer ${token}` } })).status;
};

describe("a backup of a running service, restored elsewhere", () => {
  let data: string;
  let backup: string;
  let harness: Harness;
  let [token, revoked, refreshToken, replaced, list, page] = ["", "", "", "", "", ""];
  before(async () => {
    data = tempDir();
    harness = await startHarness(settings(data));
    const { identity, group, token: owner } = await harness.organisation("example");
    token = owner;
    for (const name of ["one", "two", "three"]) {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const path = `${harness.url}/iam/v2beta1/groups/${group}`;
      await fetch(path, { method: "POST", headers, body: JSON.stringify({ name }) });
    }
    list = `/iam/v2beta1/groups?uidp.descendants_of=${group}&page_size=1&order_by=name`;
    page = String((await get(harness, list, token)).body.nextPageToken);
    const { store, keys } = harness.app.installation;
    const tokens = createTokens({ keys, ids: randomIds, issuer: BASE_URL });
    const login = () =>
      store.write((tx) => tokens.createRefreshToken(tx, identity, { audience: BASE_URL }, Date.now()));
    [refreshToken, replaced] = [await login(), await login()];
    const other = await harness.identity({}, group);
    await harness.bind(other.uid, "viewer", group);
    revoked = other.token;
    await waitUntilSealed(harness);

    backup = join(tempDir(), "backup");
    const made = await runCommand(["backup", backup, "--data", data, "--with-master-key"]);
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, /^\S+backup: the state of \S+Z, 1 MiB, 1 audit log, SHA-256 [0-9a-f]{64}\n$/);
    assert.equal(made.stderr, "");
    // What the backup does not know.
    assert.equal((await runCommand(["admin", "identities", "revoke", other.uid, "--yes", "--data", data])).code, 0);
    assert.equal((await get(harness, list, revoked)).status, 401);
    assert.equal(await refresh(harness, replaced), 200);
    await harness.stop();
  });

  after(() => harness.stop());

  // A service on a restored copy.
  async function restoreAndServe(...flags: readonly string[]) {
    const to = join(tempDir(), "data");
    const done = await runCommand(["restore", backup, "--data", to, ...flags]);
    assert.equal(done.code, 0, done.stderr);
    const copy = await startHarness(settings(to));
    return { to, done, copy };
  }

  it("voids every token of before, so that nothing that was revoked or used since is valid again", async (t) => {
    const { to, done, copy } = await restoreAndServe();
    t.after(() => copy.stop());
    assert.match(done.stdout, /^\S+ has the state of \S+Z\nall API and refresh tokens are void: [^\n]+\n$/);
    for (const bearer of [token, revoked]) assert.equal((await get(copy, list, bearer)).status, 401);
    for (const bearer of [refreshToken, replaced]) assert.equal(await refresh(copy, bearer), 401);
    const log = await runCommand(["audit", "list", "--page-size", "1000", "--data", to]);
    assert.match(log.stdout, / arbor\.database\.restored\.v1 .* keepSessions false, snapshotTime 20\S+Z .*\n/);
    await waitUntilSealed(copy);
    const verified = await runCommand(["audit", "verify", "--data", to]);
    assert.equal(verified.code, 0, verified.stderr);
  });

  it("with --keep-sessions has them valid again, those that were revoked or used since as well", async (t) => {
    const { done, copy } = await restoreAndServe("--keep-sessions");
    t.after(() => copy.stop());
    assert.match(done.stdout, /tokens and logins of that time are valid, also those that were revoked since/);
    for (const bearer of [token, revoked]) assert.equal((await get(copy, list, bearer)).status, 200);
    for (const bearer of [refreshToken, replaced]) assert.equal(await refresh(copy, bearer), 200);
  });

  it("continues lists from page tokens of before", async (t) => {
    const { copy } = await restoreAndServe();
    t.after(() => copy.stop());
    const owner = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).sub as string;
    const next = await get(copy, `${list}&page_token=${page}`, await copy.token(owner));
    assert.equal(next.status, 200);
    assert.deepEqual(
      (next.body.groups as { name: string }[]).map(({ name }) => name),
      ["three"],
    );
  });

  it("has what `arbor check` finds sound", async () => {
    const to = join(tempDir(), "data");
    assert.equal((await runCommand(["restore", backup, "--data", to])).code, 0);
    const checked = await runCommand(["check", "--data", to]);
    assert.deepEqual([checked.code, checked.stdout.match(/: sound$/gm)?.length], [0, 13], checked.stdout);
  });

  describe("which is refused", () => {
    const manifestOf = (directory: string) =>
      JSON.parse(readFileSync(join(directory, "manifest.json"), "utf8")) as BackupManifest;
    const change = (directory: string, values: object) =>
      writeFileSync(join(directory, "manifest.json"), JSON.stringify({ ...manifestOf(directory), ...values }));
    const invalidBackups: readonly { reason: string; spoil: (directory: string) => void; error: RegExp }[] = [
      {
        reason: "without a manifest, as an interrupted one is",
        spoil: (directory) => rmSync(join(directory, "manifest.json")),
        error: /there is no complete backup: it has no manifest.json/,
      },
      {
        reason: "with half a manifest",
        spoil: (directory) => truncateSync(join(directory, "manifest.json"), 50),
        error: /manifest.json is malformed: it is not JSON/,
      },
      {
        reason: "with a manifest that lacks the digest",
        spoil: (directory) => change(directory, { database: { ...manifestOf(directory).database, sha256: "" } }),
        error: /manifest.json is malformed: database.sha256 must be 64 hex digits/,
      },
      {
        reason: "with the manifest of another backup",
        spoil: (directory) => change(directory, { auditHeads: [] }),
        error: /manifest.json does not describe backup.db/,
      },
      {
        reason: "of a newer version",
        spoil: (directory) => change(directory, { arborVersion: "99.0.0", format: 2 }),
        error: /version 99.0.0 of arbor made this backup, and this is version /,
      },
      {
        reason: "with one bit changed",
        spoil: (directory) => {
          const bytes = readFileSync(join(directory, "backup.db"));
          const middle = bytes.length >> 1;
          bytes[middle] = (bytes[middle] ?? 0) ^ 1;
          writeFileSync(join(directory, "backup.db"), bytes);
        },
        error: /backup.db is not what the manifest describes: its SHA-256 differs/,
      },
      {
        reason: "that was cut",
        spoil: (directory) => truncateSync(join(directory, "backup.db"), 4_096),
        error: /backup.db has 4096 bytes, and the manifest says \d+/,
      },
      {
        reason: "without its database",
        spoil: (directory) => rmSync(join(directory, "backup.db")),
        error: /backup.db is missing/,
      },
      {
        reason: "with the master key of another installation",
        spoil: (directory) => writeFileSync(join(directory, "backup.key"), `${"A".repeat(43)}=\n`),
        error: /the master key is not the one that the secrets of this database are sealed with/,
      },
      {
        reason: "with a master key that others can read",
        spoil: (directory) => chmodSync(join(directory, "backup.key"), 0o644),
        error: /must not be readable by others/,
      },
    ];
    for (const { reason, spoil, error } of invalidBackups) {
      it(reason, async () => {
        const spoilt = join(tempDir(), "backup");
        cpSync(backup, spoilt, { recursive: true });
        spoil(spoilt);
        const to = join(tempDir(), "data");
        const refused = await runCommand(["restore", spoilt, "--data", to]);
        assert.match(refused.stderr, error);
        assert.deepEqual([refused.code, refused.stdout], [6, ""]);
        assert.equal(existsSync(to), false, "nothing is written");
      });
    }

    const targets: readonly { reason: string; prepare: (to: string) => (() => void) | undefined; error: RegExp }[] = [
      {
        reason: "where a database is",
        prepare: (to) => void writeFileSync(join(to, "arbor.db"), ""),
        error: /is not empty: it has arbor.db/,
      },
      {
        reason: "where another master key is",
        prepare: (to) => void writeFileSync(join(to, "master.key"), `${"A".repeat(43)}=\n`, { mode: 0o600 }),
        error: /is not empty: it has master.key/,
      },
      {
        reason: "where anything else is",
        prepare: (to) => void mkdirSync(join(to, "letters")),
        error: /is not empty: it has letters/,
      },
      {
        reason: "where a server starts",
        prepare: (to) => holdFileLock(join(to, "serve.lock"), 0),
        error: /a server or another restore uses/,
      },
    ];
    for (const { reason, prepare, error } of targets) {
      it(`in a directory ${reason}`, async () => {
        const to = tempDir();
        const release = prepare(to);
        // A lock has a journal while it is held.
        const before = readdirSync(to).filter((name) => !name.endsWith("-journal"));
        const refused = await runCommand(["restore", backup, "--data", to]);
        release?.();
        assert.match(refused.stderr, error);
        assert.equal(refused.code, 6);
        assert.deepEqual(readdirSync(to), before);
      });
    }
  });
});

test("a backup without the master key asks for its file, and servers go on to read that file", async () => {
  const [data, kept] = [tempDir(), tempDir()];
  assert.equal((await runCommand(["bootstrap", "--org", "example", "--data", data])).code, 0);
  const backup = join(tempDir(), "backup");
  const made = await runCommand(["backup", backup, "--data", data]);
  assert.equal(made.code, 0);
  assert.match(made.stderr, /^arbor: the master key is not in the backup: keep \S+master.key elsewhere/);
  const key = join(kept, "key");
  cpSync(join(data, "master.key"), key);

  const to = join(tempDir(), "data");
  const asked = await runCommand(["restore", backup, "--data", to]);
  assert.deepEqual([asked.code, asked.stdout], [2, ""]);
  assert.match(asked.stderr, /--master-key-file: the backup has no master key: name the file that has it/);
  const wrong = join(kept, "wrong");
  readMasterKey(wrong, true);
  const refused = await runCommand(["restore", backup, "--data", to, "--master-key-file", wrong]);
  assert.equal(refused.code, 6);
  assert.match(refused.stderr, /the master key is not the one/);
  assert.equal(existsSync(to), false);

  const done = await runCommand(["restore", backup, "--data", to, "--master-key-file", key]);
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /\nstart the server with --master-key-file \S+key\n/);
  assert.deepEqual(readdirSync(to).sort(), ["arbor.db", "serve.lock"]);
  assert.equal((await runCommand(["audit", "list", "--data", to, "--master-key-file", key])).code, 0);
});

test("a master key that does not open the database is not put into a backup", async () => {
  const data = tempDir();
  assert.equal((await runCommand(["bootstrap", "--org", "example", "--data", data])).code, 0);
  const wrong = join(tempDir(), "key");
  readMasterKey(wrong, true);
  const backup = join(tempDir(), "backup");
  const refused = await runCommand(["backup", backup, "--data", data, "--with-master-key", "--master-key-file", wrong]);
  assert.equal(refused.code, 6);
  assert.match(refused.stderr, /the master key is not the one/);
  assert.deepEqual(readdirSync(backup), []);
});

test("without an installation there is no backup, and neither directory is created", async () => {
  const [data, backup] = [join(tempDir(), "none"), join(tempDir(), "backup")];
  const refused = await runCommand(["backup", backup, "--data", data]);
  assert.deepEqual([refused.code, refused.stdout], [6, ""]);
  assert.match(refused.stderr, /there is no installation in \S+none: there is no such directory/);
  assert.deepEqual([existsSync(data), existsSync(backup)], [false, false]);
});

for (const command of ["backup", "restore"]) {
  test(`arbor ${command} refuses PostgreSQL, and names what to use`, async () => {
    const target = join(tempDir(), "target");
    const flags = ["--database-url", "postgres://127.0.0.1/none", "--master-key-file", "none"];
    const refused = await runCommand([command, target, ...flags]);
    assert.deepEqual([refused.code, refused.stdout], [6, ""]);
    assert.match(refused.stderr, /pg_dump.*point-in-time recovery.*master key before the database/);
    assert.equal(existsSync(target), false);
  });
}

test("a backup is not written into the data directory, nor restored into its own", async () => {
  const data = join(tempDir(), "data");
  assert.equal((await runCommand(["bootstrap", "--org", "example", "--data", data])).code, 0);
  const link = join(tempDir(), "link");
  symlinkSync(data, link);
  const before = readdirSync(data);
  for (const target of [data, join(data, "b"), join(data, "b", "c"), join(link, "b"), `${data}/../data/b`]) {
    const { code, stdout, stderr } = await runCommand(["backup", target, "--data", data]);
    assert.deepEqual([code, stdout], [2, ""], target);
    assert.match(stderr, /directory: must not be in the data directory/);
    assert.deepEqual(readdirSync(data), before);
  }
  // The control: a neighbour whose name begins in the same way.
  const backup = `${data}..backup`;
  assert.equal((await runCommand(["backup", backup, "--data", data, "--with-master-key"])).code, 0);
  for (const to of [backup, join(backup, "to")]) {
    const { code, stderr } = await runCommand(["restore", backup, "--data", to]);
    assert.deepEqual([code, existsSync(join(backup, "to"))], [2, false]);
    assert.match(stderr, /--data: must not be in the directory of the backup/);
  }
  assert.equal((await runCommand(["restore", backup, "--data", `${backup}.to`])).code, 0);
});

test("the manifest as JSON, and progress where it is asked for", async () => {
  const data = tempDir();
  assert.equal((await runCommand(["bootstrap", "--org", "example", "--data", data])).code, 0);
  const backup = join(tempDir(), "backup");
  const made = await runCommand(["backup", backup, "--data", data, "--json", "--progress"]);
  assert.deepEqual(JSON.parse(made.stdout), JSON.parse(readFileSync(join(backup, "manifest.json"), "utf8")));
  assert.match(made.stderr, /^copy \[[#.]{20}\] \d+ %, \d+ of about 1 MiB\n/);
});

// A running service seals its audit log within a second.
async function waitUntilSealed(harness: Harness): Promise<void> {
  const { store } = harness.app.installation;
  for (let i = 0; i < 100; i++) {
    const roots = await store.read((tx) => tx.auditChain.listRoots());
    const tails = await Promise.all(roots.map((root) => store.read((tx) => tx.auditChain.readUnsealedTail(root))));
    if (tails.every(({ rows }) => rows === 0)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("the audit log is not sealed");
}
