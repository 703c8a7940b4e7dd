// Compares random authorization decisions with a reference model:
//
//   node scripts/decisions.mjs [--decisions N] [--seed N] [--control]
//
// With --control the model ignores bindings of ancestors. Then the comparison must
// find differences; otherwise it cannot find any.
import { parseArgs } from "node:util";
import { register } from "tsx/esm/api";

const { values } = parseArgs({
  options: {
    decisions: { type: "string", default: "1000000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    control: { type: "boolean", default: false },
  },
});
const [count, seed] = [Number(values.decisions), Number(values.seed)];
if (![count, seed].every(Number.isSafeInteger) || count < 1) {
  console.error("decisions: --decisions and --seed must be whole numbers");
  process.exit(2);
}
register();
const { runDecisions } = await import("../test/iam/decision-run.ts");
const { decisions, allowed, differences, mutations, roots, depth } = await runDecisions(count, seed, {
  inherits: !values.control,
});
for (const difference of differences) console.error(`decisions: ${difference}`);
const share = ((100 * allowed) / decisions).toFixed(1);
console.log(
  `seed ${seed}: ${decisions} decisions, ${share} % allowed, ${mutations} changes, ${roots} roots, ${depth} deep, ${differences.length} differences`,
);
if (values.control && differences.length === 0) console.error("decisions: the control found nothing");
process.exit(values.control === differences.length > 0 ? 0 : 1);
