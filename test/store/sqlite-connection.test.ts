// Connections to SQLite: which files they open, what they need of SQLite, and how they run statements.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { eq } from "drizzle-orm";
import { createExecutor, openReading, openWriting } from "../../src/store/sqlite/connection.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { statementFamily, value } from "../../src/store/statement.js";
import { memoryDir } from "../support/temp-dir.js";

const newPath = () => join(memoryDir(), "arbor.db");

const any = openDatabase(":memory:");
const prototype = Object.getPrototypeOf(any) as SqliteDatabase;
any.close();

// How many connections are closed meanwhile.
function countClosed(t: TestContext) {
  return t.mock.method(prototype, "close").mock;
}

for (const [what, create] of [
  ["tables of another program", "CREATE TABLE theirs (a)"],
  ["the application id of another program", "PRAGMA application_id = 1196444487"],
] as const) {
  test(`a file with ${what} is neither written nor read, and no connection to it stays open`, (t) => {
    const file = newPath();
    openDatabase(file).exec(create).close();
    const before = readFileSync(file);
    const closed = countClosed(t);
    const isForeign = new RegExp(`^Error: ${file} is not a database of this program$`);
    assert.throws(() => openWriting(file), isForeign);
    assert.throws(() => openReading(file), isForeign);
    assert.equal(closed.callCount(), 2);
    assert.deepEqual(readFileSync(file), before);
  });
}

test("SQLite with the race in the reset of its log is rejected before it writes", (t) => {
  const { prepare } = prototype;
  t.mock.method(prototype, "prepare", function (this: SqliteDatabase, source: string) {
    return prepare.call(this, source.replace("sqlite_version()", "'3.51.2'"));
  });
  const file = newPath();
  writeFileSync(file, "");
  assert.throws(() => openWriting(file), /^Error: SQLite 3\.51\.2 may corrupt WAL files; 3\.51\.3 is needed$/);
  assert.deepEqual(readFileSync(file), Buffer.alloc(0));
});

test("a database without a write-ahead log is rejected", () => {
  // It has no log in memory, as on a file system without shared memory.
  assert.throws(() => openWriting(":memory:"), /^Error: SQLite refused journal_mode = WAL$/);
});

test("a connection that would not sync each commit is rejected", (t) => {
  const file = newPath();
  openWriting(file).close();
  const { pragma } = prototype;
  t.mock.method(prototype, "pragma", function (this: SqliteDatabase, source: string, options?: { simple?: boolean }) {
    return pragma.call(this, source.replace("synchronous = FULL", "synchronous = NORMAL"), options);
  });
  const closed = countClosed(t);
  assert.throws(() => openWriting(file), /^Error: SQLite refused synchronous = FULL$/);
  assert.throws(() => openReading(file), /^Error: SQLite refused synchronous = FULL$/);
  assert.equal(closed.callCount(), 2);
});

const findSetting = statementFamily<"find", { name?: string }, { value: string }>(String, () => (q, t) => {
  return q
    .select({ value: t.settings.value })
    .from(t.settings)
    .where(eq(t.settings.name, value("name")));
})("find");

const nested = statementFamily<"nested", object, object>(String, () => (q, t) => {
  return q
    .select({ row: { value: t.settings.value } } as never)
    .from(t.settings)
    .where(eq(t.settings.name, "a"));
})("nested");

function openSettings(t: TestContext) {
  const db = openWriting(newPath());
  t.after(() => db.close());
  db.exec("CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL); INSERT INTO settings VALUES ('a', 'b')");
  return createExecutor(db);
}

test("a statement without one of its values fails, and finds no row with null", async (t) => {
  const executor = openSettings(t);
  assert.deepEqual(await executor.rows(findSetting, { name: "a" }), [{ value: "b" }]);
  const missing = /^TypeError: a statement was given no value for name$/;
  await assert.rejects(executor.rows(findSetting, {}), missing);
  await assert.rejects(executor.rows(findSetting, { name: undefined } as never), missing);
  assert.deepEqual(await executor.rows(findSetting, { name: "none" }), []);
});

test("a statement whose rows have objects is rejected, since only values are read", async (t) => {
  const executor = openSettings(t);
  await assert.rejects(executor.rows(nested, {}), /^TypeError: row selects more than a value$/);
});

// SQLite plans a statement again whenever a value is bound to such a parameter: see `rowLimit`.
test("no limit or offset of a statement is a bare parameter", () => {
  const bare = /(?:limit|offset)(?:\(|\s+\$\{)(?:value|sql\.placeholder)\((?![^)]*\)\}? \+ 0)/;
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a program
  for (const text of ["q.limit(value(param.limit))", 'sql`limit ${sql.placeholder("limit")})`'])
    assert.match(text, bare);
  const files = readdirSync("src/store", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const texts = files.map((name) => [name, readFileSync(join("src/store", name), "utf8")] as const);
  assert.ok(texts.filter(([, text]) => /limit\(rowLimit\(/.test(text)).length > 5, "no limits were found");
  // PostgreSQL has no such rule.
  const found = texts.filter(([name, text]) => !name.includes("pg") && bare.test(text)).map(([name]) => name);
  assert.deepEqual(found, []);
});
