// A data directory that is copied or copied to: what a copy that cannot be made or goes wrong leaves behind.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { MASTER_KEY_CHECK } from "../../../src/issuer/keys/master-key.js";
import { assertCopyable, identifySource, prepareTarget } from "../../../src/store/copy/prepare.js";
import { openSqliteSource, openSqliteTarget } from "../../../src/store/copy/sqlite.js";
import { closingTables, copiedTables } from "../../../src/store/copy/tables.js";
import { createMark } from "../../../src/store/copy-mark.js";
import { openWriting } from "../../../src/store/sqlite/connection.js";
import { openDatabase } from "../../../src/store/sqlite/driver.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import { memoryDir } from "../../support/temp-dir.js";
import { withDatabase } from "./copy-kit.js";

const tableOf = (name: string) =>
  [...copiedTables, ...closingTables].find((table) => table.name === name) ?? assert.fail(name);

// A database that a service which was killed at once left: the file is there, and no table.
function createUnfinished(): string {
  const directory = memoryDir();
  openWriting(join(directory, "arbor.db")).close();
  return directory;
}

async function openEmptyTarget(t: TestContext) {
  const directory = memoryDir();
  const target = openSqliteTarget(directory);
  t.after(() => target.close());
  await prepareTarget(target, createMark("source", "another"));
  return { target, directory };
}

describe("a data directory that is copied", () => {
  it("without tables is no installation", async () => {
    const source = openSqliteSource({ directory: createUnfinished(), exclusive: true });
    assert.deepEqual([source.state.isEmpty, source.state.lastSchemaMs], [true, 0]);
    await assert.rejects(assertCopyable(source), /there is no installation in \S+arbor\.db: it has no tables of one/);
    await assert.rejects(identifySource(source, MASTER_KEY_CHECK), /there is no installation/);
    assert.equal(await source.setting(MASTER_KEY_CHECK), undefined);
    await source.close();
  });

  it("is free for a server after it could not be read", async () => {
    const directory = createUnfinished();
    const file = join(directory, "arbor.db");
    const intact = readFileSync(file);
    // The header is that of a database of this program, and the rest is damaged.
    writeFileSync(file, Buffer.concat([intact.subarray(0, 100), Buffer.alloc(intact.length - 100, 0xa5)]));
    assert.throws(() => openSqliteSource({ directory, exclusive: true }), /malformed/);
    writeFileSync(file, intact);
    await openSqlite({ directory, exclusive: true }).close();
  });
});

describe("a data directory that is copied to", () => {
  it("with the database of another program keeps it, and no lock is left", () => {
    const directory = memoryDir();
    const file = join(directory, "arbor.db");
    openDatabase(file).exec("CREATE TABLE theirs (a)").close();
    const before = readFileSync(file);
    for (let i = 0; i < 2; i++) {
      assert.throws(() => openSqliteTarget(directory), /arbor\.db is not a database of this program/);
    }
    assert.deepEqual(readFileSync(file), before);
  });

  it("has no row of a transaction that fails, and takes those of the next one", async (t) => {
    const { target, directory } = await openEmptyTarget(t);
    const table = tableOf("registry_events");
    const countRows = () =>
      withDatabase(directory, (db) => db.prepare("SELECT count(*) FROM registry_events").pluck().get());
    const failing = target.transaction(async () => {
      await target.insert(table, [["first", "1"]]);
      // The primary key twice.
      await target.insert(table, [
        ["second", "2"],
        ["first", "3"],
      ]);
    });
    await assert.rejects(failing, /UNIQUE constraint failed/);
    assert.equal(countRows(), 0);
    const value = await target.transaction(async () => {
      await target.insert(table, [["first", "1"]]);
      return "stored";
    });
    assert.deepEqual([value, countRows()], ["stored", 1]);
    await target.transaction(() => target.clear([table]));
    assert.equal(countRows(), 0);
  });

  it("has assigned no number before its first row, and only numbers of rows that it has", async (t) => {
    const { target } = await openEmptyTarget(t);
    assert.equal(await target.lastNumber(tableOf("audit")), 0n);
    await target.setLastNumber(tableOf("audit"), 9_007_199_254_740_993n);
    assert.equal(await target.lastNumber(tableOf("audit")), 9_007_199_254_740_993n);
  });
});
