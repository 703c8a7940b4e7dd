// The same work with tokens of either algorithm, in short slices of one run that alternate: processor time per call, and
// how much of it is the main thread's, which serves all other calls.
import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import type { TokenAlgorithm } from "../src/kernel/jws.js";
import { median } from "./figures.js";

/** Does some of the work, and returns how many calls it was. */
export type Work = () => Promise<number>;

interface Slice {
  readonly perSecond: number;
  /** Processor time per call of all threads, of the main thread, and how long the event loop was busy, in microseconds. */
  readonly cpuUs: number;
  readonly mainUs: number;
  readonly busyUs: number;
}

/** Runs the work of both, alternating, and prints medians and the quartiles of the slices. */
export async function compareAlgorithms(
  work: Readonly<Record<TokenAlgorithm, Work>>,
  { slices, seconds }: { readonly slices: number; readonly seconds: number },
): Promise<void> {
  const found: Record<TokenAlgorithm, Slice[]> = { RS256: [], ES256: [] };
  for (const each of Object.values(work)) await measure(each, 1);
  for (let i = 0; i < slices; i++) {
    // Either is first in every other pair.
    const order: readonly TokenAlgorithm[] = i % 2 ? ["RS256", "ES256"] : ["ES256", "RS256"];
    for (const algorithm of order) found[algorithm].push(await measure(work[algorithm], seconds));
  }
  console.log(`\n${slices} slices of ${seconds} s each, alternating; median (quartiles)`);
  console.log(`${"".padEnd(34)}${"ES256".padStart(26)}${"RS256".padStart(26)}`);
  const print = (name: string, digits: number, pick: (slice: Slice) => number) => {
    const cells = [found.ES256, found.RS256].map((all) => quartilesOf(all.map(pick), digits).padStart(26));
    console.log(name.padEnd(34) + cells.join(""));
  };
  print("exchanges a second", 0, ({ perSecond }) => perSecond);
  print("us of CPU, all threads", 1, ({ cpuUs }) => cpuUs);
  print("us of CPU, main thread", 1, ({ mainUs }) => mainUs);
  print("us that the event loop is busy", 1, ({ busyUs }) => busyUs);
  print("main thread's share, %", 1, ({ mainUs, cpuUs }) => (100 * mainUs) / cpuUs);
}

async function measure(work: Work, forSeconds: number): Promise<Slice> {
  const [cpuBefore, mainBefore] = [process.cpuUsage(), mainThreadUs()];
  const loopBefore = performance.eventLoopUtilization();
  const startedAt = performance.now();
  let done = 0;
  while (performance.now() - startedAt < forSeconds * 1000) {
    done += await work();
    await new Promise(setImmediate);
  }
  const elapsedMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpuBefore);
  const { active } = performance.eventLoopUtilization(loopBefore);
  return {
    perSecond: (done / elapsedMs) * 1000,
    cpuUs: (user + system) / done,
    mainUs: (mainThreadUs() - mainBefore) / done,
    busyUs: (active * 1000) / done,
  };
}

// The scheduler counts nanoseconds for each thread; the main thread has the id of the process.
function mainThreadUs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1000;
}

function quartilesOf(figures: readonly number[], digits: number): string {
  const sorted = figures.toSorted((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN).toFixed(digits);
  return `${median(figures).toFixed(digits)} (${at(0.25)}-${at(0.75)})`;
}
