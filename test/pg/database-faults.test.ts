// Faults of a PostgreSQL server under a running service: what callers, readiness, metrics and the log say of each, and that
// all of it ends with the fault. A full disk is a small file system of its own, so it needs root, and the server on this
// machine. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { chmodSync, chownSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import type pg from "pg";
import { pino } from "pino";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import type { DatabaseFaultEvent } from "../../src/store/faults.js";
import { openPg } from "../../src/store/pg/open.js";
import { spawnSync } from "../support/child-process.js";
import { startHarness } from "../support/harness.js";
import { scrape } from "../support/metrics.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { newDatabase, withClient } from "./databases.js";

const SERVER = process.env.TEST_ARBOR_DATABASE_URL ?? "";
const WAIT_MS = 60_000;

type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string };

/** Starts a service that writes its log to a list, with an organisation. */
async function startService(t: TestContext, databaseUrl: string) {
  const lines: LogLine[] = [];
  const logger = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const settings = { databaseUrl, masterKeyFile, metricsListen: "127.0.0.1:0" };
  const service = await startHarness(settings, { logger });
  t.after(() => service.stop());
  const { group, token } = await service.organisation("faults.example");
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const path = `${service.url}/iam/v2beta1/groups/${group}`;
  let names = 0;
  return {
    service,
    masterKeyFile,
    lines,
    linesOf: (fault: string) => lines.filter((line) => line.fault === fault),
    async write(): Promise<number> {
      const body = JSON.stringify({ name: `group ${names++}`, description: "x".repeat(200) });
      const response = await fetch(path, { method: "POST", headers, body });
      await response.arrayBuffer();
      return response.status;
    },
    read: async () => (await fetch(path, { headers })).status,
    async ready(): Promise<string> {
      const response = await fetch(`${service.url}/readyz`);
      return `${response.status} ${((await response.json()) as { status: string }).status}`;
    },
    async metric(name: string, fault: string) {
      return (await scrape(service.app.metricsUrl)).sum(name, { fault });
    },
  };
}

type Service = Awaited<ReturnType<typeof startService>>;

async function assertWell(service: Service, fault: string): Promise<void> {
  assert.equal(await service.write(), 200);
  assert.equal(await service.ready(), "200 ok");
  assert.equal(await service.metric("arbor_database_fault", fault), 0);
  assert.equal(await service.metric("arbor_database_fault_errors_total", fault), 0);
  assert.deepEqual(service.linesOf(fault), []);
}

/** Makes writes until one fails, and looks at what is said of it. */
async function assertFault(service: Service, fault: string, code: string, message: RegExp): Promise<void> {
  await waitUntil(async () => (await service.write()) === 503, WAIT_MS);
  await waitUntil(async () => (await service.metric("arbor_database_fault", fault)) === 1, WAIT_MS);
  assert.ok(((await service.metric("arbor_database_fault_errors_total", fault)) ?? 0) >= 1);
  const [line, ...more] = service.linesOf(fault);
  assert.deepEqual([line?.code, line?.level], [code, 50], JSON.stringify(line));
  assert.match(line?.msg ?? "", message);
  assert.equal(more.length, 0, "one line, however many calls fail");
}

async function assertReadOnly(service: Service): Promise<void> {
  assert.equal(await service.ready(), "200 read-only");
  assert.equal(await service.read(), 200);
  assert.equal((await scrape(service.service.app.metricsUrl)).sum("arbor_database_up"), 1);
}

async function assertEnds(service: Service, fault: string): Promise<void> {
  await waitUntil(async () => (await service.metric("arbor_database_fault", fault)) === 0, WAIT_MS);
  await waitUntil(async () => (await service.ready()) === "200 ok", WAIT_MS);
  const last = service.linesOf(fault).at(-1);
  assert.deepEqual([last?.msg, last?.level], ["the database can be used again", 30]);
  assert.equal(await service.write(), 200);
}

/** Ends all connections to a database but that of `client`. */
const disconnect = (client: pg.Client, name: string) =>
  client.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()",
    [name],
  );

const nameOf = (url: string) => new URL(url).pathname.slice(1);

describe("a fault of the database server", () => {
  test("a full disk: writes fail, reads and readiness say so, until there is space", async (t) => {
    const small = await mountSmall(t);
    if (small === undefined) return t.skip("needs root, mount, and the server on this machine");
    const url = await newDatabase();
    await small.take(url);
    const service = await startService(t, url);
    await assertWell(service, "full");
    small.fill();
    await assertFault(service, "full", "53100", /^the disk of the database server is full/);
    await assertReadOnly(service);
    // Without calls: rows that are changed where they stand do not end the fault.
    const errors = async () => (await service.metric("arbor_database_fault_errors_total", "full")) ?? 0;
    const before = await errors();
    await waitUntil(async () => (await errors()) >= before + 7, WAIT_MS);
    await assertReadOnly(service);
    small.empty();
    await assertEnds(service, "full");
  });

  test("a server that is read-only: writes fail, reads are served", async (t) => {
    const url = await newDatabase();
    const name = nameOf(url);
    const service = await startService(t, url);
    await assertWell(service, "read_only");
    await withClient(SERVER, async (client) => {
      await client.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
      await disconnect(client, name);
    });
    await assertFault(service, "read_only", "25006", /read-only, such as a standby/);
    await assertReadOnly(service);
    await withClient(SERVER, (client) => client.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`));
    await assertEnds(service, "read_only");
  });

  test("a right that is missing: writes fail, reads are served", async (t) => {
    const url = await newDatabase();
    const role = await createRole(url);
    const service = await startService(t, role.url);
    await assertWell(service, "denied");
    const change = (statement: string) => withClient(url, (client) => client.query(statement));
    await change(`REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public FROM ${role.name}`);
    await assertFault(service, "denied", "42501", /denies the login or a right/);
    await assertReadOnly(service);
    await change(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role.name}`);
    await assertEnds(service, "denied");
  });

  for (const { fault, code, what, begin, end } of [
    {
      fault: "denied",
      code: "28000",
      what: "a login that is denied",
      begin: (role: string) => `ALTER ROLE ${role} NOLOGIN`,
      end: (role: string) => `ALTER ROLE ${role} LOGIN`,
    },
    {
      fault: "no_connections",
      code: "53300",
      what: "too many connections",
      begin: (role: string) => `ALTER ROLE ${role} CONNECTION LIMIT 0`,
      end: (role: string) => `ALTER ROLE ${role} CONNECTION LIMIT -1`,
    },
  ]) {
    test(`${what}: the service is not ready, and the log has the cause`, async (t) => {
      const url = await newDatabase();
      const role = await createRole(url);
      const service = await startService(t, role.url);
      await assertWell(service, fault);
      await withClient(SERVER, async (client) => {
        await client.query(begin(role.name));
        await disconnect(client, nameOf(url));
      });
      await assertFault(service, fault, code, /the database server/);
      assert.equal(await service.ready(), "503 unavailable");
      await withClient(SERVER, (client) => client.query(end(role.name)));
      await assertEnds(service, fault);
    });
  }

  test("a server that is away: the log names the database, and not the master key", async (t) => {
    const proxy = await startProxy(await newDatabase());
    t.after(proxy.close);
    const service = await startService(t, proxy.url);
    await assertWell(service, "unreachable");
    await proxy.close();
    await waitUntil(async () => (await service.write()) === 503, WAIT_MS);
    await waitUntil(async () => (await service.metric("arbor_database_fault", "unreachable")) === 1, WAIT_MS);
    assert.equal(await service.ready(), "503 unavailable");
    assert.match(service.linesOf("unreachable")[0]?.msg ?? "", /^the database server cannot be reached/);
    await service.service.app.reload();
    const aboutKey = () => service.lines.filter(({ msg }) => /master key file/.test(msg)).map(({ msg }) => msg);
    assert.deepEqual(aboutKey(), ["the master key file was not read again: the database cannot be read"]);
    await proxy.listen();
    await assertEnds(service, "unreachable");
    // Control: the file itself.
    writeFileSync(service.masterKeyFile, "damaged\n");
    await service.service.app.reload();
    assert.equal(aboutKey().at(-1), "the master key file cannot be used: the keys before stay in use");
  });

  test("a statement that takes too long is told from a server that is away", async (t) => {
    const url = await newDatabase();
    const events: DatabaseFaultEvent[] = [];
    const store = await openPg({ url, poolSize: 2, maxStatementMs: 100, onFault: (event) => events.push(event) });
    t.after(() => store.close());
    await withClient(url, async (client) => {
      await client.query("BEGIN; LOCK TABLE settings IN ACCESS EXCLUSIVE MODE");
      await assert.rejects(
        store.write((tx) => tx.settings.put("slow", "1")),
        /^Error: Unavailable|Unavailable/,
      );
      await client.query("ROLLBACK");
    });
    assert.deepEqual(
      events.map(({ fault, state, code }) => [fault, state, code]),
      [["timeout", "began", "57014"]],
    );
    assert.equal(await store.check(), "ok");
  });

  test("control: what a unit throws is no fault of the server", async (t) => {
    const events: DatabaseFaultEvent[] = [];
    const store = await openPg({ url: await newDatabase(), poolSize: 1, onFault: (event) => events.push(event) });
    t.after(() => store.close());
    const thrown = Object.assign(new Error("of the unit"), { code: "no_code" });
    await assert.rejects(
      store.write(() => {
        throw thrown;
      }),
      thrown,
    );
    assert.deepEqual([events, await store.check()], [[], "ok"]);
  });
});

let made = 0;

/** Creates a role that may do what the service does, and no more. */
async function createRole(url: string) {
  const name = `arbor_role_${process.pid}_${made++}`;
  await withClient(url, async (client) => {
    await client.query(`CREATE ROLE ${name} LOGIN`);
    await client.query(`GRANT ALL ON SCHEMA public TO ${name}`);
    await client.query(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${name}`);
    await client.query(`GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ${name}`);
    const { rows } = await client.query("SELECT nspname AS name FROM pg_namespace WHERE nspname = 'drizzle'");
    for (const { name: schema } of rows) {
      await client.query(
        `GRANT USAGE ON SCHEMA ${schema} TO ${name}; GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${name}`,
      );
    }
  });
  const own = new URL(url);
  own.username = name;
  return { name, url: own.href };
}

/** Mounts a file system of 48 MiB for the server; undefined where that is not possible. */
async function mountSmall(t: TestContext) {
  if (process.getuid?.() !== 0) return undefined;
  const { rows } = await withClient(SERVER, (client) => client.query("SHOW data_directory"));
  const owner = statSync(rows[0]?.data_directory ?? "", { throwIfNoEntry: false });
  if (owner === undefined) return undefined;
  const directory = tempDir();
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=48m", "tmpfs", directory], { stdio: "ignore" });
  if (status !== 0) return undefined;
  const dropped: (() => Promise<unknown>)[] = [];
  t.after(async () => {
    // Without its files the server could make no checkpoint any more.
    for (const drop of dropped) await drop();
    spawnSync("umount", [directory]);
  });
  chmodSync(directory, 0o700);
  chownSync(directory, owner.uid, owner.gid);
  // The server must reach it.
  for (let path = join(directory, ".."); path !== "/tmp" && path !== "/"; path = join(path, ".."))
    chmodSync(path, 0o711);
  const filler = join(directory, "filler");
  return {
    /** Moves a database there, until the test ends. */
    async take(url: string): Promise<void> {
      const space = `arbor_space_${process.pid}_${made++}`;
      const run = (statement: string) => withClient(SERVER, (client) => client.query(statement));
      await run(`CREATE TABLESPACE ${space} LOCATION '${directory}'`);
      await run(`ALTER DATABASE ${nameOf(url)} SET TABLESPACE ${space}`);
      dropped.push(
        () => run(`DROP DATABASE ${nameOf(url)} WITH (FORCE)`),
        () => run(`DROP TABLESPACE ${space}`),
      );
    },
    fill() {
      spawnSync("dd", ["if=/dev/zero", `of=${filler}`, "bs=64k"], { stdio: "ignore" });
    },
    empty: () => rmSync(filler),
  };
}

/** Forwards connections to a server, until it is closed; then they are refused. */
async function startProxy(url: string) {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
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
  let port = 0;
  const listen = () => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await listen();
  port = (server.address() as { port: number }).port;
  const via = new URL(url);
  via.port = String(port);
  return {
    url: via.href,
    listen,
    async close(): Promise<void> {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
