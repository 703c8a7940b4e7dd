// Checks that failovers of PostgreSQL lose no acknowledged write and give no wrong response. Needs Debian's packages
// postgresql, patroni, etcd-server and haproxy, and root:
//
//   node scripts/failover.mjs [--failovers N] [--control]
//
// The primary is killed, killed with its Patroni, and stopped and continued; before every third fault the
// standby receives nothing for a second. With --control the standby is asynchronous. Then writes must be lost; otherwise
// the campaign cannot find any.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { importCompiled } from "./import-compiled.mjs";
import { findPgBin } from "./pg-bin.mjs";

const { values } = parseArgs({
  options: { failovers: { type: "string", default: "3" }, control: { type: "boolean", default: false } },
});
const { control } = values;
const failovers = Number(values.failovers);
if (!Number.isInteger(failovers) || failovers < 1) {
  console.error("failover: --failovers must be a whole number above 0");
  process.exit(2);
}
const { runCampaign } = await importCompiled("test/failover/campaign.ts");
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
const directory = mkdtempSync(join(tmpdir(), "arbor-failover-"));
let passed = false;
try {
  const result = await runCampaign({
    directory,
    binaries: findPgBin(),
    failovers,
    control,
    onFailover: ({ fault, writeGapMs, readGapMs, rejoinMs }) =>
      console.log(
        `${fault}: ${seconds(writeGapMs)} without writes, ${seconds(readGapMs)} without reads, standby after ${seconds(rejoinMs)}`,
      ),
  });
  const { acknowledged, unanswered, lost, problems } = result;
  for (const text of [...lost.slice(0, 5), ...new Set(problems)].slice(0, 20)) console.error(`failover: ${text}`);
  const longest = (name) => seconds(Math.max(...result.failovers.map((failover) => failover[name])));
  console.log(`longest: ${longest("writeGapMs")} without writes, ${longest("readGapMs")} without reads`);
  console.log(
    `${result.failovers.length} failovers, ${acknowledged} acknowledged, ${unanswered} without an answer, ${lost.length} lost, ${problems.length} problems`,
  );
  if (control && lost.length === 0) console.error("failover: the control lost nothing, so the campaign proves nothing");
  passed = control ? lost.length > 0 : lost.length === 0 && problems.length === 0;
} catch (error) {
  console.error(`failover: ${error.stack}`);
}
if (passed) rmSync(directory, { recursive: true, force: true });
else console.error(`failover: the logs are in ${directory}`);
process.exit(passed ? 0 : 1);
