// Sends the same requests over every protocol to the service of this checkout and to that of another one, and prints how
// their responses differ; see test/hostile/compare. Both must be built.
//   node scripts/compare-answers.mjs --against DIRECTORY [--requests 20000] [--seed N] [--expect FILE] [--this DIRECTORY]
// FILE lists differences that are intended: [{"label": "^Connect", "path": "retry-after", "a": "absent", "reason": "…"}],
// where label, path, a and b are regular expressions, each of which may be missing. The exit code is 0 if there are no
// other differences.
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { tsImport } from "tsx/esm/api";

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    this: { type: "string", default: dirname(dirname(fileURLToPath(import.meta.url))) },
    requests: { type: "string", default: "20000" },
    seed: { type: "string", default: "1" },
    expect: { type: "string" },
  },
});
const requests = Number(values.requests);
if (values.against === undefined || !Number.isInteger(requests) || requests < 1) {
  console.error("compare-answers: --against names a checkout, and --requests a whole number above 0");
  process.exit(2);
}
const { compareCheckouts } = await tsImport("../test/hostile/compare/run.ts", import.meta.url);
const { formatReport, readExpectations } = await tsImport("../test/hostile/compare/report.ts", import.meta.url);
const expectations = readExpectations(values.expect === undefined ? "[]" : readFileSync(values.expect, "utf8"));
const seed = Number(values.seed);
console.log(`seed ${seed}`);
const report = await compareCheckouts({
  checkouts: [resolve(values.this), resolve(values.against)],
  requests,
  seed,
  onProgress: (text) => console.log(`${(performance.now() / 1000).toFixed(0)} s: ${text}`),
});
const { text, differences } = formatReport(report, expectations);
console.log(text);
process.exit(differences === 0 ? 0 : 1);
