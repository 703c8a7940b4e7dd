// PostgreSQL through PgBouncer in transaction mode. Needs TEST_ARBOR_DATABASE_URL and pgbouncer.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import pg from "pg";
import { ApiError } from "../../src/kernel/errors.js";
import { openPg } from "../../src/store/pg/open.js";
import type { Tx } from "../../src/store/transaction.js";
import { freePort } from "../support/free-port.js";
import { isCampaign } from "../support/scale.js";
import { waitUntil } from "../support/wait-until.js";
import { newDatabase, withClient } from "./databases.js";
import { IGNORE_LIMITS, type PgBouncer, startPgBouncer, withoutPgBouncer } from "./pgbouncer.js";

const SERVER = process.env.TEST_ARBOR_DATABASE_URL ?? "";
/** How long the load takes, in seconds. */
const LOAD_S = Number(process.env.TEST_ARBOR_LOAD_S ?? (isCampaign ? 600 : 4));

const isUnavailable = (error: unknown) => error instanceof ApiError && error.code === Code.Unavailable;

let pooler: PgBouncer;
before(async () => {
  if (withoutPgBouncer === false) pooler = await startPgBouncer(SERVER);
});
after(() => pooler?.stop());

type Options = Partial<Parameters<typeof openPg>[0]>;

async function openThrough(t: TestContext, options: Options = {}) {
  const directUrl = await newDatabase();
  const store = await openPg({ url: pooler.through(directUrl), directUrl, ...options });
  t.after(() => store.close());
  return { directUrl, store };
}

/** Runs a query inside of a unit of work, on its connection. */
async function queryInside(
  t: TestContext,
  run: (unit: (tx: Tx) => Promise<unknown>) => Promise<unknown>,
  text: string,
) {
  let client: pg.Client | undefined;
  const { query } = pg.Client.prototype;
  const mocked = t.mock.method(pg.Client.prototype, "query", function remember(this: pg.Client, ...args: never[]) {
    if (typeof args[0] === "string" && String(args[0]).startsWith("BEGIN")) client = this;
    return query.apply(this, args as never);
  } as never);
  try {
    return await run(async (tx) => {
      await tx.settings.find("any");
      const [first] = (await client?.query(text))?.rows ?? [];
      return first;
    });
  } finally {
    mocked.mock.restore();
  }
}

const SETTINGS = `SELECT current_setting('statement_timeout') AS statement, current_setting('enable_seqscan') AS scans,
  current_setting('idle_in_transaction_session_timeout') AS idle, current_setting('plan_cache_mode') AS plans,
  (SELECT source FROM pg_settings WHERE name = 'synchronous_commit') AS "commitSource"`;

describe("a pooler that gives a session for a transaction", { skip: withoutPgBouncer }, () => {
  test("gets no statement with a name", async (t) => {
    const { directUrl, store } = await openThrough(t);
    const names: unknown[] = [];
    const { query } = pg.Client.prototype;
    const mocked = t.mock.method(pg.Client.prototype, "query", function watch(this: pg.Client, ...args: never[]) {
      names.push((args as readonly { name?: unknown }[])[0]?.name);
      return query.apply(this, args as never);
    } as never);
    await store.write(async (tx) => {
      await tx.settings.put("one", "1");
      await tx.jobs.nowMs();
    });
    await store.read((tx) => tx.settings.find("one"));
    assert.ok(names.length > 5);
    assert.deepEqual([...new Set(names)], [undefined]);
    // Control: without a pooler they have names.
    const direct = await openPg({ url: directUrl });
    t.after(() => direct.close());
    await direct.read((tx) => tx.settings.find("one"));
    mocked.mock.restore();
    assert.ok(names.some((name) => /^arbor_\d+$/.test(String(name))));
    const prepared = await withClient(directUrl, (client) =>
      client.query("SELECT count(*)::int AS n FROM pg_prepared_statements"),
    );
    assert.deepEqual(prepared.rows, [{ n: 0 }]);
  });

  test("gets no settings as its connections start", async (t) => {
    const seen = await recordStartUps(t, SERVER);
    const directUrl = await newDatabase();
    const watched = new URL(directUrl);
    watched.port = String(seen.port);
    const names = () => seen.parameters.map((one) => Object.keys(one).sort().join());
    const pooled = await openPg({ url: watched.href, directUrl });
    await pooled.close();
    assert.deepEqual([...new Set(names())], ["application_name,client_encoding,database,user"]);
    // Control: without a pooler there are limits.
    const direct = await openPg({ url: watched.href });
    await direct.close();
    assert.match(String(names().at(-1)), /idle_in_transaction_session_timeout.*statement_timeout/);
  });

  test("has limits, plans and durability in force inside of a transaction, and not after it", async (t) => {
    const { directUrl, store } = await openThrough(t, { poolSize: 2 });
    const inside = {
      statement: "30s",
      scans: "off",
      idle: "30s",
      plans: "force_generic_plan",
      commitSource: "session",
    };
    for (const run of [store.read, store.write]) {
      assert.deepEqual(await queryInside(t, run, SETTINGS), inside);
    }
    const short = (unit: (tx: Tx) => Promise<unknown>) => store.write(unit, { maxIdleMs: 1_234.5 });
    assert.deepEqual(await queryInside(t, short, SETTINGS), { ...inside, idle: "1235ms" });
    await assert.rejects(
      store.write(async (tx) => {
        await tx.settings.put("one", "1");
        throw new RangeError("rolled back");
      }),
      RangeError,
    );
    // The same sessions, for another client.
    await withClient(pooler.through(directUrl), async (client) => {
      for (let i = 0; i < 8; i++) {
        const { rows } = await client.query(SETTINGS);
        assert.deepEqual(rows, [{ statement: "0", scans: "on", idle: "0", plans: "auto", commitSource: "default" }]);
      }
    });
  });

  test("has a statement ended at its limit, and a silent transaction", async (t) => {
    const { directUrl, store } = await openThrough(t, { maxStatementMs: 300 });
    await withClient(directUrl, async (client) => {
      await client.query("BEGIN; LOCK TABLE settings IN ACCESS EXCLUSIVE MODE");
      const startMs = performance.now();
      await assert.rejects(
        store.write((tx) => tx.settings.put("one", "1")),
        isUnavailable,
      );
      assert.ok(performance.now() - startMs < 3_000);
      await client.query("ROLLBACK");
    });
    const silent = (maxIdleMs: number) =>
      store.write(
        async (tx) => {
          await tx.settings.put("silent", String(maxIdleMs));
          await sleep(400);
          await tx.settings.put("silent", "done");
        },
        { maxIdleMs },
      );
    await assert.rejects(silent(100), isUnavailable);
    await silent(10_000);
    assert.equal(await store.read((tx) => tx.settings.find("silent")), "done");
    assert.equal(await store.read((tx) => tx.settings.find("one")), undefined);
  });

  test("is refused with synchronous_commit = off, also when another client of the session has set it", async (t) => {
    const { directUrl, store } = await openThrough(t, { poolSize: 2 });
    const other = new pg.Client({ connectionString: pooler.through(directUrl) });
    await other.connect();
    t.after(() => other.end());
    // All three sessions: what they do to each other is why limits may not be set for a session.
    await store.write((tx) => tx.settings.put("one", "1"));
    await other.query("SET synchronous_commit = off");
    await assert.rejects(
      store.write((tx) => tx.settings.put("one", "2")),
      isUnavailable,
    );
    await assert.rejects(
      store.read((tx) => tx.settings.find("one")),
      isUnavailable,
    );
    await other.query("RESET synchronous_commit");
    assert.equal(await store.read((tx) => tx.settings.find("one")), "1");
  });

  test("is refused at the start where the URLs lead to different databases, or it gives a session for a statement", async (t) => {
    const [one, other] = [await newDatabase(), await newDatabase()];
    await assert.rejects(
      openPg({ url: pooler.through(one), directUrl: other }),
      /--database-url and --database-direct-url lead to different databases/,
    );
    const byStatement = await startPgBouncer(SERVER, ["pool_mode = statement"]);
    t.after(() => byStatement.stop());
    await assert.rejects(
      openPg({ url: byStatement.through(one), directUrl: one }),
      /transaction blocks not allowed in statement pooling mode/i,
    );
    await assert.rejects(
      openPg({ url: `${pooler.through(one)}?options=-cjit%3Doff`, directUrl: one }),
      /the pooler rejects unsupported startup parameter: options: take/,
    );
  });

  test("is refused while it leads to a standby, and used again once it leads to the primary", async (t) => {
    const servers = startServers(t);
    const primary = await servers.startPrimary();
    const standby = await servers.startStandby();
    const pair = await startPgBouncer(primary);
    t.after(() => pair.stop());
    const behind = await startPgBouncer(standby);
    t.after(() => behind.stop());
    // A name that leads elsewhere from one moment to the next, as that of a pooler does after a failover.
    const way = await startSwitch(t, new URL(pair.through(primary)).port);
    const url = new URL(primary);
    url.port = String(way.port);
    const store = await openPg({ url: url.href, directUrl: primary, poolSize: 2 });
    t.after(() => store.close());
    await store.write((tx) => tx.settings.put("one", "1"));
    way.leadTo(new URL(behind.through(standby)).port);
    const used: string[] = [];
    for (let i = 0; i < 3; i++) {
      for (const run of [store.read, store.write]) {
        const unit = async (tx: Tx) => {
          await tx.settings.find("one");
        };
        await assert.rejects(
          run(unit).then(() => used.push("used")),
          isUnavailable,
        );
      }
    }
    await assert.rejects(store.check(), isUnavailable);
    assert.deepEqual(used, []);
    way.leadTo(new URL(pair.through(primary)).port);
    assert.equal(await store.read((tx) => tx.settings.find("one")), "1");
    // A fault lasts for some seconds after its last error.
    await waitUntil(async () => (await store.check()) === "ok");
  });

  test(`serves a load of ${LOAD_S} s; with named statements calls fail`, {
    timeout: (LOAD_S + 60) * 1_000,
  }, async (t) => {
    const { directUrl, store } = await openThrough(t);
    const second = await openPg({ url: pooler.through(directUrl), directUrl });
    t.after(() => second.close());
    const lax = await startPgBouncer(SERVER, [IGNORE_LIMITS]);
    t.after(() => lax.stop());
    const named = await openPg({ url: lax.through(directUrl) });
    t.after(() => named.close());
    const unnamed = { calls: 0, failed: 0, conflicts: 0, written: 0 };
    const control = { calls: 0, failed: 0 };
    const endMs = performance.now() + LOAD_S * 1_000;
    const load = async (i: number) => {
      const node = i % 2 === 0 ? store : second;
      for (let n = 0; performance.now() < endMs; n++) {
        unnamed.calls++;
        try {
          if (n % 4 === 0) {
            await node.write(async (tx) => {
              const before = Number((await tx.settings.find(`counter ${i % 3}`)) ?? 0);
              await tx.settings.put(`counter ${i % 3}`, String(before + 1));
            });
            unnamed.written++;
          } else {
            await node.read(async (tx) => {
              await Promise.all([tx.settings.find("counter 0"), tx.settings.find("origin")]);
              await tx.settings.find(`counter ${n % 3}`);
            });
          }
        } catch (error) {
          if (error instanceof ApiError && error.code === Code.Aborted) unnamed.conflicts++;
          else {
            unnamed.failed++;
            t.diagnostic(String((error as Error).stack));
          }
        }
      }
    };
    const loadNamed = async () => {
      while (performance.now() < endMs) {
        control.calls++;
        await named.read((tx) => tx.settings.find("origin")).catch(() => control.failed++);
        await sleep(20);
      }
    };
    await Promise.all([...Array.from({ length: 12 }, (_, i) => load(i)), ...Array.from({ length: 12 }, loadNamed)]);
    t.diagnostic(`unnamed ${JSON.stringify(unnamed)}; named ${JSON.stringify(control)}`);
    assert.equal(unnamed.failed, 0);
    assert.ok(unnamed.calls > 50 * LOAD_S);
    const counted = await store.read(async (tx) => {
      const counters = await Promise.all([0, 1, 2].map((i) => tx.settings.find(`counter ${i}`)));
      return counters.reduce((sum, one) => sum + Number(one ?? 0), 0);
    });
    assert.equal(counted, unnamed.written, "acknowledged writes, each once");
    assert.ok(control.failed > 0, "named statements were not lost");
  });
});

/** Forwards connections to a server, and reads what they start with. */
async function recordStartUps(t: TestContext, url: string) {
  const parameters: Record<string, string>[] = [];
  const port = await forward(
    t,
    () => Number(new URL(url).port),
    (first) => {
      // The length, the version of the protocol, and then names and values, each ended by a zero.
      const words = first.subarray(8).toString().split("\0");
      const pairs = Array.from({ length: Math.floor(words.length / 2) }, (_, i) => [words[2 * i], words[2 * i + 1]]);
      parameters.push(Object.fromEntries(pairs.filter(([name]) => name)));
    },
  );
  return { port, parameters };
}

/** Forwards connections to one port or another; those to the other are closed. */
async function startSwitch(t: TestContext, first: string) {
  let target = Number(first);
  const port = await forward(t, () => target);
  return {
    port,
    leadTo(next: string) {
      target = Number(next);
      for (const socket of sockets) socket.destroy();
    },
  };
}

const sockets = new Set<Socket>();

async function forward(t: TestContext, target: () => number, onStart: (first: Buffer) => void = () => {}) {
  const server = createServer((client) => {
    const upstream = connect(target(), "127.0.0.1");
    client.once("data", onStart);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket
        .on("error", () => {})
        .on("close", () => {
          sockets.delete(socket);
          other.destroy();
        });
      socket.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as { port: number }).port;
}

/** A primary and its standby, which end with the test. */
function startServers(t: TestContext) {
  // PostgreSQL does not run as root.
  const user = process.getuid?.() === 0 ? "postgres" : undefined;
  const idOf = (flag: "-u" | "-g") => Number(execFileSync("id", [flag, user ?? ""], { encoding: "utf8" }));
  const directory = mkdtempSync(join(tmpdir(), "arbor-standby-"));
  chmodSync(directory, 0o755);
  if (user !== undefined) chownSync(directory, idOf("-u"), idOf("-g"));
  const started: string[] = [];
  const run = (program: string, ...args: readonly string[]) => {
    const [command = "", ...rest] = [...(user === undefined ? [] : ["runuser", "-u", user, "--"]), program, ...args];
    execFileSync(command, rest, { cwd: tmpdir(), stdio: "ignore" });
  };
  const start = async (name: string) => {
    const port = await freePort();
    const flags = `-p ${port} -c listen_addresses=127.0.0.1 -c fsync=off -k ${directory}`;
    run(
      "pg_ctl",
      "-D",
      join(directory, name),
      "-w",
      "-t",
      "30",
      "-o",
      flags,
      "-l",
      join(directory, `${name}.log`),
      "start",
    );
    started.push(name);
    return `postgres://arbor@127.0.0.1:${port}/postgres`;
  };
  t.after(() => {
    for (const name of started) run("pg_ctl", "-D", join(directory, name), "-m", "immediate", "-w", "stop");
    rmSync(directory, { recursive: true, force: true });
  });
  let primary = "";
  return {
    async startPrimary() {
      const data = join(directory, "primary");
      run("initdb", "-D", data, "-U", "arbor", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync");
      primary = await start("primary");
      return primary;
    },
    async startStandby() {
      const data = join(directory, "standby");
      run("pg_basebackup", `--pgdata=${data}`, "-R", "--checkpoint=fast", "--no-sync", `--dbname=${primary}`);
      return start("standby");
    },
  };
}
