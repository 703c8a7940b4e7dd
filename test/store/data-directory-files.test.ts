// What a data directory must be before a store opens it, without a second user and without the service.
import assert from "node:assert/strict";
import fs, { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ApiError } from "../../src/kernel/errors.js";
import {
  createPrivateFile,
  findSqliteInstallation,
  RESTORE_DIRECTORY,
  secureDataDirectory,
} from "../../src/store/sqlite/data-directory.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { replaceFs } from "../support/replace-fs.js";
import { memoryDir } from "../support/temp-dir.js";

const isRejected = (text: RegExp) => (error: unknown) => error instanceof ApiError && text.test(error.message);

describe("the files of a data directory", { skip: process.platform === "win32" }, () => {
  it("get no new database while a restore into it has not ended", async () => {
    const directory = memoryDir();
    mkdirSync(join(directory, RESTORE_DIRECTORY));
    const text = /a restore into \S+ was interrupted or is under way: run arbor restore again/;
    assert.throws(() => openSqlite({ directory }), isRejected(text));
    assert.deepEqual(readdirSync(directory), [RESTORE_DIRECTORY]);
    // The database is put in place last.
    writeFileSync(join(directory, "arbor.db"), "");
    await openSqlite({ directory }).close();
  });

  it("lose the access of others that was given to them", () => {
    const directory = memoryDir();
    const file = join(directory, "arbor.db");
    writeFileSync(file, "");
    for (const [path, mode] of [
      [directory, 0o755],
      [file, 0o664],
    ] as const) {
      chmodSync(path, mode);
    }
    secureDataDirectory(directory);
    assert.deepEqual([statSync(directory).mode & 0o777, statSync(file).mode & 0o777], [0o700, 0o600]);
  });

  for (const [what, change] of [
    ["accepts the change and ignores it", () => {}],
    [
      "refuses the change",
      () => {
        throw Object.assign(new Error("EPERM: operation not permitted"), { code: "EPERM" });
      },
    ],
  ] as const) {
    it(`are rejected with the command that helps where the file system ${what}`, (t) => {
      const directory = memoryDir();
      chmodSync(directory, 0o750);
      replaceFs(t, "chmodSync", change);
      const text = /^the data directory \S+ of user \d+ is open to other users \(mode 0750\): run chmod 700 \S+ as its/;
      assert.throws(() => secureDataDirectory(directory), { message: text });
      assert.deepEqual(readdirSync(directory), []);
    });
  }

  it("are found only in a directory", () => {
    const file = join(memoryDir(), "data");
    writeFileSync(file, "");
    const text =
      /there is no installation in \S+data: it is not a directory; mount its disk, name its directory with --data/;
    assert.throws(() => findSqliteInstallation(file), isRejected(text));
  });

  it("keep what another process writes to one of them that it creates first", (t) => {
    const file = join(memoryDir(), "arbor.db");
    // It does so after this process has looked.
    replaceFs(t, "existsSync", () => {
      writeFileSync(file, "written by another");
      return false;
    });
    createPrivateFile(file);
    assert.equal(fs.readFileSync(file, "utf8"), "written by another");
    const missing = join(file, "no", "directory");
    assert.throws(() => createPrivateFile(missing), { code: "ENOTDIR" });
    t.mock.restoreAll();
    syncBuiltinESMExports();
    assert.equal(existsSync(missing), false);
  });
});
