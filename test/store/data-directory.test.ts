// Who may read the data directory, with real modes and, where the tests run as
// root, as a real other user.
import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { secureDataDirectory } from "../../src/store/data-directory.js";
import { openSqlite } from "../../src/store/open-sqlite.js";
import { arbor, startService } from "../e2e/process.js";
import { tempDir } from "../support/temp-dir.js";

/** An ordinary user that owns nothing here. */
const NOBODY = 65534;

const modeOf = (path: string) => statSync(path).mode & 0o777;
const openTo = (directory: string) =>
  readdirSync(directory)
    .map((name) => ({ name, mode: modeOf(join(directory, name)) }))
    .filter(({ mode }) => (mode & 0o077) !== 0);

describe("the data directory", { skip: process.platform === "win32" }, () => {
  it("is made for its owner alone, with all that is in it, whatever the umask", async (t) => {
    const directory = join(tempDir(), "new", "data");
    const before = process.umask(0);
    t.after(() => process.umask(before));
    const store = openSqlite({ directory, exclusive: true });
    t.after(() => store.close());
    await store.write((tx) => tx.settings.put("name", "value"));
    const names = ["arbor.db", "arbor.db-shm", "arbor.db-wal", "migrate.lock", "serve.lock"];
    for (const name of names) assert.ok(readdirSync(directory).includes(name), name);
    assert.equal(modeOf(directory), 0o700);
    assert.deepEqual(openTo(directory), []);
  });

  for (const mode of [0o755, 0o750, 0o711, 0o770, 0o777]) {
    it(`loses what others may do when it is ours with mode ${mode.toString(8)}`, () => {
      const directory = tempDir();
      chmodSync(directory, mode);
      secureDataDirectory(directory);
      assert.equal(modeOf(directory), 0o700);
    });
  }

  it("closes a database that a version before left open to others", async () => {
    const directory = tempDir();
    await openSqlite({ directory }).close();
    const files = readdirSync(directory);
    assert.ok(files.includes("arbor.db"));
    for (const name of files) chmodSync(join(directory, name), 0o664);
    chmodSync(directory, 0o755);
    await openSqlite({ directory }).close();
    assert.deepEqual([modeOf(directory), openTo(directory)], [0o700, []]);
  });

  it("is refused when another user has opened it to others, and stays as it is", async (t) => {
    const directory = process.getuid?.() === 0 ? tempDir() : "/usr";
    if (directory !== "/usr") chmodSync(directory, 0o755);
    const before = readdirSync(directory);
    actAsNobody(t);
    assert.throws(
      () => openSqlite({ directory }),
      /^Error: the data directory \/\S+ of user 0 is open to other users \(mode 0755\): run chmod 700 \/\S+ as its owner, or name another directory with --data$/,
    );
    assert.deepEqual([modeOf(directory), readdirSync(directory)], [0o755, before]);
  });

  it("is refused when the database in it is another user's and open to others", {
    skip: process.getuid?.() !== 0 && "takes root to make another user's file",
  }, (t) => {
    const directory = tempDir();
    const file = join(directory, "arbor.db");
    writeFileSync(file, "", { mode: 0o644 });
    chmodSync(file, 0o644);
    chownSync(directory, NOBODY, NOBODY);
    actAsNobody(t);
    assert.throws(() => openSqlite({ directory }), /^Error: the file \S+\/arbor\.db of user 0 is open .*mode 0644/);
  });

  it("holds nothing that others may read after the service and commands on the host ran under umask 0", async (t) => {
    const directory = join(tempDir(), "data");
    mkdirSync(directory, { mode: 0o755 });
    const before = process.umask(0);
    t.after(() => process.umask(before));
    const made = await arbor("bootstrap", "--org", "acme.example", "--data", directory);
    assert.equal(made.code, 0, made.stderr);
    const service = await startService(directory);
    t.after(() => service.stop());
    assert.ok(readdirSync(directory).includes("master.key"));
    if (process.platform === "linux") {
      assert.match(readFileSync(`/proc/${service.pid}/status`, "utf8"), /^Umask:\s+0077$/m);
    }
    assert.deepEqual([modeOf(directory), openTo(directory)], [0o700, []]);
  });
});

/** The rest of the test has no rights over what root owns. */
function actAsNobody(t: { after(undo: () => void): void }): void {
  const { geteuid, seteuid } = process;
  if (geteuid?.() !== 0 || seteuid === undefined) return;
  seteuid(NOBODY);
  t.after(() => seteuid(0));
}
