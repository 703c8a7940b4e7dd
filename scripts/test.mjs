// Runs the tests: all that need nothing but Node, or those named; with --unit
// only those that take no whole process and no long runs.
//   npm test [-- --unit | FILE...]
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

// These need PostgreSQL, a browser, a container registry or the npm registry; .ci/run sees to that.
const SEPARATE = ["pg", "pack", "browser", "registry-e2e"];

const LONG = ["e2e", "contract"];

const unit = process.argv.includes("--unit");
const named = process.argv.slice(2).filter((argument) => argument !== "--unit");
const skipped = unit ? [...SEPARATE, ...LONG] : SEPARATE;
const files = named.length > 0 ? named : testsIn("test");
const { status } = spawnSync(process.execPath, ["--import", "tsx", "--test", ...files], { stdio: "inherit" });
process.exit(status ?? 1);

function testsIn(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return skipped.includes(entry.name) ? [] : testsIn(path);
    return entry.name.endsWith(".test.ts") ? [path] : [];
  });
}
