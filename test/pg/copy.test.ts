// Copies of installations from SQLite to PostgreSQL and back. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import pg from "pg";
import { closingTables, copiedTables } from "../../src/store/copy/tables.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { openPg } from "../../src/store/pg/open.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { uids } from "../cli/host/check/world.js";
import { createFilledDirectory, fillEmptyTables, readLiterals, withDatabase } from "../store/copy/copy-kit.js";
import { runKills } from "../store/copy/kill-campaign.js";
import { runCommand, startCommand } from "../support/command.js";
import { createRandom } from "../support/openapi/random.js";
import { childUid, groupRow } from "../support/rows.js";
import { memoryDir, tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { FIXTURE_BASE_URL, fixtures, restoreSqlite } from "../upgrade/fixtures.js";
import { compareResponses, type DatabaseSettings, startUpgraded } from "../upgrade/upgrade-suite.js";
import { emptyDatabase, withClient } from "./databases.js";

const fixture = fixtures.find(({ version }) => version === "1.0.0");
if (fixture === undefined) throw new Error("there is no fixture of version 1.0.0");
const expected = fixture.sqlite;

const allTables = [...copiedTables, ...closingTables];
const isJson = (table: string, column: string) =>
  allTables.find(({ name }) => name === table)?.columns.find(({ name }) => name === column)?.type === "json";

const pgFlags = (url: string, keys: string) => ["--database-url", url, "--master-key-file", join(keys, "master.key")];

async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  return withClient(url, async (client) => (await client.query(statement)).rows);
}

async function copy(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(["copy", ...args]);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** @param token one that was issued before the copy */
async function assertServes(settings: DatabaseSettings, token: string): Promise<void> {
  assert.ok(expected);
  const flags = Object.entries(settings).flatMap(([name, value]) => [
    `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
    value,
  ]);
  const check = await runCommand(["check", ...flags]);
  assert.equal(check.code, 0, check.stdout);
  assert.match(check.stdout, /^audit log: sound$/m);
  const verified = await runCommand(["audit", "verify", ...flags]);
  assert.equal(verified.code, 0, verified.stderr);
  for (const [root, rows] of Object.entries(expected.sealedRows)) {
    assert.ok(verified.stdout.includes(`${root}: ${rows} sealed rows`), verified.stdout);
  }
  const harness = await startUpgraded(settings);
  try {
    assert.deepEqual(await compareResponses(harness, expected.owner, expected.answers), []);
    assert.deepEqual(await compareResponses(harness, expected.guest, expected.guestAnswers), []);
    const response = await fetch(`${harness.url}/iam/v2beta1/groups/${expected.group}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    assert.equal(response.status, 200, await response.text());
    const { createTime, lists } = expected.pageTokens;
    harness.skewMs = Date.parse(createTime) - Date.now();
    const headers = { authorization: `Bearer ${await harness.token(expected.owner)}` };
    for (const { path, pageToken, uids } of lists) {
      const response = await fetch(`${harness.url}${path}&page_token=${pageToken}`, { headers });
      const body = (await response.json()) as Record<string, unknown>;
      const resources = Object.values(body).find(Array.isArray) as readonly { uid: string }[];
      assert.deepEqual([response.status, resources.map(({ uid }) => uid)], [200, uids], path);
    }
  } finally {
    await harness.stop();
  }
}

describe("arbor copy between SQLite and PostgreSQL", () => {
  it("keeps every answer, page token and audit log, there and back", async () => {
    const data = restoreSqlite(fixture);
    const migrated = await runCommand(["migrate", "--expand", "--contract", "--data", data]);
    assert.equal(migrated.code, 0, migrated.stderr);
    const issuing = ["admin", "token", "--identity", expected.owner, "--data", data, "--base-url", FIXTURE_BASE_URL];
    const token = (await runCommand(issuing)).stdout.trim();
    const url = await emptyDatabase();
    const there = await copy("--data", data, "--to", url);
    const back = join(tempDir(), "back");
    assert.equal(await copy(...pgFlags(url, data), "--to", back), there, "the digests are equal");
    assert.equal(there.split("\n").length - 1, allTables.length);
    copyFileSync(join(data, "master.key"), join(back, "master.key"));
    await assertServes({ data: back }, token);
    await assertServes({ databaseUrl: url, masterKeyFile: join(data, "master.key") }, token);
  });

  it("keeps values that numbers and texts of JavaScript would change, and the next number, there and back", async () => {
    const data = createFilledDirectory();
    fillEmptyTables(data);
    withDatabase(data, (db) =>
      db.exec(`UPDATE jobs SET fence = 9223372036854775807, changes = -9007199254740993;
        UPDATE groups SET description = '🌳' || char(10) || '"\\,{}' || char(9) || 'NULL é' WHERE name = 'g7';
        UPDATE sqlite_sequence SET seq = seq + 500 WHERE name = 'audit';
        INSERT INTO counters (scope, counter, slot, n) VALUES ('spread', 8, 0, 7)`),
    );
    const url = await emptyDatabase();
    const there = await copy("--data", data, "--to", url);
    // Nodes spread counters over slots.
    await query(
      url,
      "INSERT INTO counters (scope, counter, slot, n) VALUES ('spread', 8, 3, 5), ('spread', 8, 31, -5)",
    );
    // What a server may be set to.
    const name = new URL(url).pathname.slice(1);
    await query(url, `ALTER DATABASE ${name} SET bytea_output = 'escape'`);
    await query(url, `ALTER DATABASE ${name} SET statement_timeout = 1`);
    const back = join(tempDir(), "back");
    assert.equal(await copy(...pgFlags(url, data), "--to", back), there, "the digests are equal");
    await query(process.env.TEST_ARBOR_DATABASE_URL ?? "", `ALTER DATABASE ${name} RESET ALL`);
    assert.deepEqual(readLiterals(back, isJson), readLiterals(data, isJson));

    const last = withDatabase(data, (db) => Number(db.prepare("SELECT seq FROM sqlite_sequence").pluck().get()));
    const [next] = await query(url, "SELECT nextval(pg_get_serial_sequence('audit', 'id'))::int AS n");
    assert.equal(next?.n, last + 1);
    assert.equal(
      withDatabase(back, (db) => db.prepare("SELECT seq FROM sqlite_sequence").pluck().get()),
      last,
    );
  });

  it("keeps counters right for the writers of either database", async () => {
    const data = createFilledDirectory();
    const rowOf = (n: number) => groupRow(childUid(uids.root, 0x1000 + n), { name: `group ${n % 100}` });
    const sqlite = openSqlite({ directory: data });
    await sqlite.write(async (tx) => {
      for (let n = 0; n < 3_000; n++) await tx.table(groupKind).insert(rowOf(n));
    });
    await sqlite.close();

    const url = await emptyDatabase();
    await copy("--data", data, "--to", url);
    const nodes = await openPg({ url });
    const changes = Array.from({ length: 400 }, (_, i) =>
      nodes.write(async (tx) =>
        i % 3 === 0 ? tx.table(groupKind).delete(rowOf(i).uid) : tx.table(groupKind).insert(rowOf(6_000 + i)),
      ),
    );
    await Promise.all(changes);
    await nodes.close();
    const [{ slots } = {}] = await query(url, "SELECT count(DISTINCT slot)::int AS slots FROM counters");
    assert.ok(Number(slots) > 8, `counters have ${slots} slots`);

    const back = join(memoryDir(), "back");
    await copy(...pgFlags(url, data), "--to", back);
    copyFileSync(join(data, "master.key"), join(back, "master.key"));
    const sound = async () => {
      const { code, stdout } = await runCommand(["check", "--data", back]);
      assert.equal(code, 0, stdout);
      assert.match(stdout, /^counters: sound$/m);
    };
    await sound();
    assert.deepEqual(
      withDatabase(back, (db) => db.prepare("SELECT DISTINCT slot FROM counters").pluck().all()),
      [0],
    );
    const store = openSqlite({ directory: back });
    await store.write(async (tx) => {
      for (let n = 0; n < 300; n++) {
        await tx.table(groupKind).insert(rowOf(8_000 + n));
        await tx.table(groupKind).delete(rowOf(2_000 + n).uid);
      }
    });
    await store.close();
    await sound();
  });

  it("compares both without a change, and finds one byte and one row that differ", async () => {
    const data = createFilledDirectory();
    const url = await emptyDatabase();
    const file = join(tempDir(), "url");
    writeFileSync(file, url, { mode: 0o600 });
    const verify = () => runCommand(["copy", "--verify", "--data", data, "--to-url-file", file]);
    assert.match((await verify()).stderr, /there is no installation in the database/);
    const copied = await runCommand(["copy", "--data", data, "--to-url-file", file, "--progress"]);
    assert.equal(copied.code, 0, copied.stderr);
    assert.match(copied.stderr, /^\w+ \[[#.]{20}\] \d+ %, /m);
    const digests = copied.stdout;
    assert.match(digests, /^(?:[0-9a-f]{64} +\d+ \w+\n)+$/);
    const again = await runCommand(["copy", "--data", data, "--to-url-file", file]);
    assert.equal(again.code, 6);
    assert.match(
      again.stderr,
      /has an installation: choose an empty target, or compare both with `arbor copy --verify`/,
    );
    const same = await verify();
    assert.deepEqual([same.code, same.stdout], [0, digests]);
    assert.doesNotMatch(same.stderr, / %, /, "progress only where it is asked for");

    await query(url, "UPDATE groups SET description = description || ' ' WHERE name = 'g7'");
    await query(url, "DELETE FROM advisory_values WHERE ctid = (SELECT min(ctid) FROM advisory_values)");
    const { code, stderr } = await verify();
    assert.equal(code, 1);
    const different = [
      ...stderr.matchAll(/^(\w+): (\d+) rows \w{64} in the source, (\d+) rows \w{64} in the target$/gm),
    ];
    assert.deepEqual(
      different.map(([, table, a, b]) => [table, Number(a) - Number(b)]),
      [
        ["groups", 0],
        ["advisory_values", 1],
      ],
    );
  });

  it("rejects nodes and other copies on PostgreSQL, and a database that cannot hold a value", async () => {
    const data = createFilledDirectory();
    const url = await emptyDatabase();
    withDatabase(data, (db) => db.exec("UPDATE groups SET description = 'a' || char(0) || 'b' WHERE name = 'g7'"));
    const rejected = await runCommand(["copy", "--data", data, "--to", url]);
    assert.match(
      rejected.stderr,
      /table groups, row \S+, column description: PostgreSQL cannot store the character U\+0000/,
    );
    await assert.rejects(openPg({ url }), /the database is an unfinished copy of \S+arbor\.db: run `arbor copy` again/);
    assert.match((await runCommand(["check", ...pgFlags(url, data)])).stderr, /unfinished copy/);
    withDatabase(data, (db) => db.exec("UPDATE groups SET description = 'ab' WHERE name = 'g7'"));
    await copy("--data", data, "--to", url);

    const store = await openPg({ url });
    const back = join(tempDir(), "back");
    const served = await runCommand(["copy", ...pgFlags(url, data), "--to", back]);
    await store.close();
    assert.equal(served.code, 6);
    assert.match(served.stderr, /nodes use the database \(arbor\/\S+, from 127\.0\.0\.1\): stop them, then copy/);
    await copy(...pgFlags(url, data), "--to", back);
  });

  it("is not completed when a command changes the source meanwhile", async () => {
    const data = createFilledDirectory();
    const url = await emptyDatabase();
    await copy("--data", data, "--to", url);
    // The copy waits for this table at its beginning.
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query("BEGIN; LOCK TABLE groups IN ACCESS EXCLUSIVE MODE");
    const to = join(tempDir(), "to");
    const copying = startCommand(["copy", ...pgFlags(url, data), "--to", to]).ended;
    // Other tests use other databases of the server.
    const waiting =
      "SELECT 1 FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    await waitUntil(async () => (await query(url, waiting)).length > 0);
    await client.query("INSERT INTO audit SELECT max(id) + 1, '', 0, '', '', '', '', '', '', '' FROM audit; COMMIT");
    await client.end();
    const { code, stderr } = await copying;
    assert.equal(code, 6);
    assert.match(stderr, /the database \S+ was changed while it was copied: run the command again/);
    assert.match((await runCommand(["check", "--data", to])).stderr, /unfinished copy/);
    const again = await runCommand(["copy", ...pgFlags(url, data), "--to", to]);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stderr, /continuing an unfinished copy/);
  });

  it("goes on after SIGKILL at random moments, in both directions", async () => {
    const data = createFilledDirectory();
    withDatabase(data, (db) => {
      const row = db.prepare("INSERT INTO registry_events (id, time_ms) VALUES (?, ?)");
      db.transaction(() => {
        for (let i = 0; i < 20_000; i++) row.run(`event ${i}`, i);
      })();
    });
    const random = createRandom(19).int;
    const urls: string[] = [];
    const toPg = await runKills({
      from: ["--data", data],
      async createTarget() {
        const url = await emptyDatabase();
        urls.push(url);
        return { to: url, flags: pgFlags(url, data) };
      },
      kills: 3,
      random: () => random(1_000) / 1_000,
    });
    assert.deepEqual([toPg.violations, toPg.kills], [[], 3]);
    const toSqlite = await runKills({
      from: pgFlags(urls[0] ?? "", data),
      async createTarget() {
        const to = join(tempDir(), "to");
        return { to, flags: ["--data", to, "--master-key-file", join(data, "master.key")] };
      },
      kills: 3,
      random: () => random(1_000) / 1_000,
    });
    assert.deepEqual([toSqlite.violations, toSqlite.kills], [[], 3]);
  });
});
