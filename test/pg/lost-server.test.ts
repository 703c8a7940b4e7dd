// Servers that stop answering, and servers that are not the primary. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { describe, test } from "node:test";
import { Code } from "@connectrpc/connect";
import pg from "pg";
import { ApiError } from "../../src/kernel/errors.js";
import { assertReplicated, verifyServer, watchReplication } from "../../src/store/pg/connection.js";
import { toApiError } from "../../src/store/pg/faults.js";
import { openPg } from "../../src/store/pg/open.js";
import { newDatabase } from "./databases.js";

const isUnavailable = (error: unknown) =>
  error instanceof ApiError && error.code === Code.Unavailable && error.details.length > 0;

describe("a PostgreSQL server that does not answer", () => {
  test("fails calls as UNAVAILABLE in time, and is used again once it answers", async (t) => {
    const proxy = await startProxy(await newDatabase());
    const store = await openPg({ url: proxy.url, poolSize: 2, maxResponseMs: 300 });
    t.after(async () => {
      await store.close();
      proxy.close();
    });
    await store.write((tx) => tx.settings.put("before", "1"));
    proxy.freeze();
    // On the connection that is open. A new one would take 5 s to fail.
    await assert.rejects(
      store.write((tx) => tx.settings.put("frozen", "1")),
      isUnavailable,
    );
    proxy.thaw();
    await store.check();
    assert.equal(await store.read((tx) => tx.settings.find("before")), "1");
    await store.write((tx) => tx.settings.put("after", "1"));
  });
});

describe("errors of a failover", () => {
  const errors = [
    Object.assign(new Error("cannot execute INSERT in a read-only transaction"), { code: "25006" }),
    Object.assign(new Error("the database system is starting up"), { code: "57P03" }),
    Object.assign(new Error("connect EHOSTUNREACH"), { code: "EHOSTUNREACH" }),
    Object.assign(new Error("connect ENETUNREACH"), { code: "ENETUNREACH" }),
    Object.assign(new Error("getaddrinfo EAI_AGAIN"), { code: "EAI_AGAIN" }),
    new Error("timeout expired"),
    new Error("Query read timeout"),
    new Error("Connection terminated due to connection timeout"),
  ];
  for (const error of errors) {
    test(`${error.message}: UNAVAILABLE`, () => assert.ok(isUnavailable(toApiError(error))));
  }

  test("others are defects and stay as they are", () => {
    const defect = new Error("syntax error, Query read timeout");
    assert.equal(toApiError(defect), defect);
  });

  test("a standby is rejected and a primary is not", async () => {
    const check = (standby: boolean) =>
      new Promise((resolve) => {
        const client = {
          query: async () => ({ rows: [{ standby, synchronousCommit: "on", encoding: "UTF8", strings: "on" }] }),
        } as unknown as pg.ClientBase;
        verifyServer(client, resolve);
      });
    assert.equal(await check(false), undefined);
    assert.ok(isUnavailable(toApiError(await check(true))));
  });

  test("a server that would lose acknowledged writes is rejected at the start, and on each later connection", async (t) => {
    const url = await newDatabase();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    t.after(() => client.end());
    const database = new URL(url).pathname.slice(1);
    const setTo = (value: string) => client.query(`ALTER DATABASE ${database} SET synchronous_commit = ${value}`);
    await setTo("off");
    await assert.rejects(openPg({ url, poolSize: 1 }), /synchronous_commit = off and would lose acknowledged writes/);
    await setTo("local");
    const store = await openPg({ url, poolSize: 1 });
    t.after(() => store.close());
    await store.write((tx) => tx.settings.put("written", "before"));
    await setTo("off");
    await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()",
      [database],
    );
    // The first call may still be given the connection that was closed.
    for (let i = 0; i < 3; i++) {
      await assert.rejects(
        store.write((tx) => tx.settings.put("written", "lost")),
        isUnavailable,
      );
    }
    await setTo("on");
    assert.equal(await store.read((tx) => tx.settings.find("written")), "before");
  });

  test("a connection keeps the synchronous_commit that it was verified with", async (t) => {
    const client = new pg.Client({ connectionString: await newDatabase() });
    await client.connect();
    t.after(() => client.end());
    const readSource = async () => {
      const { rows } = await client.query("SELECT setting, source FROM pg_settings WHERE name = 'synchronous_commit'");
      return rows[0];
    };
    assert.deepEqual(await readSource(), { setting: "on", source: "default" });
    assert.equal(await new Promise((resolve) => verifyServer(client, resolve)), undefined);
    // A value of the session comes before that of the configuration.
    assert.deepEqual(await readSource(), { setting: "on", source: "session" });
  });

  test("a commit that PostgreSQL reports without its synchronous standby has an unknown outcome", async (t) => {
    const client = new pg.Client({ connectionString: await newDatabase() });
    t.after(() => client.end());
    await client.connect();
    watchReplication(client);
    await client.query("DO $$ BEGIN RAISE WARNING 'another warning'; END $$");
    assertReplicated(client);
    client.emit("notice", { routine: "SyncRepWaitForLSN" } as never);
    assert.throws(
      () => assertReplicated(client),
      (error) => isUnavailable(toApiError(error)),
    );
  });

  test("a write whose commit no standby confirmed fails, and the next one has another connection", async (t) => {
    const store = await openPg({ url: await newDatabase(), poolSize: 1 });
    t.after(() => store.close());
    const { query } = pg.Client.prototype;
    const commitWith = (routine: string) => {
      async function warnAtCommit(this: pg.Client, ...args: [never]) {
        const result = await query.apply(this, args as never);
        if (args[0] === "COMMIT") this.emit("notice", { routine } as never);
        return result;
      }
      return t.mock.method(pg.Client.prototype, "query", warnAtCommit as never);
    };
    const other = commitWith("exec_stmt_raise");
    await store.write((tx) => tx.settings.put("written", "1"));
    other.mock.restore();
    const unconfirmed = commitWith("SyncRepWaitForLSN");
    await assert.rejects(
      store.write((tx) => tx.settings.put("written", "2")),
      isUnavailable,
    );
    unconfirmed.mock.restore();
    await store.write((tx) => tx.settings.put("written", "3"));
    assert.equal(await store.read((tx) => tx.settings.find("written")), "3");
  });
});

/** Forwards connections to a server. While it is frozen it accepts connections and forwards nothing. */
async function startProxy(url: string) {
  const target = new URL(url);
  const pairs = new Set<Socket>();
  let frozen = false;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      pairs.add(socket);
      socket.on("error", () => {}).on("close", () => other.destroy());
      socket.pipe(other);
      if (frozen) socket.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the proxy has no port");
  const via = new URL(url);
  via.port = String(address.port);
  return {
    url: via.href,
    freeze() {
      frozen = true;
      for (const socket of pairs) socket.pause();
    },
    thaw() {
      frozen = false;
      for (const socket of pairs) socket.resume();
    },
    close() {
      for (const socket of pairs) socket.destroy();
      server.close();
    },
  };
}
