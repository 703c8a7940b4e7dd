// Checks that kill -9 loses no acknowledged write:
//
//   node scripts/kill9.mjs [--cycles N] [--control]
//
// One cycle in ten writes to a server over REST and gRPC, the others write through the store. After ten cycles of a server
// `arbor check` and `arbor audit verify` check its database.
// With --control the writers acknowledge before they commit. Then the campaign must
// find lost writes; otherwise it cannot find any.
import { parseArgs } from "node:util";
import { importCompiled } from "./import-compiled.mjs";

const { values } = parseArgs({
  options: { cycles: { type: "string", default: "100" }, control: { type: "boolean", default: false } },
});
const cycles = Number(values.cycles);
if (!Number.isInteger(cycles) || cycles < 1) {
  console.error("kill9: --cycles must be a whole number above 0");
  process.exit(2);
}
const { runCampaign } = await importCompiled("test/e2e/kill9-campaign.ts");
const serverCycles = values.control ? 0 : Math.ceil(cycles / 10);
const result = await runCampaign({ writerCycles: cycles - serverCycles, serverCycles, control: values.control });
for (const problem of result.problems) console.error(`kill9: ${problem}`);
console.log(`${result.cycles} cycles, ${result.acknowledged} acknowledged, ${result.lost} lost`);
const { startMs } = result;
if (startMs.length > 0) {
  const quantile = (share) => startMs[Math.min(startMs.length - 1, Math.floor(startMs.length * share))].toFixed(0);
  console.log(`from the start of a process until it listens: ${quantile(0.5)} ms (median), ${quantile(0.99)} ms (p99)`);
}
if (values.control && result.lost === 0)
  console.error("kill9: the control lost nothing, so the campaign proves nothing");
const asExpected = values.control ? result.lost > 0 : result.lost === 0;
process.exit(asExpected && result.problems.length === 0 ? 0 : 1);
