// Compares what AccessService says with the guard of every served method, and with a naive evaluation, in random worlds:
//
//   node scripts/access.mjs [--calls N] [--seed N] [--control NAME] [--pg]
//
// With --pg the worlds are in PostgreSQL: run it by scripts/with-pg.mjs. With --control the model is wrong about one thing,
// such as tokens, or pages are read wrongly. Then the comparison must find differences; otherwise it cannot find any.
import { parseArgs } from "node:util";
import { register } from "tsx/esm/api";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "100000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    control: { type: "string" },
    pg: { type: "boolean", default: false },
  },
});
const controls = ["inherits", "token", "pending", "provider", "visibility", "joined", "names", "pages", "all"];
const [calls, seed] = [Number(values.calls), Number(values.seed)];
if (![calls, seed].every(Number.isSafeInteger) || calls < 1) {
  console.error("access: --calls and --seed must be whole numbers");
  process.exit(2);
}
if (values.control !== undefined && !controls.includes(values.control)) {
  console.error(`access: --control must be one of ${controls.join(", ")}`);
  process.exit(2);
}
register();
const { runAccess } = await import("../test/access/access-run.ts");
const { newDatabase } = await import("../test/pg/databases.ts");
const faults = values.control === "all" ? controls.slice(0, -1) : [values.control];
let isRight = true;
for (const fault of faults) {
  const startMs = performance.now();
  const run = await runAccess({ calls, seed, fault, ...(values.pg && { newDatabase }) });
  const { differences, allowed, worlds, changes, methods, asked } = run;
  const rate = Math.round((run.calls / (performance.now() - startMs)) * 1_000);
  const share = ((100 * allowed) / run.calls).toFixed(1);
  if (fault === undefined) for (const difference of differences) console.error(`access: ${difference}`);
  console.log(
    `${fault === undefined ? "" : `control ${fault}, `}seed ${seed}: ${run.calls} calls of ${methods} methods, ${share} % allowed, ` +
      `${worlds} worlds, ${changes} changes, ${rate} calls/s, ${differences.length} differences`,
  );
  if (fault === undefined)
    console.log(
      `  ${Object.entries(asked)
        .map(([kind, n]) => `${kind} ${n}`)
        .join(", ")}`,
    );
  if (fault !== undefined && differences.length === 0) console.error(`access: the control ${fault} found nothing`);
  isRight &&= (fault !== undefined) === differences.length > 0;
}
process.exit(isRight ? 0 : 1);
