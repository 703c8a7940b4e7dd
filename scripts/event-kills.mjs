// Checks that kill -9 loses no event of a committed change, while the sink refuses 30 % of them:
//
//   node scripts/event-kills.mjs [--kills N] [--changes N] [--share PERCENT] [--control]
//   node scripts/with-pg.mjs node scripts/event-kills.mjs --pg [--kills N] [--control]
//
// With --pg two nodes share a database in which some rows are committed late, and the one that delivers is killed. With
// --control nodes note that an event was accepted before they send it. Then events must be lost; otherwise the campaign
// cannot find any loss. --share makes less of both: 5 is ten kills of the usual two hundred.
import { parseArgs } from "node:util";
import { importCompiled } from "./import-compiled.mjs";

const { values } = parseArgs({
  options: {
    kills: { type: "string" },
    changes: { type: "string" },
    share: { type: "string", default: "100" },
    pg: { type: "boolean", default: false },
    control: { type: "boolean", default: false },
  },
});
const share = Number(values.share) / 100;
const usual = values.pg ? { kills: 20, changes: 2_000 } : { kills: 200, changes: 20_000 };
const kills = Number(values.kills ?? Math.ceil(usual.kills * share));
const changes = Number(values.changes ?? Math.ceil(usual.changes * share));
if (![kills, changes].every((count) => Number.isInteger(count) && count > 0)) {
  console.error("event-kills: --kills and --changes must be whole numbers above 0, and --share a percentage");
  process.exit(2);
}
const { runEventCampaign } = await importCompiled("test/events/kill-campaign.ts");
const { control, pg: isPg } = values;
const result = await runEventCampaign({ kills, changes, failing: 0.3, isPg, control });
for (const problem of result.problems.slice(0, 5)) console.error(`event-kills: ${problem}`);
const { answered, committed, delivered, duplicates, lost, takeoverMs } = result;
console.log(
  `${kills} kills, ${answered} changes answered, ${committed} committed, ${delivered} delivered, ${duplicates} more than once, ${lost} lost`,
);
if (takeoverMs.length > 0) {
  console.log(
    `time to the next event: ${takeoverMs[takeoverMs.length >> 1]} ms (median), ${takeoverMs.at(-1)} ms (longest)`,
  );
}
if (control && lost === 0) console.error("event-kills: the control lost nothing, so the campaign proves nothing");
const asExpected = control ? lost > 0 : lost === 0 && result.problems.length === 0;
process.exit(asExpected ? 0 : 1);
