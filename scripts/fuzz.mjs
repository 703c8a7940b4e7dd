// Sends random requests to a service on an empty data directory and checks every
// response; see test/contract/fuzz.ts.
//   node scripts/fuzz.mjs [--requests 100000] [--seed N] [--concurrency 16]
import { parseArgs } from "node:util";
import { tsImport } from "tsx/esm/api";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "100000" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
    concurrency: { type: "string", default: "16" },
  },
});
const { fuzz } = await tsImport("../test/contract/fuzz.ts", import.meta.url);
const seed = Number(values.seed);
console.log(`seed ${seed}`);
const report = await fuzz({
  requests: Number(values.requests),
  seed,
  concurrency: Number(values.concurrency),
  onProgress: (done) => done % 10_000 === 0 && console.log(`${done} requests`),
});
for (const fault of report.faults) console.log(fault);
console.log(`${report.requests} requests in ${report.seconds.toFixed(1)} s, ${report.slow} late`);
console.log(`by status: ${JSON.stringify(report.statuses)}`);
console.log(`answered by handlers: ${(report.share * 100).toFixed(1)} %`);
console.log(`by operation: ${JSON.stringify(report.operations)}`);
console.log(`faults: ${report.faults.length}`);
process.exit(report.faults.length === 0 ? 0 : 1);
