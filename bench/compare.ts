// Processor time per call of this checkout against another one, in many short alternating slices:
// whether a change made calls more expensive.
//
//   node --import tsx bench/compare.ts --against DIRECTORY [--slices 40] [--seconds 0.5] [--starts 4]
//     [--only rest|grpc|connect|web|list] [--max 1.05] [--nice=-15] [--no-build] [--access-log all] [--traces RATIO]
//
// With --postgres both use databases on one PostgreSQL server, which belongs on the processor of the generators:
//   taskset -c 1 node scripts/with-pg.mjs node --import tsx bench/compare.ts --postgres --against DIRECTORY --only rest
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, cpus, setPriority, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { median } from "./figures.js";
import { type LoadResult, loadGrpc, loadHttp1, loadRpc, NoResponses } from "./h2load.js";
import { bootstrap, type Estimate, geometricMean } from "./intervals.js";
import { createDatabase } from "./pg-database.js";
import { requireTools, serverCpuUs, startTraceSink } from "./processes.js";
import { build, type Side, startSide } from "./side.js";

/** The share of the servers' processor that other programs may use in a slice, and how many pairs are tried. */
const MAX_FOREIGN_SHARE = 0.05;
const TRIES_PER_PAIR = 3;

/** A kind of call. */
interface Workload {
  readonly name: string;
  /** The least number of calls that a server answers before it is measured. */
  readonly warmCalls: number;
  load(side: Side, seconds: number): Promise<LoadResult>;
}

const EIGHT_BY_EIGHT = { connections: 8, streams: 8 };

const workloads: readonly Workload[] = [
  {
    name: "rest, 32 connections",
    warmCalls: 40_000,
    load: (side, s) => loadHttp1(side.addresses, side.token, 32, s),
  },
  ...[EIGHT_BY_EIGHT, { connections: 32, streams: 1 }].map((shape) => ({
    name: `grpc, ${shape.connections} connections x ${shape.streams} streams`,
    warmCalls: 40_000,
    load: (side: Side, s: number) => loadGrpc(side.url, side.token, side.frame, shape, s),
  })),
  {
    name: "connect in JSON, 8 connections x 8 streams",
    warmCalls: 40_000,
    load: (side, s) => loadRpc(side.url, side.token, "application/json", side.json, EIGHT_BY_EIGHT, s),
  },
  {
    name: "web: gRPC-Web, 8 connections x 8 streams",
    warmCalls: 40_000,
    load: (side, s) => loadRpc(side.url, side.token, "application/grpc-web+proto", side.frame, EIGHT_BY_EIGHT, s),
  },
  {
    name: "list, 8 connections",
    // V8 optimizes code of lists for 10 to 15 s, and its compiler's time counts.
    warmCalls: 20_000,
    load: (side, s) => loadHttp1(side.list, side.token, 8, s),
  },
];

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    slices: { type: "string", default: "40" },
    seconds: { type: "string", default: "0.5" },
    starts: { type: "string", default: "4" },
    only: { type: "string", default: "" },
    max: { type: "string" },
    nice: { type: "string" },
    "no-build": { type: "boolean", default: false },
    "access-log": { type: "string" },
    traces: { type: "string" },
    postgres: { type: "boolean", default: false },
  },
});
const [slices, seconds, starts] = [Number(values.slices), Number(values.seconds), Number(values.starts)];
const max = values.max === undefined ? undefined : Number(values.max);
if (values.against === undefined || !(slices >= starts && starts >= 1 && seconds > 0) || Number.isNaN(max)) {
  console.error(
    "usage: compare.ts --against DIRECTORY [--slices N] [--seconds N] [--starts N] [--only NAME] [--max N]",
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
console.log(`${slices} slices of ${seconds} s a side, in ${starts} starts of both servers`);
const scratch = mkdtempSync(join(tmpdir(), "arbor-compare-"));
// Side a alone records this share of its traces.
const sink = values.traces === undefined ? undefined : await startTraceSink();
const tracesEnv: Record<string, string> = sink
  ? {
      OTEL_EXPORTER_OTLP_ENDPOINT: sink.endpoint,
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: values.traces ?? "",
    }
  : {};
try {
  for (const workload of workloads) if (workload.name.startsWith(values.only)) await compareBy(workload);
} finally {
  rmSync(scratch, { recursive: true, force: true });
  if (sink) console.log(`\n${await sink.stop()} spans of a arrived at the collector`);
}

/** Microseconds of processor time per call on both sides, measured one right after the other. */
interface Pair {
  readonly a: number;
  readonly b: number;
  /** The share of the servers' processor that other programs used meanwhile. */
  readonly foreign: number;
}

// Two processes of the same program differ by some percent as long as they live, because of the order of
// compilation and the layout of memory. Several starts of both separate that from a difference of the programs.
async function compareBy(workload: Workload): Promise<void> {
  const perStart: Pair[][] = [];
  for (let start = 0; start < starts; start++) {
    const count = Math.floor((slices * (start + 1)) / starts) - Math.floor((slices * start) / starts);
    perStart.push(await measureOnce(workload, count));
  }
  const ratios = perStart.map((pairs) => pairs.map(({ a, b }) => a / b));
  const pairs = perStart.flat();
  console.log(`\n${workload.name}`);
  console.log(
    `  us of CPU per call, medians: a ${median(pairs.map(({ a }) => a)).toFixed(2)}, ` +
      `b ${median(pairs.map(({ b }) => b)).toFixed(2)}`,
  );
  const calm = pairs.filter(({ foreign }) => foreign <= MAX_FOREIGN_SHARE).length;
  console.log(`  ${calm} of ${pairs.length} pairs undisturbed by other programs`);
  console.log(`  a / b by start: ${ratios.map((each) => median(each).toFixed(3)).join(" ")}`);
  const middle = bootstrap(ratios, median);
  print("median of a / b", middle);
  print("mean of a / b", bootstrap(ratios, geometricMean));
  if (max === undefined) return;
  const met = middle.high <= max;
  console.log(`  ${met ? "met" : "MISSED"}: upper end ${middle.high.toFixed(3)} of the median (goal <= ${max})`);
  if (!met) process.exitCode = 1;
}

function print(what: string, { value, low, high }: Estimate): void {
  console.log(`  ${what} ${value.toFixed(3)}, 95 % interval ${low.toFixed(3)} to ${high.toFixed(3)}`);
}

async function measureOnce(workload: Workload, count: number): Promise<Pair[]> {
  const databases = values.postgres ? [await createDatabase(), await createDatabase()] : [];
  const onA = { accessLog: values["access-log"], env: tracesEnv, databaseUrl: databases[0] };
  const a = await startSide("a", checkouts.a, scratch, onA);
  try {
    const b = await startSide("b", checkouts.b, scratch, { databaseUrl: databases[1] });
    try {
      await warmUp(workload, [a, b]);
      return await measurePairs(workload, a, b, count);
    } finally {
      await b.stop();
    }
  } finally {
    await a.stop();
  }
}

// When other programs use the processor, every switch evicts caches and calls cost half as much again. Disturbed
// pairs are measured again, a bounded number of times, and the least disturbed ones count. The selection uses the
// disturbance only, never the measured ratio.
async function measurePairs(workload: Workload, a: Side, b: Side, count: number): Promise<Pair[]> {
  const pairs: Pair[] = [];
  const isCalm = ({ foreign }: Pair) => foreign <= MAX_FOREIGN_SHARE;
  for (let i = 0; i < count * TRIES_PER_PAIR && pairs.filter(isCalm).length < count; i++) {
    // The two take turns in being first: what drifts within a pair would count against one of them.
    const [first, second] = i % 2 === 0 ? [a, b] : [b, a];
    const [one, other] = [await measure(workload, first), await measure(workload, second)];
    const foreign = Math.max(one.foreign, other.foreign);
    pairs.push(first === a ? { a: one.us, b: other.us, foreign } : { a: other.us, b: one.us, foreign });
  }
  const measured = pairs.filter(({ foreign }) => Number.isFinite(foreign));
  return measured.sort((one, other) => one.foreign - other.foreign).slice(0, count);
}

// Alternating, since both become slower while other programs run on the machine.
async function warmUp(workload: Workload, sides: readonly Side[]): Promise<void> {
  const calls = new Map(sides.map((side) => [side, 0]));
  while ([...calls.values()].some((count) => count < workload.warmCalls)) {
    for (const side of sides) {
      calls.set(side, (calls.get(side) ?? 0) + (await countResponses(workload.load(side, Math.max(seconds, 1)))));
    }
  }
}

/** A slice of one side. */
interface Slice {
  /** Microseconds of processor time per call. */
  readonly us: number;
  /** See {@link Pair}. */
  readonly foreign: number;
}

async function measure(workload: Workload, side: Side): Promise<Slice> {
  const [startMs, ownBefore, allBefore] = [performance.now(), side.server.cpuUs(), serverCpuUs()];
  const requests = await countResponses(workload.load(side, seconds));
  if (requests === 0) return { us: Number.NaN, foreign: Number.POSITIVE_INFINITY };
  const own = side.server.cpuUs() - ownBefore;
  const others = serverCpuUs() - allBefore - own;
  return { us: own / requests, foreign: others / ((performance.now() - startMs) * 1000) };
}

async function countResponses(load: Promise<LoadResult>): Promise<number> {
  try {
    return (await load).requests;
  } catch (error) {
    if (error instanceof NoResponses) return 0;
    throw error;
  }
}
