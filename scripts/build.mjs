// Builds what a checkout runs and packages contain, in `dist/`. Each step is said on standard error when it begins.
//   npm run build
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const steps = [
  ["the modules of the service", [join("node_modules", ".bin", "tsc"), "-p", "tsconfig.build.json"]],
  ["the files beside them", ["scripts/copy-assets.mjs"]],
  ["the console", ["scripts/console.mjs"]],
  ["the program", ["scripts/bundle.mjs"]],
  ["the pages of the documentation", ["scripts/site.mjs"]],
];
for (const [i, [what, args]] of steps.entries()) {
  console.error(`building ${i + 1} of ${steps.length}: ${what}`);
  const { status, error } = spawnSync(process.execPath, args, { stdio: "inherit" });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
