// Checks that a background job whose node is killed or paused again and again never has results of two nodes mixed. Needs
// PostgreSQL:
//
//   node scripts/with-pg.mjs node scripts/job-takeovers.mjs [--takeovers N] [--control]
//
// With --control results are written without the check of the fencing number. Then some must mix; otherwise the campaign
// cannot find any.
import { parseArgs } from "node:util";
import { register } from "tsx/esm/api";

const { values } = parseArgs({
  options: { takeovers: { type: "string", default: "20" }, control: { type: "boolean", default: false } },
});
const takeovers = Number(values.takeovers);
if (!Number.isInteger(takeovers) || takeovers < 1) {
  console.error("job-takeovers: --takeovers must be a whole number above 0");
  process.exit(2);
}
register();
const { newDatabase } = await import("../test/pg/databases.ts");
const { runTakeovers } = await import("../test/jobs/takeover-campaign.ts");
const { control } = values;
const result = await runTakeovers({ url: await newDatabase(), takeovers, control });
const { results, numbers, rejected, violations, takeoverMs } = result;
for (const violation of violations.slice(0, 5)) console.error(`job-takeovers: ${violation}`);
console.log(
  `${takeoverMs.length} take-overs, ${results} results under ${numbers} numbers, ${rejected} late writes rejected`,
);
console.log(
  `time to the next leader: ${takeoverMs[takeoverMs.length >> 1]} ms (median), ${takeoverMs.at(-1)} ms (longest)`,
);
console.log(`${violations.length} violations`);
if (control && violations.length === 0)
  console.error("job-takeovers: the control mixed no results, so the campaign proves nothing");
const asExpected = control ? violations.length > 0 : violations.length === 0 && rejected === Math.ceil(takeovers / 2);
process.exit(asExpected ? 0 : 1);
