// Checks that a call sees what was acknowledged before it arrived: four servers share a database, and what changes through one
// of them, through the store or by a command on the host, is read at another one at once:
//
//   node scripts/freshness.mjs [--rounds N] [--control]
//   node scripts/with-pg.mjs node scripts/freshness.mjs --pg [--rounds N] [--control]
//
// With --control servers keep what they have read for a second. Then something old must be read; otherwise the campaign cannot
// find anything.
import { parseArgs } from "node:util";
import { importCompiled } from "./import-compiled.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "100000" },
    pg: { type: "boolean", default: false },
    control: { type: "boolean", default: false },
  },
});
const rounds = Number(values.rounds);
if (!(Number.isInteger(rounds) && rounds > 0)) {
  console.error("freshness: --rounds must be a whole number above 0");
  process.exit(2);
}
const { control, pg: isPg } = values;
const { runFreshness } = await importCompiled("test/freshness/campaign.ts");
const startMs = performance.now();
const { counts, problems } = await runFreshness({ rounds, isPg, control });
const seconds = (performance.now() - startMs) / 1000;
console.table(counts);
for (const problem of problems.slice(0, 5)) console.error(`freshness: ${problem}`);
const sum = (name) => Object.values(counts).reduce((total, count) => total + count[name], 0);
const [done, stale] = [sum("rounds"), sum("stale")];
const where = isPg ? "PostgreSQL" : "SQLite";
console.log(
  `${where}: ${done} rounds in ${seconds.toFixed(0)} s, ${stale} read something old, ${problems.length} failed`,
);
if (control && stale === 0) console.error("freshness: the control read nothing old, so the campaign proves nothing");
process.exit((control ? stale > 0 : stale === 0 && problems.length === 0) ? 0 : 1);
