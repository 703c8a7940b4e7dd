// Copies of installations, here between data directories; test/pg/copy.test.ts has those to PostgreSQL and back.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { describe, it } from "node:test";
import { CopyMismatch } from "../../../src/store/copy/copy.js";
import { openSqliteSource } from "../../../src/store/copy/sqlite.js";
import { closingTables, copiedTables } from "../../../src/store/copy/tables.js";
import { createMark, formatMark } from "../../../src/store/copy-mark.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import { isOlder, VERSION } from "../../../src/store/version.js";
import { runCommand } from "../../support/command.js";
import { memoryDir } from "../../support/temp-dir.js";
import {
  copyDirectory,
  createFilledDirectory,
  ENDED,
  fillEmptyTables,
  readLiterals,
  withDatabase,
} from "./copy-kit.js";

const allTables = [...copiedTables, ...closingTables];
const isJson = (table: string, column: string) =>
  allTables.find(({ name }) => name === table)?.columns.find(({ name }) => name === column)?.type === "json";

describe("a copy", () => {
  it("has every row of every table, and values that numbers and texts of JavaScript would change", async () => {
    const from = createFilledDirectory();
    fillEmptyTables(from);
    withDatabase(from, (db) => {
      db.exec(`UPDATE jobs SET fence = 9223372036854775807, changes = -9007199254740993;
        UPDATE groups SET description = '🌳' || char(10) || '"\\' || char(9) || 'é' WHERE parent_uid IS NOT NULL`);
    });
    const to = join(memoryDir(), "new", "data");
    const { tables } = await copyDirectory(from, to);
    assert.deepEqual(
      tables.map(({ table }) => table).sort(),
      Object.keys(readLiterals(from, isJson)).sort(),
      "all tables of the database are compared",
    );
    assert.deepEqual(
      tables.filter(({ source }) => source.rows === 0),
      [],
      "every table has rows",
    );
    assert.deepEqual(readLiterals(to, isJson), readLiterals(from, isJson));
  });

  it("has a digest that anyone can compute", async () => {
    const from = createFilledDirectory();
    fillEmptyTables(from);
    const { tables } = await copyDirectory(from, join(memoryDir(), "to"));
    const lines = withDatabase(from, (db) =>
      (db.prepare("SELECT * FROM tag_marks ORDER BY repo_uid, name").raw().all() as (string | number)[][]).map(
        (row) => `${JSON.stringify(row.map(String))}\n`,
      ),
    );
    assert.ok(lines.length > 0);
    const sha256 = createHash("sha256").update(lines.join("")).digest("hex");
    assert.deepEqual(tables.find(({ table }) => table === "tag_marks")?.target, { rows: lines.length, sha256 });
  });

  it("goes on after an end at any batch, and writes no row twice", async () => {
    const from = createFilledDirectory();
    const complete = await copyDirectory(from, join(memoryDir(), "complete"));
    const to = join(memoryDir(), "resumed");
    let written = 0;
    for (const endAfter of [0, 1, 2, 5, 11, 17]) {
      await assert.rejects(copyDirectory(from, to, { endAfter }), new RegExp(ENDED));
      const rows = withDatabase(to, (db) =>
        copiedTables.map(({ name }) => Number(db.prepare(`SELECT count(*) FROM ${name}`).pluck().get())),
      ).reduce((sum, n) => sum + n, 0);
      assert.ok(rows > written || endAfter < 2, `${rows} rows after ${endAfter} more batches`);
      written = rows;
    }
    const last = await copyDirectory(from, to);
    assert.deepEqual([last.isResumed, last.isRestarted], [true, false]);
    assert.deepEqual(last.tables, complete.tables);
    assert.equal(last.written, complete.written - written);
  });

  it("begins again when the source is no longer what it was", async () => {
    const from = createFilledDirectory();
    const to = join(memoryDir(), "to");
    await assert.rejects(copyDirectory(from, to, { endAfter: 60 }), new RegExp(ENDED));
    withDatabase(from, (db) => db.exec("UPDATE groups SET description = 'changed since' WHERE parent_uid IS NOT NULL"));
    const { isRestarted, tables } = await copyDirectory(from, to);
    assert.equal(isRestarted, true);
    assert.deepEqual(tables, (await copyDirectory(from, join(memoryDir(), "other"))).tables);
  });

  it("is rejected while it is unfinished, with the command that goes on", async () => {
    const from = createFilledDirectory();
    const to = join(memoryDir(), "to");
    await assert.rejects(copyDirectory(from, to, { endAfter: 60 }), new RegExp(ENDED));
    const advice = /the database is an unfinished copy of \S+arbor\.db: run `arbor copy` again/;
    assert.throws(() => openSqlite({ directory: to }), advice);
    for (const command of [["serve", "--listen", "127.0.0.1:0"], ["check"], ["migrate"], ["audit", "list"]]) {
      const { code, stderr } = await runCommand([...command, "--data", to]);
      assert.equal(code, 6, `${command.join(" ")}: ${stderr}`);
      assert.match(stderr, advice);
    }
    const next = runCommand(["copy", "--data", to, "--to", "postgres://127.0.0.1:9/none"]);
    assert.match((await next).stderr, advice);
    await copyDirectory(from, to);
    await openSqlite({ directory: to }).close();
  });

  it("is rejected while it is unfinished by versions that know no copies", () => {
    assert.equal(isOlder("0.6.0", formatMark(createMark("source", "99.99"))), true);
    assert.equal(isOlder("99999.0.0", "0.6.0"), false);
  });

  for (const [what, statement] of Object.entries({
    "a byte": "UPDATE groups SET description = description || ' ' WHERE parent_uid IS NULL",
    "a row": "DELETE FROM registry_events WHERE id = (SELECT min(id) FROM registry_events)",
    "an integer": "UPDATE audit SET time_ms = time_ms + 1 WHERE id = 3",
  })) {
    it(`stays unfinished when ${what} of the target is another, and is complete after the next run`, async () => {
      const from = createFilledDirectory();
      fillEmptyTables(from);
      const to = join(memoryDir(), "to");
      let changed = 0;
      const beforeVerification = () => {
        changed = withDatabase(to, (db) => db.prepare(statement).run().changes);
      };
      await assert.rejects(copyDirectory(from, to, { beforeVerification }), CopyMismatch);
      assert.ok(changed > 0);
      assert.throws(() => openSqlite({ directory: to }), /unfinished copy/);
      const { isRestarted, tables } = await copyDirectory(from, to);
      assert.equal(isRestarted, true);
      assert.ok(tables.every(({ source, target }) => source.sha256 === target.sha256));
    });
  }

  it("notices that the source is written to after its snapshot", async () => {
    const from = createFilledDirectory();
    const source = openSqliteSource({ directory: from, exclusive: true });
    assert.equal(await source.hasChanged(), false);
    withDatabase(from, (db) => db.pragma("wal_checkpoint(PASSIVE)"));
    assert.equal(await source.hasChanged(), false);
    withDatabase(from, (db) => db.exec("UPDATE groups SET kind = kind + 1"));
    assert.equal(await source.hasChanged(), true);
    await source.close();
  });

  it("is not written over an installation, nor over the copy of another one", async () => {
    const from = createFilledDirectory();
    const to = join(memoryDir(), "to");
    await copyDirectory(from, to);
    await assert.rejects(copyDirectory(from, to), /has an installation: choose an empty target/);
    const unfinished = join(memoryDir(), "unfinished");
    await assert.rejects(copyDirectory(from, unfinished, { endAfter: 3 }), new RegExp(ENDED));
    withDatabase(from, (db) => db.exec("UPDATE settings SET value = 'another' WHERE name = 'master-key-check'"));
    await assert.rejects(copyDirectory(from, unfinished), /is an unfinished copy of another installation/);
  });

  it("is not continued by another version, nor made of an installation that was never completed", async () => {
    const from = createFilledDirectory();
    const unfinished = join(memoryDir(), "unfinished");
    await assert.rejects(copyDirectory(from, unfinished, { endAfter: 3 }), new RegExp(ENDED));
    const setVersion = (version: string, other: string) =>
      withDatabase(unfinished, (db) =>
        db
          .prepare("UPDATE settings SET value = replace(value, ?, ?) WHERE name = 'oldest_version'")
          .run(`"version":"${version}"`, `"version":"${other}"`),
      );
    setVersion(VERSION, "0.0.1");
    await assert.rejects(copyDirectory(from, unfinished), /is an unfinished copy by version 0\.0\.1: go on with that/);
    setVersion("0.0.1", VERSION);
    withDatabase(from, (db) => db.exec("DELETE FROM settings WHERE name = 'master-key-check'"));
    await assert.rejects(copyDirectory(from, unfinished), /there is no installation .*: it was never completed/);
  });

  it("assigns no number again that a deleted row had", async () => {
    const from = createFilledDirectory();
    const last = withDatabase(from, (db) => {
      db.exec(
        "INSERT INTO audit SELECT max(id) + 1000, '', 0, '', '', '', '', '', '', '', 1, '', '', '', '' FROM audit",
      );
      const id = Number(db.prepare("SELECT max(id) FROM audit").pluck().get());
      db.prepare("DELETE FROM audit WHERE id = ?").run(id);
      return id;
    });
    const to = join(memoryDir(), "to");
    await copyDirectory(from, to);
    const next = withDatabase(to, (db) =>
      db.prepare("INSERT INTO audit SELECT NULL, '', 0, '', '', '', '', '', '', '', 1, '', '', '', ''").run(),
    );
    assert.equal(Number(next.lastInsertRowid), last + 1);
  });

  it("has one row of those that PostgreSQL spreads over slots", async () => {
    const from = createFilledDirectory();
    withDatabase(from, (db) =>
      db.exec(`INSERT INTO counters (scope, counter, slot, n) SELECT scope, counter, 7, 5 FROM counters WHERE slot = 0;
        INSERT INTO counters (scope, counter, slot, n) SELECT scope, counter, 31, -2 FROM counters WHERE slot = 0`),
    );
    const to = join(memoryDir(), "to");
    await copyDirectory(from, to, { batchRows: 2 });
    const query = (directory: string, sql: string) => withDatabase(directory, (db) => db.prepare(sql).raw().all());
    const sums = "SELECT scope, counter, sum(n) FROM counters GROUP BY 1, 2 ORDER BY 1, 2";
    assert.deepEqual(query(to, sums), query(from, sums));
    assert.deepEqual(query(to, "SELECT DISTINCT slot FROM counters"), [[0]]);
  });
});
