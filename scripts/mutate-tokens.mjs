// Presents mutated tokens to the API and to the token exchange, which must reject
// all of them:
//
//   node scripts/mutate-tokens.mjs [--tokens N] [--seed S] [--control]
//
// With --control checks are disabled on purpose. Then tokens must be accepted;
// otherwise the campaign cannot find any. Several processes share the work.
import { fork } from "node:child_process";
import { once } from "node:events";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { register } from "tsx/esm/api";

const { values } = parseArgs({
  options: {
    tokens: { type: "string", default: "1000000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    control: { type: "boolean", default: false },
    // One of the processes that share the work.
    worker: { type: "boolean", default: false },
  },
});
const [tokens, seed] = [Number(values.tokens), Number(values.seed)];
if (![tokens, seed].every(Number.isSafeInteger) || tokens < 2) {
  console.error("mutate-tokens: --tokens and --seed must be whole numbers");
  process.exit(2);
}
register();
if (values.worker) {
  const { runCampaign } = await import("../test/issuer/mutations/campaign.ts");
  process.send(await runCampaign({ tokens, seed, broken: { audience: values.control, key: values.control } }));
  process.disconnect();
} else {
  const { isClean, linesOf, sumReports, totalsOf } = await import("../test/issuer/mutations/report.ts");
  const workers = Math.min(cpus().length, Math.ceil(tokens / 1_000));
  const report = sumReports(await Promise.all(Array.from({ length: workers }, (_, i) => share(i, workers))));
  console.log(`seed ${seed}, ${workers} processes`);
  for (const line of linesOf(report)) console.log(line);
  for (const example of report.examples) console.error(`mutate-tokens: ${example}`);
  const verifiers = Object.values(report.verifiers).map(totalsOf);
  const [presented, accepted] = ["presented", "accepted"].map((of) =>
    verifiers.reduce((sum, { [of]: n }) => sum + n, 0),
  );
  console.log(`${presented} mutated tokens, ${accepted} accepted`);
  if (values.control && accepted === 0) console.error("mutate-tokens: the control accepted nothing");
  const asExpected = values.control ? accepted > 0 : isClean(report) && presented === tokens;
  process.exitCode = asExpected ? 0 : 1;
}

// Every process has its own service, and a seed derived from the given one.
async function share(i, workers) {
  const part = Math.floor(tokens / workers) + (i < tokens % workers ? 1 : 0);
  const args = [
    "--worker",
    "--tokens",
    String(part),
    "--seed",
    String(seed + i),
    ...(values.control ? ["--control"] : []),
  ];
  const child = fork(process.argv[1], args);
  const exited = once(child, "exit");
  const [report] = await Promise.race([once(child, "message"), exited.then(() => [undefined])]);
  const [code] = await exited;
  if (report === undefined || code !== 0) throw new Error(`a process ended with code ${code}`);
  return report;
}
