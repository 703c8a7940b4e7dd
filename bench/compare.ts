// Processor time per call of this checkout against another one, in many short alternating slices:
// whether a change made calls more expensive.
//
//   node --import tsx bench/compare.ts --against DIRECTORY [--slices 40] [--seconds 0.5] [--starts 4] [--control]
//     [--only rest,grpc,connect,web,list,update,create,delete,exchange] [--max 1.05] [--nice=-15] [--no-build]
//     [--access-log all] [--traces RATIO] [--limit SECONDS]
//
// With --control a second server of the other checkout takes part. Its ratio to the first one is what two equal programs differ by.
// With --limit no further kind of call begins after so many seconds.
//
// With --postgres all use databases on one PostgreSQL server, which belongs on the processor of the generators:
//   taskset -c 1 node scripts/with-pg.mjs node --import tsx bench/compare.ts --postgres --against DIRECTORY --only rest
import { mkdtempSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { availableParallelism, cpus, setPriority, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startLocalIssuer } from "../test/support/local-issuer.js";
import { median } from "./figures.js";
import { bootstrap, type Estimate, geometricMean } from "./intervals.js";
import { createDatabase } from "./pg-database.js";
import { pinSelf, requireTools, serverCpuUs, startTraceSink } from "./processes.js";
import { build, type Side, startSide } from "./side.js";
import { listWorkloads, type Workload } from "./workloads.js";

/** The share of the servers' processor that other programs may use in a slice, and how many rounds are tried. */
const MAX_FOREIGN_SHARE = 0.05;
const TRIES_PER_ROUND = 3;
/** How many slices may fail before the servers are warm: some versions refuse calls while their code is compiled. */
const MAX_COLD_FAILURES = 10;

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    slices: { type: "string", default: "40" },
    seconds: { type: "string", default: "0.5" },
    starts: { type: "string", default: "4" },
    control: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    max: { type: "string" },
    nice: { type: "string" },
    "no-build": { type: "boolean", default: false },
    "access-log": { type: "string" },
    traces: { type: "string" },
    limit: { type: "string", default: "Infinity" },
    postgres: { type: "boolean", default: false },
  },
});
const [slices, seconds, starts] = [Number(values.slices), Number(values.seconds), Number(values.starts)];
const limit = Number(values.limit);
const max = values.max === undefined ? undefined : Number(values.max);
if (
  values.against === undefined ||
  !(slices >= starts && starts >= 1 && seconds > 0 && limit > 0) ||
  Number.isNaN(max)
) {
  console.error(
    "usage: compare.ts --against DIRECTORY [--slices N] [--seconds N] [--starts N] [--control] [--only NAMES] [--max N]",
  );
  process.exit(2);
}
requireTools("h2load", "taskset");
// Servers and generators inherit it.
if (values.nice !== undefined) setPriority(Number(values.nice));

const checkouts = { a: fileURLToPath(new URL("..", import.meta.url)), b: resolve(values.against) };
if (!values["no-build"]) for (const checkout of Object.values(checkouts)) await build(checkout);
console.log(`node ${process.version}, ${availableParallelism()} x ${cpus()[0]?.model.trim()}`);
console.log(`a: ${checkouts.a}\nb: ${checkouts.b}`);
console.log(
  `${slices} slices of ${seconds} s a side, in ${starts} starts of ${values.control ? "three" : "both"} servers`,
);
// The generator of writes and the issuer of tokens run in this process.
pinSelf();
const scratch = mkdtempSync(join(tmpdir(), "arbor-compare-"));
const issuer = await startLocalIssuer();
// Side a alone records this share of its traces.
const sink = values.traces === undefined ? undefined : await startTraceSink();
const tracesEnv: Record<string, string> = sink
  ? {
      OTEL_EXPORTER_OTLP_ENDPOINT: sink.endpoint,
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: values.traces ?? "",
    }
  : {};
/** The servers of a round: a, b and, with --control, b again. */
const servers = [
  { name: "a", checkout: checkouts.a, accessLog: values["access-log"], env: tracesEnv },
  { name: "b", checkout: checkouts.b },
  ...(values.control ? [{ name: "control", checkout: checkouts.b }] : []),
];
/** Which of them are compared with b. */
const compared = values.control ? [0, 2] : [0];
const results: Result[] = [];
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    printTable(results);
    // The servers get the signal too, and may need a moment to end.
    await rm(scratch, { recursive: true, force: true, maxRetries: 10 });
    process.exit(1);
  });
}
try {
  const isWanted = (kind: string) => values.only.split(",").some((name) => kind.startsWith(name));
  for (const workload of listWorkloads(issuer).filter(({ kinds }) => kinds.some(isWanted))) {
    const kinds = workload.kinds.join("; ");
    if (performance.now() > limit * 1000) {
      console.log(`\nleft out after ${limit} s: ${kinds}`);
      continue;
    }
    try {
      results.push(...(await compareBy(workload)));
    } catch (error) {
      console.log(`\n${kinds}\n  FAILED: ${describe(error)}`);
      process.exitCode = 1;
    }
  }
} finally {
  await issuer.stop();
  rmSync(scratch, { recursive: true, force: true });
  if (sink) console.log(`\n${await sink.stop()} spans of a arrived at the collector`);
}
printTable(results);

/** A slice of each server, one right after the other. */
interface Round {
  /** Microseconds of processor time per call, of each server by kind of call. */
  readonly us: readonly (readonly number[])[];
  /** The largest share of the servers' processor that other programs used meanwhile. */
  readonly foreign: number;
}

/** What was measured of a kind of call. */
interface Result {
  readonly kind: string;
  /** The median of each server. */
  readonly us: readonly number[];
  /** The medians of the ratios: a / b and, with --control, of b to itself. */
  readonly ratios: readonly Estimate[];
}

// Two processes of the same program differ by some percent as long as they live, because of the order of
// compilation and the layout of memory. Several starts of all servers separate that from a difference of the programs.
async function compareBy(workload: Workload): Promise<Result[]> {
  const perStart: Round[][] = [];
  for (let start = 0; start < starts; start++) {
    const count = Math.floor((slices * (start + 1)) / starts) - Math.floor((slices * start) / starts);
    perStart.push(await measureStart(workload, start, count));
  }
  const rounds = perStart.flat();
  const calm = rounds.filter(({ foreign }) => foreign <= MAX_FOREIGN_SHARE).length;
  return workload.kinds.map((kind, k) => {
    console.log(`\n${kind}`);
    const us = servers.map((_, n) => median(rounds.map((round) => round.us[n]?.[k] as number)));
    const medians = servers.map(({ name }, n) => `${name} ${us[n]?.toFixed(2)}`);
    console.log(`  us of CPU per call, medians: ${medians.join(", ")}`);
    console.log(`  ${calm} of ${rounds.length} rounds undisturbed by other programs`);
    const ratios = compared.map((n) => {
      const byStart = perStart.map((some) => some.map(({ us }) => (us[n]?.[k] as number) / (us[1]?.[k] as number)));
      return printRatios(`${servers[n]?.name} / b`, byStart);
    });
    judgeBy(ratios[0]?.high ?? Number.NaN);
    return { kind, us, ratios };
  });
}

function judgeBy(high: number): void {
  if (max === undefined) return;
  const met = high <= max;
  console.log(`  ${met ? "met" : "MISSED"}: upper end ${high.toFixed(3)} of the median (goal <= ${max})`);
  if (!met) process.exitCode = 1;
}

// Returns the median.
function printRatios(what: string, ratios: readonly (readonly number[])[]): Estimate {
  console.log(`  ${what} by start: ${ratios.map((each) => median(each).toFixed(3)).join(" ")}`);
  const middle = bootstrap(ratios, median);
  print(`median of ${what}`, middle);
  print(`mean of ${what}`, bootstrap(ratios, geometricMean));
  return middle;
}

function print(what: string, { value, low, high }: Estimate): void {
  console.log(`  ${what} ${value.toFixed(3)}, 95 % interval ${low.toFixed(3)} to ${high.toFixed(3)}`);
}

function printTable(all: readonly Result[]): void {
  const interval = ({ value, low, high }: Estimate) => [value.toFixed(3), `${low.toFixed(3)} to ${high.toFixed(3)}`];
  const rows = [
    ["", "a, us", "b, us", "a / b", "95 % interval", ...(values.control ? ["control / b", "95 % interval"] : [])],
    ...all.map(({ kind, us: [a = 0, b = 0], ratios }) => [
      kind,
      a.toFixed(2),
      b.toFixed(2),
      ...ratios.flatMap(interval),
    ]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  console.log("");
  for (const [name = "", ...cells] of rows) {
    const padded = cells.map((cell, n) => cell.padStart(widths[n + 1] ?? 0));
    console.log([name.padEnd(widths[0] ?? 0), ...padded].join("  "));
  }
}

// What starts first is some percent faster or slower than an equal program that starts second, so they take turns.
async function measureStart(workload: Workload, start: number, count: number): Promise<Round[]> {
  const started = new Map<string, Side>();
  try {
    for (const { name, checkout, ...options } of start % 2 === 0 ? servers : servers.toReversed()) {
      const databaseUrl = values.postgres ? await createDatabase() : undefined;
      // Lines of the access log have a lower level.
      const level = values["access-log"] === undefined ? ["--log-level", "warn"] : [];
      const settings = [...level, ...workload.settings];
      started.set(name, await startSide(name, checkout, scratch, { ...options, settings, databaseUrl }));
    }
    await warmUp(workload, [...started.values()]);
    const sides = servers.map(({ name }) => started.get(name) as Side);
    return await measureRounds(workload, sides, count);
  } finally {
    for (const side of started.values()) await side.stop();
  }
}

// When other programs use the processor, every switch evicts caches and calls cost half as much again, or are refused for
// overload. Disturbed rounds are measured again, a bounded number of times, and the least disturbed ones count. The selection
// uses the disturbance only, never the measured ratio.
async function measureRounds(workload: Workload, sides: readonly Side[], count: number): Promise<Round[]> {
  const rounds: Round[] = [];
  const failures: unknown[] = [];
  const isCalm = ({ foreign }: Round) => foreign <= MAX_FOREIGN_SHARE;
  for (let i = 0; i < count * TRIES_PER_ROUND && rounds.filter(isCalm).length < count; i++) {
    try {
      rounds.push(await measureRound(workload, sides, i));
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) console.log(`\n${failures.length} rounds failed, such as by ${describe(failures[0])}`);
  if (rounds.length === 0) throw failures[0];
  return rounds.sort((one, other) => one.foreign - other.foreign).slice(0, count);
}

async function measureRound(workload: Workload, sides: readonly Side[], i: number): Promise<Round> {
  const slices = new Map<Side, Slice>();
  for (const side of orderOf(sides, i)) slices.set(side, await measure(workload, side));
  const inOrder = sides.map((side) => slices.get(side) as Slice);
  return { us: inOrder.map(({ us }) => us), foreign: Math.max(...inOrder.map(({ foreign }) => foreign)) };
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

// Of any two, either one is before the other in every other round: what drifts within a round would count against one of them.
function orderOf(sides: readonly Side[], round: number): readonly Side[] {
  const first = (round >> 1) % sides.length;
  const rotated = [...sides.slice(first), ...sides.slice(0, first)];
  return round % 2 === 0 ? rotated : rotated.reverse();
}

// Alternating, since all become slower while other programs run on the machine.
async function warmUp(workload: Workload, sides: readonly Side[]): Promise<void> {
  const calls = new Map(sides.map((side) => [side, 0]));
  let failures = 0;
  while ([...calls.values()].some((count) => count < workload.warmCalls)) {
    for (const side of sides) {
      try {
        let made = 0;
        for (const makeCalls of await workload.prepare(side, Math.max(seconds, 1))) made = await makeCalls();
        calls.set(side, (calls.get(side) ?? 0) + made);
      } catch (error) {
        if (++failures > MAX_COLD_FAILURES) throw error;
      }
    }
  }
}

/** A slice of one server. */
interface Slice {
  /** Microseconds of processor time per call, by kind. */
  readonly us: readonly number[];
  /** See {@link Round}. */
  readonly foreign: number;
}

async function measure({ prepare, settleMs }: Workload, side: Side): Promise<Slice> {
  const us: number[] = [];
  const foreign: number[] = [];
  for (const makeCalls of await prepare(side, seconds)) {
    const [startMs, ownBefore, allBefore] = [performance.now(), side.server.cpuUs(), serverCpuUs()];
    const calls = await makeCalls();
    const others = serverCpuUs() - allBefore - (side.server.cpuUs() - ownBefore);
    foreign.push(others / ((performance.now() - startMs) * 1000));
    await sleep(settleMs);
    us.push((side.server.cpuUs() - ownBefore) / calls);
  }
  return { us, foreign: Math.max(...foreign) };
}
