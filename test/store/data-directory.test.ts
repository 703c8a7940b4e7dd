// The permissions of the data directory, with real modes and, when the tests run as root, with a second user.
import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { secureDataDirectory } from "../../src/store/sqlite/data-directory.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { arbor, startService } from "../e2e/process.js";
import { tempDir } from "../support/temp-dir.js";

/** The uid of an unprivileged user, who owns no file of the tests. */
const UNPRIVILEGED_UID = 65534;

const modeOf = (path: string) => statSync(path).mode & 0o777;
const filesOpenToOthers = (directory: string) =>
  readdirSync(directory)
    .map((name) => ({ name, mode: modeOf(join(directory, name)) }))
    .filter(({ mode }) => (mode & 0o077) !== 0);

describe("the data directory", { skip: process.platform === "win32" }, () => {
  it("and its files are created with access for the owner alone, whatever the umask", async (t) => {
    const directory = join(tempDir(), "new", "data");
    const before = process.umask(0);
    t.after(() => process.umask(before));
    const store = openSqlite({ directory, exclusive: true });
    t.after(() => store.close());
    await store.write((tx) => tx.settings.put("name", "value"));
    const names = ["arbor.db", "arbor.db-shm", "arbor.db-wal", "migrate.lock", "serve.lock"];
    for (const name of names) assert.ok(readdirSync(directory).includes(name), name);
    assert.equal(modeOf(directory), 0o700);
    assert.deepEqual(filesOpenToOthers(directory), []);
  });

  for (const mode of [0o755, 0o750, 0o711, 0o770, 0o777]) {
    it(`with mode ${mode.toString(8)} loses the access of others`, () => {
      const directory = tempDir();
      chmodSync(directory, mode);
      secureDataDirectory(directory);
      assert.equal(modeOf(directory), 0o700);
    });
  }

  it("loses the access of others that an earlier version left on the database", async () => {
    const directory = tempDir();
    await openSqlite({ directory }).close();
    const files = readdirSync(directory);
    assert.ok(files.includes("arbor.db"));
    for (const name of files) chmodSync(join(directory, name), 0o664);
    chmodSync(directory, 0o755);
    await openSqlite({ directory }).close();
    assert.deepEqual([modeOf(directory), filesOpenToOthers(directory)], [0o700, []]);
  });

  it("is rejected and unchanged when it belongs to another user and is open to others", async (t) => {
    const directory = process.getuid?.() === 0 ? tempDir() : "/usr";
    if (directory !== "/usr") chmodSync(directory, 0o755);
    const before = readdirSync(directory);
    runUnprivileged(t);
    assert.throws(
      () => openSqlite({ directory }),
      /^Error: the data directory \/\S+ of user 0 is open to other users \(mode 0755\): run chmod 700 \/\S+ as its owner, or name another directory with --data$/,
    );
    assert.deepEqual([modeOf(directory), readdirSync(directory)], [0o755, before]);
  });

  it("is rejected when the database in it belongs to another user and is open to others", {
    skip: process.getuid?.() !== 0 && "only root can create another user's file",
  }, (t) => {
    const directory = tempDir();
    const file = join(directory, "arbor.db");
    writeFileSync(file, "", { mode: 0o644 });
    chmodSync(file, 0o644);
    chownSync(directory, UNPRIVILEGED_UID, UNPRIVILEGED_UID);
    runUnprivileged(t);
    assert.throws(() => openSqlite({ directory }), /^Error: the file \S+\/arbor\.db of user 0 is open .*mode 0644/);
  });

  it("holds no file that others may read after the service and commands on the host ran under umask 0", async (t) => {
    const directory = join(tempDir(), "data");
    mkdirSync(directory, { mode: 0o755 });
    const before = process.umask(0);
    t.after(() => process.umask(before));
    const created = await arbor("bootstrap", "--org", "acme.example", "--data", directory);
    assert.equal(created.code, 0, created.stderr);
    const service = await startService(directory);
    t.after(() => service.stop());
    assert.ok(readdirSync(directory).includes("master.key"));
    if (process.platform === "linux") {
      assert.match(readFileSync(`/proc/${service.pid}/status`, "utf8"), /^Umask:\s+0077$/m);
    }
    assert.deepEqual([modeOf(directory), filesOpenToOthers(directory)], [0o700, []]);
  });
});

/** Runs the rest of the test as a user without root's permissions. */
function runUnprivileged(t: { after(undo: () => void): void }): void {
  const { geteuid, seteuid } = process;
  if (geteuid?.() !== 0 || seteuid === undefined) return;
  seteuid(UNPRIVILEGED_UID);
  t.after(() => seteuid(0));
}
