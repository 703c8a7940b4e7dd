// Checks that neither memory nor tables grow, while a service works and its clock leaps through most of a year:
//
//   node scripts/soak.mjs [--minutes N] [--workers N] [--control leak|sweep]
//
// After each round of calls every process collects garbage and tells its `heapUsed + external`. A line fitted to the second
// half of these may not grow by more than 2 MiB, and no table may have more rows in the last quarter than in the second.
// With `--control leak` the service keeps some memory of each request, with `--control sweep` rows that have expired stay.
// Then the soak must find it; otherwise it cannot find any.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { importCompiled } from "./import-compiled.mjs";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    workers: { type: "string", default: "2" },
    control: { type: "string" },
  },
});
const { control } = values;
const [minutes, workers] = [Number(values.minutes), Number(values.workers)];
if (!(minutes > 0 && Number.isInteger(workers) && workers > 0 && [undefined, "leak", "sweep"].includes(control))) {
  console.error("soak: --minutes and --workers must be numbers above 0, and --control leak or sweep");
  process.exit(2);
}
const directory = mkdtempSync(join(tmpdir(), "arbor-soak-"));
const leapsFile = join(directory, "leaps");
writeFileSync(leapsFile, JSON.stringify({ leaptMs: 0, leaps: 0 }));
// The providers and the sink of the campaign follow the clock of the service.
process.env.LEAPS_FILE = leapsFile;
await import("../test/soak/leaping-clock.mjs");
let code = 1;
try {
  const { runSoak, toMiB } = await importCompiled("test/soak/campaign.ts");
  const onRound = (round, rounds, memory) => {
    if ((round + 1) % Math.ceil(rounds / 10) !== 0) return;
    const used = memory.map((one) => `${toMiB(one.used.at(-1) ?? 0)} MiB`).join(", ");
    console.log(`round ${round + 1} of ${rounds}: ${used}`);
  };
  const result = await runSoak({ minutes, workers, leapsFile, control, onRound });
  console.table(
    result.memory.map(({ pid, used, rss, growth }) => ({
      process: pid,
      "first MiB": toMiB(used[0]),
      "half MiB": toMiB(used[used.length >> 1]),
      "last MiB": toMiB(used.at(-1)),
      "growth of the second half": toMiB(growth),
      "rss MiB": toMiB(rss.at(-1)),
    })),
  );
  console.table(result.tables.filter(({ most }) => most > 0));
  for (const problem of result.problems.slice(0, 20)) console.error(`soak: ${problem}`);
  const { calls, leaptDays, problems } = result;
  console.log(`${minutes} minutes, ${workers} workers, ${calls} calls, ${leaptDays} days, ${problems.length} problems`);
  const isFound = problems.some((text) => (control === "leak" ? /^the memory of/ : /grew from/).test(text));
  if (control !== undefined && !isFound) console.error("soak: the control was not found, so the soak proves nothing");
  code = (control === undefined ? problems.length === 0 : isFound) ? 0 : 1;
} catch (error) {
  console.error(`soak: ${error.stack}`);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
process.exit(code);
