// Overload: peak goodput, then half of it, then five times of it, by an open loop, in rounds that together have a minute
// of overload. At five times the peak the service has to answer what it admits within the time that calls may wait, answer
// /healthz and /readyz, and not grow. Its goodput is printed and has no goal: a refusal costs about as much as a small call.
//
//   node --import tsx bench/overload.ts [--rows 20000] [--runs 3] [--seconds 60] [--rounds 6] [--factor 5] [--mix reads]
//     [--service dist/main.js]
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { builtinRoleUid } from "../src/kernel/ids.js";
import { roleBindingKind } from "../src/store/iam/role-bindings.js";
import { openSqlite } from "../src/store/sqlite/open.js";
import { freePort } from "../test/support/free-port.js";
import { bindingRow } from "../test/support/rows.js";
import { printConditions } from "./conditions.js";
import { judge, mean } from "./figures.js";
import { watchHealth } from "./health-watch.js";
import { buildRequest } from "./http1.js";
import { type LoadReport, measureRate, mergeReports, percentile, runOpenLoad } from "./open-load.js";
import { keepLoadCpuBusy, pinSelf, requireTools } from "./processes.js";
import { IDENTITIES, identityUid, type Seeded, seed } from "./seed.js";
import { type Service, startService } from "./service.js";
import { targetsIn } from "./targets.js";

const READERS = IDENTITIES - 1;
const WRITER = IDENTITIES - 1;
/** What a request does: reads a group, a page of 50 or of 200 groups with their total, or changes a group. */
type Kind = "get" | "page" | "long page" | "change";
/** How many of 20 requests are of each kind. To refuse one costs about as much as one of `reads`. */
const mixes: Readonly<Record<string, Readonly<Record<Kind, number>>>> = {
  mixed: { get: 4, page: 6, "long page": 6, change: 4 },
  reads: { get: 20, page: 0, "long page": 0, change: 0 },
};
const REQUESTS = 8_000;
/** Of use to its caller until then. */
const DEADLINE_MS = 6_000;
/** The default of --max-wait, and what a call takes when it has begun on a busy machine. */
const LONGEST_MS = 6_500;
const WARM_UP_SECONDS = 15;
/** The peak is that of one of these numbers of connections, each with one request at a time. */
const CONNECTIONS = [16, 32, 64];
const PEAK_SECONDS = 2;
/** How often metrics are scraped under load, in milliseconds. */
const SCRAPE_MS = 1_000;
const MEMORY_GOAL_MB = 600;

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "20000" },
    runs: { type: "string", default: "3" },
    seconds: { type: "string", default: "60" },
    rounds: { type: "string", default: "6" },
    factor: { type: "string", default: "5" },
    mix: { type: "string", default: "mixed" },
    service: { type: "string" },
  },
});
requireTools("taskset");
const mix = mixes[values.mix];
if (mix === undefined) throw new Error(`--mix must be one of ${Object.keys(mixes).join(", ")}`);
// 7 and 20 have no common factor: the kinds alternate.
const kinds = Object.entries(mix).flatMap(([kind, count]) => Array<Kind>(count).fill(kind as Kind));
const kindOf = (i: number): Kind => kinds[(i * 7) % kinds.length] as Kind;
const seconds = Number(values.seconds);
const halfSeconds = Math.min(24, seconds);
const rounds = Number(values.rounds);
const factor = Number(values.factor);

const seeded = await seed(Number(values.rows));
printConditions({ directory: seeded.directory, rows: seeded.tree.groups, tokens: READERS });
console.log(
  `of ${kinds.length} requests: ${Object.entries(mix).map(([kind, count]) => `${count} ${kind}`)}; ` +
    `answers after ${DEADLINE_MS} ms do not count`,
);
pinSelf();
const stopNeighbour = keepLoadCpuBusy();
let built = values.service;
const runs = [];
for (let i = 1; i <= Number(values.runs); i++) runs.push(await run(`run ${i}`, []));
stopNeighbour();

console.log("");
judge("longest call that was admitted, from its sending, ms, all runs", Math.max(...runs.map((one) => one.longestMs)), {
  atMost: LONGEST_MS,
});
judge(
  "health checks not answered with 200, all runs",
  runs.reduce((sum, one) => sum + one.unhealthy, 0),
  {
    atMost: 0,
  },
);
judge("most memory, MB, all runs", Math.max(...runs.map((one) => one.memory)), { atMost: MEMORY_GOAL_MB });

async function run(name: string, settings: readonly string[]) {
  const scratch = mkdtempSync(join(tmpdir(), "arbor-overload-"));
  try {
    const own: Seeded = { ...seeded, directory: join(scratch, "data") };
    cpSync(seeded.directory, own.directory, { recursive: true });
    await addWriter(own);
    const metrics = `127.0.0.1:${await freePort()}`;
    const service = await startService(own, built, ["--metrics-listen", metrics, ...settings]);
    built = service.main;
    try {
      return await measure(name, service, requestsFor(service), `http://${metrics}`);
    } finally {
      await service.server.stop();
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The goodput a second with each number of connections, in all rounds. */
type Peaks = ReadonlyMap<number, number[]>;

async function measurePeaks(port: number, requests: readonly Buffer[], peaks: Peaks): Promise<void> {
  for (const [connections, rates] of peaks) {
    rates.push(await measureRate(port, requests, connections, PEAK_SECONDS));
  }
}

// Of means: the greatest of single slices would be one in which the machine was fast by chance.
function peakOf(peaks: Peaks): number {
  return Math.max(...[...peaks.values()].map(mean));
}

async function measure(name: string, service: Service, requests: readonly Buffer[], metricsUrl: string) {
  const port = Number(new URL(service.url).port);
  const load = (perSecond: number, forSeconds: number) =>
    runOpenLoad({ port, requests, perSecond, seconds: forSeconds, deadlineMs: DEADLINE_MS });
  console.log(`\n${name}`);
  await measureRate(port, requests, 32, WARM_UP_SECONDS);
  const peaks: Peaks = new Map(CONNECTIONS.map((connections) => [connections, []]));
  const halves: LoadReport[] = [];
  const overloads: LoadReport[] = [];
  const health = watchHealth(service.url);
  const scraping = watchHealth(metricsUrl, ["/metrics"], SCRAPE_MS);
  const memory: number[] = [];
  const sampling = setInterval(() => memory.push(service.server.residentMegabytes()), 1_000);
  // The machine becomes faster and slower meanwhile, so each round compares anew.
  for (let round = 0; round < rounds; round++) {
    await measurePeaks(port, requests, peaks);
    const now = Math.max(...[...peaks.values()].map((rates) => rates[round] ?? 0));
    halves.push(await load(now / 2, halfSeconds / rounds));
    overloads.push(await load(now * factor, seconds / rounds));
  }
  await measurePeaks(port, requests, peaks);
  clearInterval(sampling);
  const checks = health.stop();
  const scrapes = scraping.stop();
  const peak = peakOf(peaks);
  const rates = [...peaks].map(([connections, all]) => `${mean(all).toFixed(0)}/s with ${connections}`).join(", ");
  console.log(`peak goodput ${peak.toFixed(0)}/s (closed loop of connections: ${rates})`);
  const half = mergeReports(halves);
  const over = mergeReports(overloads);
  print("half of it", half);
  print(`${factor} times it`, over);
  const third = memory[Math.floor(memory.length / 3)] ?? Number.NaN;
  const last = memory.at(-1) ?? Number.NaN;
  const result = {
    goodput: over.good / over.seconds / peak,
    latency: percentile(over.goodLatencies, 0.99) / percentile(half.goodLatencies, 0.99),
    longestMs: over.longestMs,
    unhealthy: checks.failed,
    memory: Math.max(...memory),
  };
  const ratios = overloads.map(({ good, seconds: length }) => (good / length / peak).toFixed(2)).join(", ");
  console.log(
    `offered / peak ${(over.sent / over.seconds / peak).toFixed(1)}, goodput / peak ${result.goodput.toFixed(2)} (rounds ${ratios}), ` +
      `p99 / p99 at half ${result.latency.toFixed(1)}, ` +
      `${checks.answered} health checks answered and ${checks.failed} not, the slowest after ${checks.slowestMs.toFixed(0)} ms, ` +
      `${scrapes.answered} scrapes answered and ${scrapes.failed} not, the slowest after ${scrapes.slowestMs.toFixed(0)} ms, ` +
      `memory ${third} MB after a third, ${last} MB at the end`,
  );
  return result;
}

function print(name: string, report: LoadReport): void {
  const ms = (sorted: Float64Array, share: number) => percentile(sorted, share).toFixed(1);
  const { goodLatencies: good, rejectedLatencies: rejected } = report;
  const other = [...report.other].map(([status, count]) => `, ${count} with ${status}`).join("");
  console.log(
    `${name.padEnd(12)} offered ${(report.sent / report.seconds).toFixed(0)}/s, ` +
      `good ${(report.good / report.seconds).toFixed(0)}/s (p50 ${ms(good, 0.5)}, p99 ${ms(good, 0.99)}, p99.9 ${ms(good, 0.999)} ms), ` +
      `rejected ${(report.rejected / report.seconds).toFixed(0)}/s (p50 ${ms(rejected, 0.5)}, p99 ${ms(rejected, 0.99)} ms), ` +
      `late ${report.late}${other}; ${report.connections} connections, ${report.connectionErrors} lost, ` +
      `generator late by ${report.lagMs.toFixed(0)} ms at most`,
  );
}

// The last identity may change groups.
async function addWriter({ directory, tree }: Seeded): Promise<void> {
  const store = openSqlite({ directory });
  const uid = `${tree.root}/c${"0".repeat(15)}`;
  const binding = bindingRow(uid, identityUid(tree, WRITER), builtinRoleUid("owner"), { groupUid: tree.root });
  await store.write((tx) => tx.table(roleBindingKind).insert(binding));
  await store.close();
}

function requestsFor({ url, tokens }: Service): Buffer[] {
  const build = (method: string, path: string, reader: number, body?: string) =>
    buildRequest(url, tokens[reader] ?? "", method, path, body);
  const list = "/iam/v2beta1/groups?order_by=name&page_size=";
  return targetsIn(seeded, READERS, REQUESTS).map(({ uid, reader }, i) => {
    const kind = kindOf(i);
    if (kind === "get") return build("GET", `/iam/v2beta1/groups/${uid}`, reader);
    if (kind === "page") return build("GET", `${list}50`, reader);
    if (kind === "long page") return build("GET", `${list}200`, reader);
    return build("PATCH", `/iam/v2beta1/groups/${uid}`, WRITER, JSON.stringify({ description: `changed ${i}` }));
  });
}
