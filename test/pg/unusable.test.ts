// Databases and ways to them that Arbor cannot use: each is refused with its cause. Needs TEST_ARBOR_DATABASE_URL, and for
// poolers pgbouncer.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import pg from "pg";
import { openPgMigration } from "../../src/store/migrate/open-pg-migration.js";
import { verifyServer } from "../../src/store/pg/connection.js";
import { openPg } from "../../src/store/pg/open.js";
import { runCommand } from "../support/command.js";
import { tempDir } from "../support/temp-dir.js";
import { newDatabase, withClient } from "./databases.js";
import { IGNORE_LIMITS, startPgBouncer, withoutPgBouncer } from "./pgbouncer.js";

const SERVER = process.env.TEST_ARBOR_DATABASE_URL ?? "";

let made = 0;
async function createDatabase(encoding: string): Promise<string> {
  const name = `arbor_texts_${process.pid}_${made++}`;
  const options = `ENCODING '${encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`;
  await withClient(SERVER, (client) => client.query(`CREATE DATABASE ${name} ${options}`));
  const url = new URL(SERVER);
  url.pathname = `/${name}`;
  return url.href;
}

async function endingOf(url: string): Promise<{ code: unknown; message: string }> {
  try {
    await (await openPg({ url })).close();
    return { code: 0, message: "opened" };
  } catch (error) {
    return error as { code: unknown; message: string };
  }
}

const FAILED_PRECONDITION = 9;

describe("a database whose texts are not what Arbor writes", () => {
  for (const encoding of ["SQL_ASCII", "LATIN1", "EUC_JP"]) {
    it(`is refused with its encoding: ${encoding}`, async () => {
      const url = await createDatabase(encoding);
      const { code, message } = await endingOf(url);
      assert.equal(code, FAILED_PRECONDITION, message);
      assert.match(
        message,
        new RegExp(`the database arbor_texts_\\d+_\\d+ has the encoding ${encoding}, and UTF8 is needed`),
      );
      await assert.rejects(openPgMigration(url), new RegExp(`has the encoding ${encoding}`));
      const file = join(tempDir(), "url");
      writeFileSync(file, url, { mode: 0o600 });
      const key = join(tempDir(), "master.key");
      writeFileSync(key, `${"A".repeat(43)}=\n`, { mode: 0o600 });
      const args = ["bootstrap", "--org", "a.example", "--database-url-file", file, "--master-key-file", key];
      const ended = await runCommand(args);
      assert.deepEqual([ended.code, ended.stdout], [6, ""]);
      const { rows } = await withClient(url, (client) =>
        client.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'"),
      );
      assert.equal(rows.length, 0, "nothing was created");
    });
  }

  it("is refused with standard_conforming_strings = off, of the database or of the role", async () => {
    const url = await newDatabase();
    const name = new URL(url).pathname.slice(1);
    const set = (value: string) => withClient(url, (client) => client.query(`ALTER DATABASE ${name} ${value}`));
    await set("SET standard_conforming_strings = off");
    const { code, message } = await endingOf(url);
    assert.equal(code, FAILED_PRECONDITION, message);
    assert.match(message, new RegExp(`the database ${name} has standard_conforming_strings = off: set it to on`));
    await assert.rejects(openPgMigration(url), /standard_conforming_strings = off/);
    await set("RESET standard_conforming_strings");
    assert.equal((await endingOf(url)).message, "opened");
  });

  it("control: one in UTF8 is used", async () => {
    assert.equal((await endingOf(await createDatabase("UTF8"))).message, "opened");
  });
});

/** Starts pgbouncer before the server, and returns the URL of a database through it. */
async function startPooler(t: TestContext, url: string, more: readonly string[]): Promise<string> {
  const pooler = await startPgBouncer(url, more);
  t.after(() => pooler.stop());
  return pooler.through(url);
}

describe("a pooler", { skip: withoutPgBouncer }, () => {
  const CAUSE =
    /the database is reached through a pooler such as pgbouncer, .* Connect to PostgreSQL itself, or say --database-pooler transaction, or/;

  it("that does not know the limits of a session is named at the start", async (t) => {
    const url = await startPooler(t, await newDatabase(), []);
    const { code, message } = await endingOf(url);
    assert.equal(code, FAILED_PRECONDITION, message);
    assert.match(message, CAUSE);
  });

  it("by sessions may be used: the settings of plans hold, also after a failed transaction", async (t) => {
    const url = await startPooler(t, await newDatabase(), [IGNORE_LIMITS, "pool_mode = session"]);
    await (await openPg({ url })).close();
    for (const [verify, expected] of [[verifyServer, "off"] as const, [undefined, "on"] as const]) {
      const pool = new pg.Pool({ connectionString: url, max: 1, ...(verify && { verify }) });
      await pool.query("BEGIN");
      await assert.rejects(pool.query("SELECT 1 / 0"));
      await pool.query("ROLLBACK");
      const { rows } = await pool.query("SHOW enable_seqscan");
      assert.deepEqual(rows, [{ enable_seqscan: expected }]);
      await pool.end();
    }
  });

  it("by transactions is named when statements are lost", async (t) => {
    const url = await startPooler(t, await newDatabase(), [IGNORE_LIMITS]);
    const store = await openPg({ url, poolSize: 6 });
    t.after(() => store.close());
    const failures: Error[] = [];
    for (let round = 0; round < 20 && failures.length === 0; round++) {
      const units = Array.from({ length: 12 }, () => store.read((tx) => tx.settings.find("origin")));
      for (const { status, ...result } of await Promise.allSettled(units)) {
        if (status === "rejected") failures.push((result as { reason: Error }).reason);
      }
    }
    assert.ok(failures.length > 0, "no statement was lost");
    for (const failure of failures) assert.match(failure.message, CAUSE);
  });
});
