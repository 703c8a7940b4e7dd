// Checks that kill -9 of workers of one service fails no call of a client that retries, and loses no acknowledged write:
//
//   node scripts/worker-kills.mjs [--kills N] [--workers N] [--control]
//   node scripts/with-pg.mjs node scripts/worker-kills.mjs --pg [--kills N] [--workers N]
//
// With --control clients do not retry, and the database undoes some updates that it acknowledges. Then calls must fail and
// writes must be lost; otherwise the campaign cannot find any.
import { parseArgs } from "node:util";
import { importCompiled } from "./import-compiled.mjs";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "20" },
    workers: { type: "string", default: "2" },
    pg: { type: "boolean", default: false },
    control: { type: "boolean", default: false },
  },
});
const { control, pg: isPg } = values;
const [kills, workers] = [Number(values.kills), Number(values.workers)];
if (!(Number.isInteger(kills) && kills > 0 && Number.isInteger(workers) && workers > 1) || (control && isPg)) {
  console.error("worker-kills: --kills must be a whole number above 0, --workers one above 1, --control without --pg");
  process.exit(2);
}
/** A worker must be started within this time after one was killed. */
const MAX_START_MS = 1_000;

const { runWorkerKills } = await importCompiled("test/faults/worker-kills.ts");
const result = await runWorkerKills({ kills, workers, isPg, control });
const { acknowledged, failed, lost, problems, retries, found, startedMs, readyMs } = result;
for (const text of [...failed.slice(0, 5), ...lost.slice(0, 5), ...problems.slice(0, 10)]) {
  console.error(`worker-kills: ${text}`);
}
console.log(
  `${kills} kills of ${workers} workers, ${acknowledged} acknowledged, ${lost.length} lost, ${failed.length} calls failed after ${retries} retries, ${found} creates found, ${problems.length} problems`,
);
const middle = kills >> 1;
const [startMs, serveMs] = [startedMs, readyMs].map(
  (times) => `${times[middle].toFixed(0)} ms (median), ${times.at(-1).toFixed(0)} ms (longest)`,
);
console.log(`the next worker is started after ${startMs}, and serves after ${serveMs}`);
const isFound = failed.length > 0 && lost.length > 0;
if (control && !isFound) console.error("worker-kills: the control was not found, so the campaign proves nothing");
const isLate = startedMs.at(-1) > MAX_START_MS;
if (isLate) console.error(`worker-kills: a worker was started later than ${MAX_START_MS} ms after a kill`);
const held = failed.length === 0 && lost.length === 0 && problems.length === 0 && !isLate;
process.exit((control ? isFound : held) ? 0 : 1);
