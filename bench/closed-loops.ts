// Closed loops: so many connections from one address with one call at a time each, beside one spinning process per
// processor. No call may be refused, and health checks from another address are answered within two seconds.
//
//   node --import tsx bench/closed-loops.ts [--connections 32,256,2000] [--seconds 8] [--rows 20000]
//     [--no-spin] [--service dist/main.js] [--setting=--name=value ...]
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { get } from "node:http";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { builtinRoleUid } from "../src/kernel/ids.js";
import { roleBindingKind } from "../src/store/iam/role-bindings.js";
import { openSqlite } from "../src/store/sqlite/open.js";
import { bindingRow } from "../test/support/rows.js";
import { printConditions } from "./conditions.js";
import { judge } from "./figures.js";
import { buildRequest, Http1Connection } from "./http1.js";
import { IDENTITIES, identityUid, type Seeded, seed } from "./seed.js";
import { type Service, startService } from "./service.js";
import { targetsIn } from "./targets.js";

const WRITER = IDENTITIES - 1;
const CALLERS = "127.0.0.2";
const HEALTH_LIMIT_MS = 2_000;

const { values } = parseArgs({
  options: {
    connections: { type: "string", default: "32,256,2000" },
    seconds: { type: "string", default: "8" },
    rows: { type: "string", default: "20000" },
    "no-spin": { type: "boolean", default: false },
    service: { type: "string" },
    setting: { type: "string", multiple: true, default: [] },
  },
});

const scratch = mkdtempSync(join(tmpdir(), "arbor-loops-"));
const original = await seed(Number(values.rows));
const seeded: Seeded = { ...original, directory: join(scratch, "data") };
cpSync(original.directory, seeded.directory, { recursive: true });
printConditions({ directory: seeded.directory, rows: seeded.tree.groups, tokens: WRITER });
await addWriter();
const spinning = values["no-spin"] ? [] : Array.from({ length: availableParallelism() }, spin);
const service = await startService(seeded, values.service, [
  ...["--metrics-listen", "off", "--quotas", "groups=1000000"],
  ...values.setting,
]);
try {
  // Chosen before groups are created.
  const reads = getRequests();
  await run("warm-up", 32, reads, 3);
  for (const connections of values.connections.split(",").map(Number)) {
    for (const [name, requests] of Object.entries({ GET: reads, list: listRequests(), create: creations() })) {
      const { refused, longestCheckMs } = await run(name, connections, requests, Number(values.seconds));
      judge(`${name} with ${connections}: refused calls`, refused, { atMost: 0 });
      judge(`${name} with ${connections}: slowest health check, ms`, longestCheckMs, { atMost: HEALTH_LIMIT_MS });
    }
  }
} finally {
  await service.server.stop();
  for (const process of spinning) process.kill();
  rmSync(scratch, { recursive: true, force: true });
}

function spin(): ChildProcess {
  return spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
}

async function addWriter(): Promise<void> {
  const store = openSqlite({ directory: seeded.directory });
  const uid = `${seeded.tree.root}/c${"0".repeat(15)}`;
  const binding = bindingRow(uid, identityUid(seeded.tree, WRITER), builtinRoleUid("owner"), {
    groupUid: seeded.tree.root,
  });
  await store.write((tx) => tx.table(roleBindingKind).insert(binding));
  await store.close();
}

function build(method: string, path: string, caller: number, body?: string): Buffer {
  return buildRequest((service as Service).url, service.tokens[caller] ?? "", method, path, body);
}

function getRequests(): (n: number) => Buffer {
  const all = targetsIn(seeded, WRITER, 5_000).map(({ uid, reader }) =>
    build("GET", `/iam/v2beta1/groups/${uid}`, reader),
  );
  return (n) => all[n % all.length] as Buffer;
}

function listRequests(): () => Buffer {
  const list = build("GET", "/iam/v2beta1/groups?order_by=name&page_size=200", WRITER);
  return () => list;
}

function creations(): (n: number) => Buffer {
  const run = Math.random().toString(36).slice(2);
  return (n) =>
    build("POST", `/iam/v2beta1/groups/${seeded.tree.root}`, WRITER, JSON.stringify({ name: `group ${run} ${n}` }));
}

async function run(name: string, connections: number, requestOf: (n: number) => Buffer, seconds: number) {
  const port = Number(new URL(service.url).port);
  const statuses = new Map<number, number>();
  const latencies: number[] = [];
  const startMs = performance.now();
  const endMs = startMs + seconds * 1_000;
  const checks = watchHealth(service.url);
  let sent = 0;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const connection = new Http1Connection(port, CALLERS);
      do {
        const sentMs = performance.now();
        const { status } = await connection.call(requestOf(sent++));
        latencies.push(performance.now() - sentMs);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status === 0) break;
      } while (performance.now() < endMs);
      connection.close();
    }),
  );
  const tookS = (performance.now() - startMs) / 1_000;
  const { count, longestMs, failed } = await checks();
  latencies.sort((a, b) => a - b);
  const at = (share: number) => (latencies[Math.floor(latencies.length * share)] ?? Number.NaN).toFixed(0);
  console.log(
    `${name.padEnd(7)} ${String(connections).padStart(5)} connections: ${(latencies.length / tookS).toFixed(0)}/s, ` +
      `${[...statuses].map(([status, n]) => `${n} with ${status}`).join(", ")}; p50 ${at(0.5)}, p99 ${at(0.99)}, ` +
      `longest ${latencies.at(-1)?.toFixed(0)} ms; ${count} health checks, ${failed} failed, longest ${longestMs.toFixed(0)} ms; ` +
      `${service.server.residentMegabytes()} MB`,
  );
  return { refused: latencies.length - (statuses.get(200) ?? 0) + failed, longestCheckMs: longestMs };
}

function watchHealth(url: string) {
  let isOver = false;
  let count = 0;
  let failed = 0;
  let longestMs = 0;
  const check = (path: string) =>
    new Promise<number>((resolve) => {
      get(url + path, { agent: false, localAddress: "127.0.0.1", timeout: 10_000 }, (res) => {
        res.resume();
        res.on("end", () => resolve(res.statusCode ?? 0));
      }).on("error", () => resolve(0));
    });
  const watch = async () => {
    for (let n = 0; !isOver; n++) {
      const startMs = performance.now();
      if ((await check(n % 2 === 0 ? "/healthz" : "/readyz")) !== 200) failed++;
      count++;
      longestMs = Math.max(longestMs, performance.now() - startMs);
      await delay(100);
    }
  };
  const watching = watch();
  return async () => {
    isOver = true;
    await watching;
    return { count, failed, longestMs };
  };
}
