// Two servers on one processor, loaded alternately: A B A B. Absolute figures of a
// shared machine change by half from one second to the next, so only the median of
// several ratios of neighbouring rounds is meaningful.
import type { Running } from "./processes.js";

/** The result of one run of a load generator. */
export interface LoadResult {
  readonly requests: number;
  readonly requestsPerSecond: number;
}

/** The least number of requests that a server answers before it is measured. */
const WARM_REQUESTS = 20_000;

/** A server and its load. */
export interface Contender {
  readonly name: string;
  readonly server: Running;
  /** Loads the server for some seconds; throws when any response is wrong. */
  load(seconds: number): Promise<LoadResult>;
}

/** Duration and number of rounds. */
export interface RoundOptions {
  readonly rounds: number;
  /** The length of a round, in seconds. */
  readonly seconds: number;
  /** The least length of the load before the first round, in seconds. */
  readonly warmUpSeconds: number;
}

/** The outcome of a comparison. */
export interface Comparison {
  /** The median of the ratios of the first contender's rate to the second's, round by round. */
  readonly ratio: number;
}

interface Cell extends LoadResult {
  readonly cpuUs: number;
}

/** Loads two servers alternately, prints a table and returns the median of the ratios. */
export async function compare(contenders: readonly [Contender, Contender], options: RoundOptions): Promise<Comparison> {
  const [ours, peer] = contenders;
  for (const contender of contenders) await warmUp(contender, options.warmUpSeconds);
  const cells: { ours: Cell; peer: Cell }[] = [];
  for (let round = 0; round < options.rounds; round++) {
    cells.push({ ours: await measure(ours, options.seconds), peer: await measure(peer, options.seconds) });
  }
  console.log(`\n${"".padEnd(34)}${["min", "median", "max"].map((head) => head.padStart(10)).join("")}`);
  row(
    `${ours.name}, requests/s`,
    cells.map((c) => c.ours.requestsPerSecond),
    0,
  );
  row(
    `${peer.name}, requests/s`,
    cells.map((c) => c.peer.requestsPerSecond),
    0,
  );
  row(
    `${ours.name}, us of CPU/request`,
    cells.map((c) => c.ours.cpuUs),
    1,
  );
  row(
    `${peer.name}, us of CPU/request`,
    cells.map((c) => c.peer.cpuUs),
    1,
  );
  const ratios = cells.map((c) => c.ours.requestsPerSecond / c.peer.requestsPerSecond);
  row("ratio of rates", ratios, 3);
  row(
    "ratio by CPU time",
    cells.map((c) => c.peer.cpuUs / c.ours.cpuUs),
    3,
  );
  console.log(`rounds: ${ratios.map((ratio) => ratio.toFixed(3)).join(" ")}`);
  return { ratio: median(ratios) };
}

// On a busy machine a warm-up by time alone leaves code that is not compiled yet.
async function warmUp({ load }: Contender, seconds: number): Promise<void> {
  let requests = 0;
  while (requests < WARM_REQUESTS) requests += (await load(seconds)).requests;
}

async function measure({ server, load }: Contender, seconds: number): Promise<Cell> {
  const before = server.cpuUs();
  const result = await load(seconds);
  return { ...result, cpuUs: (server.cpuUs() - before) / result.requests };
}

function row(name: string, values: readonly number[], digits: number): void {
  const columns = [Math.min(...values), median(values), Math.max(...values)];
  console.log(name.padEnd(34) + columns.map((value) => value.toFixed(digits).padStart(10)).join(""));
}

/** The arithmetic mean. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The middle of some values; of an even number of them the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return ((sorted[Math.ceil(half) - 1] ?? Number.NaN) + (sorted[Math.floor(half)] ?? Number.NaN)) / 2;
}

/** Prints whether a goal was met; if not, the exit code is 1. */
export function judge(
  what: string,
  value: number,
  goal: { readonly atLeast: number } | { readonly atMost: number },
): void {
  const met = "atLeast" in goal ? value >= goal.atLeast : value <= goal.atMost;
  const bound = "atLeast" in goal ? `>= ${goal.atLeast}` : `<= ${goal.atMost}`;
  console.log(`${met ? "met" : "MISSED"}: ${what} ${value.toFixed(3)} (goal ${bound})`);
  if (!met) process.exitCode = 1;
}
