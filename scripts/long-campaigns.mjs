// The long versions of random tests, which `npm test` runs for seconds: hours on two processors.
// Each prints its seed and its figures. The table at the end says which failed.
//   npm run campaign -- long [NAME...]
import { spawnSync } from "node:child_process";

const node = (script, ...args) => [process.execPath, `scripts/${script}.mjs`, ...args];
const wire = (kind) => [`fuzz-${kind}`, node("fuzz-wire", "--kind", kind, "--inputs", "1000000")];
const campaigns = new Map([
  ["tests", node("test")],
  ["processes", node("test", "--processes")],
  ["nodes", [process.execPath, "--import", "tsx", "scripts/test-nodes.mjs", "--all"]],
  ["hostile", node("hostile", "--campaign")],
  ...["http1", "http2", "envelopes"].map(wire),
  ["fuzz", node("fuzz", "--requests", "1000000")],
  ["tokens", node("mutate-tokens", "--tokens", "1000000")],
  ["decisions", node("decisions", "--decisions", "1000000")],
  ["scim", node("test", "test/scim/protocol/differential.test.ts")],
  ["directory-rights", node("test", "test/iam/directories/rights-campaign.test.ts")],
  ["directory-rights-pg", node("with-pg", process.execPath, "scripts/test.mjs", "test/pg/directory-rights.test.ts")],
  ["access", node("access", "--calls", "100000")],
  ["access-control", node("access", "--calls", "4000", "--control", "all")],
  ["access-pg", node("with-pg", process.execPath, "scripts/access.mjs", "--pg", "--calls", "20000")],
  ["backup", node("backup-drill", "--gigabytes", "0.25", "--restores", "100")],
  ["backup-10-gb", node("backup-drill", "--gigabytes", "10")],
  ["kill9", node("kill9", "--cycles", "1000")],
  ["kill9-control", node("kill9", "--cycles", "100", "--control")],
  ["event-kills", node("event-kills")],
  ["event-kills-control", node("event-kills", "--share", "5", "--control")],
  ["event-kills-pg", node("with-pg", process.execPath, "scripts/event-kills.mjs", "--pg")],
  ["worker-kills", node("worker-kills", "--kills", "100")],
  ["worker-kills-control", node("worker-kills", "--control")],
  ["worker-kills-pg", node("with-pg", process.execPath, "scripts/worker-kills.mjs", "--pg", "--kills", "100")],
  ["node-kills", node("with-pg", process.execPath, "scripts/node-kills.mjs", "--kills", "100")],
  ["node-kills-control", node("with-pg", process.execPath, "scripts/node-kills.mjs", "--control")],
  ["soak", node("soak")],
  ["soak-leak", node("soak", "--minutes", "3", "--control", "leak")],
  ["soak-sweep", node("soak", "--minutes", "3", "--control", "sweep")],
  ["power-cut", node("power-cut", "--cuts", "300")],
  ["power-cut-control", node("power-cut", "--cuts", "10", "--control")],
  ["host-faults", node("host-faults")],
  ["host-faults-control", node("host-faults", "--control")],
  ["failover", node("failover", "--failovers", "50")],
  ["failover-control", node("failover", "--failovers", "4", "--control")],
  ["freshness", node("freshness")],
  ["freshness-control", node("freshness", "--rounds", "300", "--control")],
  ["freshness-pg", node("with-pg", process.execPath, "scripts/freshness.mjs", "--pg")],
  ["jobs", node("with-pg", process.execPath, "scripts/job-takeovers.mjs", "--takeovers", "200")],
  ["pooler", node("with-pg", process.execPath, "scripts/test.mjs", "test/pg/pooler.test.ts")],
  ["copy", node("with-pg", process.execPath, "scripts/copy-kills.mjs", "--kills", "200")],
]);

const names = process.argv.slice(2);
const unknown = names.filter((name) => !campaigns.has(name));
if (unknown.length > 0) {
  console.error(`long-campaigns: ${unknown.join(", ")} is none of ${[...campaigns.keys()].join(", ")}`);
  process.exit(2);
}
const results = [...campaigns]
  .filter(([name]) => names.length === 0 || names.includes(name))
  .map(([name, [program, ...args]]) => {
    console.log(`\n== ${name}: ${args.join(" ")}`);
    const startMs = performance.now();
    const env = { ...process.env, TEST_ARBOR_CAMPAIGN: "1" };
    const { status } = spawnSync(program, args, { stdio: "inherit", env });
    return {
      name,
      seconds: Math.round((performance.now() - startMs) / 1000),
      result: status === 0 ? "held" : "FAILED",
    };
  });
console.table(results);
process.exit(results.every(({ result }) => result === "held") ? 0 : 1);
