// `arbor serve --workers` on PostgreSQL: the connections of all workers together, and a database that goes away.
import assert from "node:assert/strict";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { type Service, startHost, startService } from "../e2e/process.js";
import { runCommand } from "../support/command.js";
import { type ProbeResult, probe } from "../support/probe.js";
import { sendHttp } from "../support/send-http.js";
import { tempDir } from "../support/temp-dir.js";
import { workersOf } from "../support/workers.js";
import { newDatabase, withClient } from "./databases.js";

/** Calls at the same time: more than the pools together have connections. */
const CALLS = 40;
const ROUNDS = 10;
/** How long five starts of each worker take at most, on a busy machine. */
const END_MS = 120_000;

const host = startHost();
let service: Service | undefined;
after(async () => {
  service?.signal("SIGKILL");
  await service?.ended;
  host.close();
});

test("workers of which none can start while the database is away: the service ends, and no call waits", async () => {
  const url = new URL(await newDatabase());
  const relay = await startRelay(Number(url.port));
  url.port = String(relay.port);
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const flags = ["--database-url", url.href, "--master-key-file", masterKeyFile, "--base-url", "http://arbor.example"];
  const own = await startService(tempDir(), ...flags, "--workers", "2", "--metrics-listen", "off");
  try {
    relay.close();
    for (const pid of workersOf(own.pid)) process.kill(pid, "SIGKILL");
    const results: ProbeResult[] = [];
    const endMs = performance.now() + END_MS;
    while (own.alive() && performance.now() < endMs) {
      results.push(await probe(own.url));
      await sleep(50);
    }
    assert.ok(!own.alive(), "the service goes on");
    const { code } = await own.ended;
    const single = await runCommand(["serve", ...flags, "--data", tempDir(), "--listen", "127.0.0.1:0"]);
    assert.equal(code, single.code, "that of a single process");
    const { cause } = await own.waitForLog("no worker can start: the service ends");
    assert.match(String(cause), /ECONNREFUSED|cannot be reached|unavailable/i);
    assert.ok(!results.includes("hangs"), results.join());
  } finally {
    own.signal("SIGKILL");
    await own.ended;
  }
});

/** Passes connections on to a port of 127.0.0.1, until it is closed. */
async function startRelay(target: number): Promise<{ readonly port: number; close(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => other.destroy());
      socket.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

test("workers under load divide the connections of the node", async () => {
  const url = await newDatabase();
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const flags = ["--database-url", url, "--master-key-file", masterKeyFile, "--base-url", "http://arbor.example"];
  const bootstrapped = await host.run(["bootstrap", "--org", "workers.example", "--json", ...flags]);
  const { group, token } = JSON.parse(bootstrapped.stdout) as { group: string; token: string };
  const own = ["--workers", "2", "--database-pool-size", "6", "--metrics-listen", "off", "--access-log", "off"];
  service = await startService(tempDir(), ...flags, ...own);
  const { url: base } = service;
  const call = async () => {
    const path = `${base}/iam/v2beta1/groups/${group}`;
    const { status, text } = await sendHttp(path, { headers: { authorization: `Bearer ${token}` } });
    assert.equal(status, 200, text);
  };
  const counts: number[] = [];
  await withClient(url, async (client) => {
    const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    let isOver = false;
    const counting = (async () => {
      while (!isOver) {
        const sql =
          "SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND pid <> $1";
        counts.push((await client.query<{ count: number }>(sql, [rows[0]?.pid])).rows[0]?.count ?? 0);
        await sleep(5);
      }
    })();
    for (let round = 0; round < ROUNDS; round++) await Promise.all(Array.from({ length: CALLS }, call));
    isOver = true;
    await counting;
  });
  assert.equal(Math.max(...counts), 6, counts.join());
});
