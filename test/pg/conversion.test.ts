// Databases of versions 0.10 and 0.11 through `arbor migrate`, on PostgreSQL. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";
import pg from "pg";
import { convertPg, planPgConversion } from "../../src/store/migrate/conversion/pg.js";
import { openPg } from "../../src/store/pg/open.js";
import { runCommand } from "../support/command.js";
import { listHostCommands } from "../support/host-commands.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { type Fixture, oldFixtures, restorePostgres } from "../upgrade/fixtures.js";
import { assertIndexMatches, assertRowsKept, type Dump } from "../upgrade/migrated-rows.js";
import { emptyDatabase, withClient } from "./databases.js";

const newest = oldFixtures.at(-1) as Fixture;

async function restore(fixture: Fixture, ...statements: readonly string[]): Promise<string> {
  const url = await emptyDatabase();
  await withClient(url, async (client) => {
    await client.query(restorePostgres(fixture).sql);
    for (const statement of statements) await client.query(`SET search_path TO public; ${statement}`);
  });
  return url;
}

const convert = (url: string, onWait: (holder: string) => void = () => {}) =>
  convertPg({ url, tls: undefined, onProgress: () => {}, onWait });

for (const fixture of oldFixtures) {
  it(`the PostgreSQL database of version ${fixture.version} is converted to what a new one is`, async () => {
    // What others keep in the database stays, also in the schema of the record.
    const others = ["CREATE TABLE others (a int)", "CREATE TABLE drizzle.others (a int)"];
    const url = await restore(fixture, ...others);
    const before = await withClient(url, dumpPg);
    await convert(url);
    const created = await emptyDatabase();
    await (await openPg({ url: created })).close();
    await withClient(created, (client) => client.query(others.join("; ")));
    assert.deepEqual(await withClient(url, readSchema), await withClient(created, readSchema));
    const after = await withClient(url, dumpPg);
    assertRowsKept(before, after);
    await assertIndexMatches(after);
    const record = "SELECT hash, created_at FROM drizzle.__drizzle_migrations";
    const read = async (at: string) => (await withClient(at, (client) => client.query(record))).rows;
    assert.deepEqual(await read(url), await read(created));
    const analyzed =
      "SELECT count(*)::int AS n FROM pg_stat_user_tables WHERE schemaname = 'public' AND last_analyze IS NULL";
    await waitUntil(async () => {
      const { rows } = await withClient(url, (client) => client.query<{ n: number }>(analyzed));
      return rows[0]?.n === 0;
    }, 5_000);
  });
}

it("continues the numbers of the audit log, also of rows that were deleted", async () => {
  const url = await restore(newest, "SELECT setval('audit_id_seq', 1000)");
  await convert(url);
  const { rows } = await withClient(url, (client) =>
    client.query("SELECT nextval(pg_get_serial_sequence('audit', 'id'))::int AS next"),
  );
  assert.deepEqual(rows, [{ next: 1001 }]);
});

it("changes nothing where a node is connected, and names it", async () => {
  const url = await restore(newest);
  const before = await withClient(url, readSchema);
  await withClient(url, async (client) => {
    await client.query("SET application_name = 'arbor/0.11.0'");
    await assert.rejects(convert(url), /servers use the database: arbor\/0\.11\.0, from .*; stop all of them/);
    assert.deepEqual(await readSchema(client), before);
    // The plan works beside nodes.
    const planned = await planPgConversion({ url, tls: undefined });
    assert.ok(planned.rows > 0);
    assert.match(planned.servers.join(), /^arbor\/0\.11\.0, from /);
    const { code, stdout } = await runCommand([
      ...["migrate", "--dry-run", "--database-url", url, "--master-key-file", join(tempDir(), "master.key")],
    ]);
    assert.equal(code, 0);
    assert.match(stdout, /^would copy \d+ rows .*\nservers to be stopped before: arbor\/0\.11\.0, from .*\n$/);
    assert.deepEqual(await readSchema(client), before);
  });
  await convert(url);
  await assert.rejects(convert(url), /the database is of version 1\.0 or newer/);
});

it("waits for a lock, and says who holds it", async (t) => {
  const url = await restore(newest);
  const writer = new pg.Client({ connectionString: url, application_name: "forgotten shell" });
  await writer.connect();
  t.after(() => writer.end());
  await writer.query("BEGIN; INSERT INTO public.settings VALUES ('open', 'transaction')");
  const waits: string[] = [];
  const converting = convert(url, (holder) => void waits.push(holder));
  await waitUntil(() => waits.length > 0);
  await writer.query("COMMIT");
  await converting;
  assert.match(waits[0] ?? "", /^a lock that session \d+ holds \(forgotten shell, /);
  const { rows } = await writer.query("SELECT value FROM public.settings WHERE name = 'open'");
  assert.deepEqual(rows, [{ value: "transaction" }]);
});

it("killed at any moment, leaves the database as it was", async () => {
  const url = await restore(newest);
  const before = await withClient(url, dumpPg);
  for (const at of [0, 100, 200]) {
    const converting = convertPg({
      url,
      tls: undefined,
      onWait: () => {},
      onProgress({ name, done }) {
        // As the server sees the end of the process.
        if (name === "rows" ? done >= at && at < 200 : true) throw new Error("the end");
      },
    });
    await assert.rejects(converting, /the end/);
    assert.deepEqual(await withClient(url, dumpPg), before);
  }
  const { rows } = await planPgConversion({ url, tls: undefined });
  assert.ok(rows > 100);
  assert.deepEqual(await convert(url), { ...(await planOf(restore(newest))) });
});

async function planOf(url: Promise<string>) {
  const { servers: _, ...plan } = await planPgConversion({ url: await url, tls: undefined });
  return plan;
}

for (const { of, statement } of [
  { of: "version 0.9", statement: "UPDATE settings SET value = '0.9.0' WHERE name = 'oldest_version'" },
  { of: "an older schema", statement: "DELETE FROM drizzle.__drizzle_migrations WHERE created_at > 1795441443983" },
  { of: "a phase that has not ended", statement: "UPDATE data_migrations SET phase = 'expanded'" },
]) {
  it(`does not convert a database of ${of}`, async () => {
    const url = await restore(newest, statement);
    await assert.rejects(convert(url), /run `arbor migrate --expand --contract` of version 0\.11\.0 /);
  });
}

it("commands on a database of version 0.11 name the command to run, and change nothing", async () => {
  const url = await restore(newest);
  const { masterKeyFile } = restorePostgres(newest);
  const location = ["--database-url", url, "--master-key-file", masterKeyFile, "--data", tempDir()];
  const before = await withClient(url, dumpPg);
  const { onInstallation } = await listHostCommands("--database-url", tempDir());
  const commands = [
    ...onInstallation.filter(({ name }) => !/^migrate( --dry-run)?$|^backup|--vacuum/.test(name)),
    { name: "bootstrap", args: ["bootstrap", "--org", "other.example"] },
    { name: "serve", args: ["serve", "--listen", "127.0.0.1:0"] },
    { name: "migrate --expand", args: ["migrate", "--expand"] },
  ];
  for (const { name, args } of commands) {
    const { code, stdout, stderr } = await runCommand([...args, ...location]);
    assert.deepEqual([name, code, stdout], [name, 6, ""], stderr);
    assert.match(stderr, /the database is that of version 0\.10 or 0\.11: .* `arbor migrate` /, name);
  }
  assert.deepEqual(await withClient(url, dumpPg), before);
  const planned = await runCommand(["migrate", "--dry-run", ...location]);
  assert.match(planned.stdout, /^would copy \d+ rows of \d+ tables into new tables, in one transaction\n$/);
  assert.deepEqual(await withClient(url, dumpPg), before);
  const converted = await runCommand(["migrate", ...location]);
  assert.match(converted.stdout, /^converted: \d+ rows of \d+ tables\n$/, converted.stderr);
  assert.equal((await runCommand(["check", ...location])).code, 0);
});

/** Columns, indexes, constraints, triggers and functions, each as a line. */
const SCHEMA = `
  SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '')
    || ' ' || coalesce(collation_name, '') AS line FROM information_schema.columns WHERE table_schema = 'public'
  UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
  UNION ALL SELECT conrelid::regclass || ': ' || pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace`;

async function readSchema(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(SCHEMA);
  assert.ok(rows.length > 200, `${rows.length} lines`);
  return rows.map(({ line }) => line).sort();
}

async function dumpPg(client: pg.Client): Promise<Dump> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'",
  );
  const dump = new Map<string, object[]>();
  for (const { name } of rows) dump.set(name, (await client.query(`SELECT * FROM public."${name}"`)).rows);
  return dump as unknown as Dump;
}
