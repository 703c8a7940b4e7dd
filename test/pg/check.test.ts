// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type pg from "pg";
import { connectForCommand } from "../../src/store/pg/connection.js";
import { openPg } from "../../src/store/pg/open.js";
import { checkSuite } from "../cli/host/check/suite.js";
import { fillWorld } from "../cli/host/check/world.js";
import { runCommand } from "../support/command.js";
import { chooseScale } from "../support/scale.js";
import { tempDir } from "../support/temp-dir.js";
import { copyDatabase, newDatabase, withClient } from "./databases.js";

const keys = tempDir();
const template = await newDatabase();

function flagsOf(url: string): string[] {
  return ["--database-url", url, "--master-key-file", join(keys, "master.key")];
}

checkSuite("arbor check on PostgreSQL", {
  async prepare() {
    const store = await openPg({ url: template });
    await fillWorld(store, keys);
    await store.close();
  },
  async copy() {
    const url = await copyDatabase(template);
    return {
      flags: flagsOf(url),
      run: (statements) =>
        withClient(url, async (client) => {
          // Foreign keys are triggers.
          await client.query("SET session_replication_role = replica");
          for (const statement of statements) await client.query(statement);
        }),
      dump: () =>
        withClient(url, async (client) => {
          const tables = await client.query(
            "SELECT relname AS name FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace",
          );
          const dump = new Map<string, string>();
          const relations = new Set(tables.rows.map(({ name }) => name as string));
          dump.set("relations", JSON.stringify([...relations].sort()));
          const named = await client.query(
            "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
          );
          for (const { name } of named.rows) {
            const { rows } = await client.query(`SELECT t::text AS text FROM ${name} t ORDER BY 1`);
            dump.set(name, rows.map(({ text }) => text).join("\n"));
          }
          return dump;
        }),
    };
  },
  async open(clock) {
    const url = await newDatabase();
    return { store: await openPg({ url, clock }), flags: flagsOf(url) };
  },
  share: chooseScale(1, 4),
  faults: [
    {
      reason: "a constraint that was never validated",
      sql: ["ALTER TABLE tag_marks ADD CONSTRAINT tag_marks_known CHECK (time_ms > 0) NOT VALID"],
      found: [
        /^schema: tag_marks tag_marks_known: no migration creates this constraint$/,
        /^integrity: tag_marks tag_marks_known: the constraint is not validated$/,
      ],
    },
    {
      reason: "a column whose statistics may change plans",
      sql: ["ALTER TABLE tags ALTER COLUMN digest SET STATISTICS 100"],
      found: [/^integrity: tags digest: the server gathers statistics of the column/],
    },
    {
      reason: "an index that was never finished",
      sql: ["UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'registry_events_time'::regclass"],
      found: [/^integrity: registry_events registry_events_time: the index is not valid$/],
    },
  ],
});

test("a repair waits for no node: it is refused while one is connected", async () => {
  const url = await newDatabase();
  const store = await openPg({ url });
  await withClient(url, (client) =>
    client.query("INSERT INTO counters (scope, counter, slot, n) VALUES ('x', 8, 0, 1)"),
  );
  const during = await runCommand(["check", "--repair", ...flagsOf(url)]);
  assert.equal(during.code, 6);
  assert.match(during.stderr, /nodes have \d+ connections? to the database: stop them, then repair\n$/);
  await store.close();
  assert.equal((await runCommand(["check", "--repair", ...flagsOf(url)])).code, 0);
});

for (const { set, has } of [
  { set: "off", has: "on" },
  { set: "local", has: "local" },
  { set: "remote_apply", has: "remote_apply" },
]) {
  test(`where synchronous_commit is ${set}, commands have ${has}`, async () => {
    const url = await newDatabase();
    const name = new URL(url).pathname.slice(1);
    const setting = async (client: pg.Client) =>
      (await client.query<{ synchronous_commit: string }>("SHOW synchronous_commit")).rows[0]?.synchronous_commit;
    await withClient(url, (client) => client.query(`ALTER DATABASE ${name} SET synchronous_commit = ${set}`));
    // The control: others have what the server says.
    assert.equal(await withClient(url, setting), set);
    const client = await connectForCommand({ url, tls: undefined, name: "arbor check" });
    assert.equal(await setting(client), has);
    await client.end();
  });
}

test("limits of the server do not end what commands do", async () => {
  const url = await newDatabase();
  const name = new URL(url).pathname.slice(1);
  await withClient(process.env.TEST_ARBOR_DATABASE_URL ?? "", (client) =>
    client.query(`ALTER DATABASE ${name} SET statement_timeout = 1000`),
  );
  const limitOf = async (client: pg.Client) => (await client.query("SHOW statement_timeout")).rows;
  // The control: others have the limit.
  assert.deepEqual(await withClient(url, limitOf), [{ statement_timeout: "1s" }]);
  const client = await connectForCommand({ url, tls: undefined, name: "arbor check" });
  assert.deepEqual(await limitOf(client), [{ statement_timeout: "0" }]);
  await client.end();
});
