// Filters of advisories: the first page of 50 with the total, where 0.01 %, 1 % and 50 % of the advisories match, and of
// combinations, over HTTP on one connection.
//
//   npm run bench -- advisories [--rows 100000] [--calls 30] [--service dist/main.js]... [--orders]
//
// With TEST_ARBOR_DATABASE_URL the advisories are in that empty PostgreSQL database, else in SQLite. Several services
// response one after the other on the same data.
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { openInstallation } from "../src/app/installation.js";
import { resolveSettings } from "../src/config/config.js";
import { issueToken } from "../src/issuer/tokens.js";
import { builtinRoleUid, randomIds } from "../src/kernel/ids.js";
import { type AdvisoryRow, advisoryKind } from "../src/store/advisories/advisories.js";
import { groupKind } from "../src/store/iam/groups.js";
import { identityKind } from "../src/store/iam/identities.js";
import { roleBindingKind } from "../src/store/iam/role-bindings.js";
import { openDatabase } from "../src/store/sqlite/driver.js";
import type { Store } from "../src/store/store.js";
import type { Tx } from "../src/store/transaction.js";
import { bindingRow, childUid, groupRow, identityRow, rootUid } from "../test/support/rows.js";
import { median } from "./figures.js";
import { freePort, requireTools, startServer } from "./processes.js";

const BATCH = 250;

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "100000" },
    calls: { type: "string", default: "30" },
    service: { type: "string", multiple: true },
    orders: { type: "boolean", default: false },
  },
});
requireTools("taskset");
const count = Number(values.rows);
const calls = Number(values.calls);
const root = rootUid(0xad);
const group = childUid(root, 1);
const reader = childUid(root, 2);

/** The shares of the advisories that have a value, and the value. */
const shares = [
  { every: 10_000, name: "rare" },
  { every: 100, name: "some" },
  { every: 2, name: "half" },
] as const;

// The value of an advisory, scattered independently for each filter.
function chooseValue(n: number, filter: number, other = "other"): string {
  const rank = scatter(n, filter) % 10_000;
  if (rank === 0) return "rare";
  if (rank <= 100) return "some";
  return rank % 2 === 1 ? "half" : other;
}

function scatter(n: number, filter: number): number {
  let x = Math.imul(n + 1, 0x9e3779b1) ^ Math.imul(filter + 1, 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d);
  x = Math.imul(x ^ (x >>> 12), 0x297a2d39);
  return (x ^ (x >>> 15)) >>> 0;
}

const numbers: Readonly<Record<string, number>> = { rare: 4, some: 3, half: 2, other: 1 };

async function storeAdvisory(tx: Tx, n: number): Promise<void> {
  const uid = childUid(group, scatter(n, 99) * 0x100000 + n);
  const word = chooseValue(n, 9, "plain");
  const [artifactName, componentName] = [
    `artifact-${chooseValue(n, 1, String(n % 5_000))}`,
    `part-${chooseValue(n, 2, String(n % 3_000))}`,
  ];
  const aliases = [`CVE-2024-${n}`, `ALIAS-${chooseValue(n, 7, String(n))}`, `text ${word} end`];
  const row: AdvisoryRow = {
    uid,
    groupUid: group,
    advisoryId: `CGA-${String(n).padStart(12, "0")}`,
    legacyAdvisoryId: `OLD-${chooseValue(n, 0, String(n))}`,
    author: "bench",
    artifactName,
    artifactType: chooseValue(n, 3),
    artifactArchitecture: chooseValue(n, 4),
    componentName,
    componentType: chooseValue(n, 5),
    componentLocation: `/usr/${chooseValue(n, 6)}`,
    aliases,
    severities: [],
    searched: [artifactName, componentName, ...aliases].join("\n").toLowerCase(),
    latestEventType: numbers[chooseValue(n, 8)] ?? 1,
    sourceKey: "",
    sourceHash: "",
    deleteTimeMs: null,
    createTimeMs: 1_600_000_000_000 + (scatter(n, 50) % 1_000_000) * 1_000,
    updateTimeMs: 1_700_000_000_000 + (scatter(n, 51) % 1_000_000) * 1_000,
  };
  const event = {
    uid: childUid(uid, 1),
    advisoryUid: uid,
    type: numbers[chooseValue(n, 10)] ?? 1,
    author: chooseValue(n, 11),
    reviewer: chooseValue(n, 12),
    reviewState: numbers[chooseValue(n, 13)] ?? 1,
    data: {},
    createTimeMs: row.createTimeMs,
    updateTimeMs: row.createTimeMs,
  };
  await tx.table(advisoryKind).insert(row, [event]);
}

async function fill(store: Store): Promise<void> {
  await store.write(async (tx) => {
    for (const uid of [root, group]) await tx.table(groupKind).insert(groupRow(uid));
    await tx.table(identityKind).insert(identityRow(reader));
    await tx.table(roleBindingKind).insert(bindingRow(childUid(root, 3), reader, builtinRoleUid("viewer")));
  });
  const startMs = performance.now();
  const used = process.cpuUsage();
  for (let n = 0; n < count; n += BATCH) {
    await store.write(async (tx) => {
      for (let i = n; i < Math.min(n + BATCH, count); i++) await storeAdvisory(tx, i);
    });
  }
  const { user, system } = process.cpuUsage(used);
  const seconds = (performance.now() - startMs) / 1_000;
  const cpuUs = ((user + system) / count).toFixed(0);
  console.log(
    `stored ${count}, ${(count / seconds).toFixed(0)} a second, ${cpuUs} µs of processor time each, ${await measureBytes()} bytes each`,
  );
}

// The tables of advisories with their indexes, and what the index of texts has.
async function measureBytes(): Promise<string> {
  if (databaseUrl === undefined) {
    const file = openDatabase(join(data, "arbor.db"), { readonly: true });
    const bytes = file.prepare("SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'advisor%'").pluck().get();
    file.close();
    return (Number(bytes) / count).toFixed(0);
  }
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query(
    "SELECT sum(pg_total_relation_size(oid)) AS bytes FROM pg_class WHERE relkind = 'r' AND relname LIKE 'advisor%'",
  );
  await client.end();
  return (Number(rows[0].bytes) / count).toFixed(0);
}

interface Case {
  readonly name: string;
  readonly query: string;
}

// The filters, with the value for a share.
const single: Readonly<Record<string, (share: (typeof shares)[number]) => string>> = {
  legacy_advisory_ids: ({ name }) => `OLD-${name}`,
  artifact_names: ({ name }) => `artifact-${name}`,
  origin: ({ name }) => `artifact-${name}`,
  artifact_types: ({ name }) => name,
  artifact_architectures: ({ name }) => name,
  component_names: ({ name }) => `part-${name}`,
  component_types: ({ name }) => name,
  component_locations: ({ name }) => `/usr/${name}`,
  aliases: ({ name }) => `ALIAS-${name}`,
  event_review_states: ({ name }) => String(numbers[name]),
  event_authors: ({ name }) => name,
  event_reviewers: ({ name }) => name,
  event_types: ({ name }) => String(numbers[name]),
  latest_event_type: ({ name }) => String(numbers[name]),
  query: ({ name }) => `ext ${name} e`,
};

function buildCases(): Case[] {
  const cases: Case[] = [];
  for (const [filter, valueFor] of Object.entries(single)) {
    for (const share of shares) {
      const query = `${filter}=${encodeURIComponent(valueFor(share))}`;
      cases.push({ name: `${filter} ${100 / share.every} %`, query });
    }
  }
  const ids = Array.from({ length: Math.min(1_000, count / 100) }, (_, i) => `CGA-${String(i * 7).padStart(12, "0")}`);
  const idsQuery = (some: readonly string[]) => some.map((id) => `advisory_ids=${id}`).join("&");
  cases.push({ name: "advisory_ids 0.01 %", query: idsQuery(ids.slice(0, count / 10_000)) });
  // More do not fit into the headers of a request.
  cases.push({ name: "advisory_ids, 300 of them", query: idsQuery(ids.slice(0, 300)) });
  const without = (...authors: readonly string[]) => authors.map((name) => `exclude_event_authors=${name}`).join("&");
  cases.push({ name: "exclude_event_authors 0.01 %", query: without("some", "half", "other") });
  cases.push({ name: "exclude_event_authors 1 %", query: without("rare", "half", "other") });
  cases.push({ name: "exclude_event_authors 50 %", query: without("half") });
  cases.push({ name: "two of half: 25 %", query: "artifact_types=half&event_authors=half" });
  cases.push({
    name: "query of half, type, not some: 25 %",
    query: "query=ext%20half&component_types=half&exclude_event_authors=some",
  });
  cases.push({ name: "query of half, some by state: 0.5 %", query: "query=ext%20half&event_review_states=3" });
  if (values.orders) {
    for (const order of ["uid desc", "created_at", "created_at desc", "updated_at", "updated_at desc"])
      for (const { every, name } of shares)
        cases.push({
          name: `by ${order} ${100 / every} %`,
          query: `artifact_types=${name}&order_by=${encodeURIComponent(order)}`,
        });
    cases.push({ name: "half, the last page", query: `artifact_types=half&skip=${Math.floor(count * 0.49)}` });
    cases.push({ name: "query of two characters: 50 %", query: "query=f%20" });
  }
  return cases;
}

const directory = mkdtempSync(join(tmpdir(), "arbor-bench-advisories-"));
process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
const data = join(directory, "data");
const databaseUrl = process.env.TEST_ARBOR_DATABASE_URL;
await (await openInstallation({ mode: "create", settings: resolveSettings({ flags: { data }, env: {} }) })).close();
const masterKeyFile = join(data, "master.key");
const flags = databaseUrl === undefined ? { data } : { data, databaseUrl, masterKeyFile };
const settings = resolveSettings({ flags, env: {} });
const port = await freePort();
const url = `http://127.0.0.1:${port}`;
const installation = await openInstallation({ mode: "create", settings });
await fill(installation.store);
const token = await issueToken(
  { issuer: url, audience: url, identity: reader, lifeS: 3_600, atMs: Date.now() },
  installation.keys,
  randomIds,
);
await installation.close();

const cases = buildCases();
const where = databaseUrl === undefined ? "SQLite" : "PostgreSQL";
for (const main of values.service ?? ["dist/main.js"]) {
  const args = [main, "serve", "--no-access-log", "--listen", `127.0.0.1:${port}`, "--data", data];
  if (databaseUrl !== undefined) args.push("--database-url", databaseUrl, "--master-key-file", masterKeyFile);
  const server = await startServer(args);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  console.log(
    `\n${main} on ${where}, ${count} advisories: medians in ms, time and processor time of the service; total`,
  );
  for (const { name, query } of cases) {
    const times: number[] = [];
    const cpu: number[] = [];
    let total = "";
    const startMs = performance.now();
    for (let call = -2; call < calls; call++) {
      const usedUs = server.cpuUs();
      const callMs = performance.now();
      total = await get(agent, `/vulnerabilities/v2beta1/advisories?page_size=50&${query}`);
      if (call < 0) continue;
      times.push(performance.now() - callMs);
      cpu.push((server.cpuUs() - usedUs) / 1_000);
      // A slow service need not answer as often.
      if (call >= 2 && performance.now() - startMs > 3_000) break;
    }
    const cells = [median(times), median(cpu)].map((ms) => ms.toFixed(1).padStart(9));
    console.log(`${name.padEnd(40)}${cells.join("")}${total.padStart(9)}`);
  }
  agent.destroy();
  await server.stop();
}

function get(agent: Agent, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request(`${url}${path}`, { agent, headers: { authorization: `Bearer ${token}` } }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        body += chunk;
      });
      response.on("end", () => {
        if (response.statusCode === 200) resolve(String((JSON.parse(body) as { totalCount?: string }).totalCount));
        else reject(new Error(`${path.slice(0, 200)}: ${body}`));
      });
    })
      .once("error", reject)
      .end();
  });
}
