// Sends hostile input to a process of `arbor serve` and checks it; see test/hostile/wire/.
//   node scripts/fuzz-wire.mjs --kind http1|http2|envelopes [--inputs 1000000] [--seed N]
//        [--from BATCH] [--lanes 24] [--memory-mib 512]
// HOSTILE_ROOT names another checkout whose service to fuzz. A fault names its batch. To send
// that batch again, use the same seed, `--from` with its number, `--inputs 1` and `--lanes 1`.
import { parseArgs } from "node:util";
import { register } from "tsx/esm/api";

const { values } = parseArgs({
  options: {
    kind: { type: "string" },
    inputs: { type: "string", default: "1000000" },
    seed: { type: "string", default: "1" },
    from: { type: "string", default: "0" },
    lanes: { type: "string", default: "24" },
    "memory-mib": { type: "string", default: "512" },
    connections: { type: "string", default: "40" },
  },
});
register();
const { kinds } = await import("../test/hostile/wire/kinds.ts");
const { runCampaign } = await import("../test/hostile/wire/campaign.ts");
const { startArbor } = await import("../test/hostile/wire/target.ts");
const createKind = kinds[values.kind ?? ""];
const inputs = Number(values.inputs);
if (createKind === undefined || !Number.isInteger(inputs) || inputs < 1) {
  console.error(`fuzz-wire: --kind must be one of ${Object.keys(kinds).join(", ")}, --inputs a whole number above 0`);
  process.exit(2);
}
const seed = Number(values.seed);
console.log(`${values.kind}: seed ${seed}`);
const target = await startArbor();
const faults = [];
try {
  const kind = await createKind(target);
  const report = await runCampaign(kind, target, {
    inputs,
    seed,
    from: Number(values.from),
    lanes: Number(values.lanes),
    openConnections: Number(values.connections),
    memoryBytes: Number(values["memory-mib"]) * 1024 * 1024,
    onProgress: (done) => console.log(`${values.kind}: ${done} inputs`),
  });
  faults.push(...report.faults);
  // After a fault there is no need to wait for the process.
  if (faults.length === 0) faults.push(...(await report.faultsAfterwards()));
  const mib = (bytes) => `${(bytes / 1024 / 1024).toFixed(0)} MiB`;
  console.log(`${report.inputs} inputs in ${report.batches} batches, ${report.seconds.toFixed(1)} s`);
  console.log(`memory: ${mib(report.memory.before)} before, ${mib(report.memory.peak)} at most`);
  console.log(`counts: ${JSON.stringify(report.counts)}`);
  console.log(`process: ${target.pid}, ${target.describeEnd() ?? "the same to the end"}`);
} finally {
  await target.stop();
}
for (const fault of faults) console.log(`fault: ${fault}`);
console.log(`faults: ${faults.length}`);
process.exit(faults.length === 0 ? 0 : 1);
