// Runs the tests: all that need nothing but Node, or those named; with --unit
// only those of what the service is made of, which take a minute.
//   npm test [-- --unit | FILE...]
import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { SEPARATE, testsIn } from "./test-files.mjs";

// These run the service as a whole, many of them as a process.
const WHOLE = ["e2e", "contract", "audit", "cli", "client", "events", "iam", "issuer", "registry", "vulnerabilities"];

const unit = process.argv.includes("--unit");
const named = process.argv.slice(2).filter((argument) => argument !== "--unit");
const files = named.length > 0 ? named : testsIn("test", unit ? [...SEPARATE, ...WHOLE] : SEPARATE);
// Long runs measure times; units can share the machine with each other.
const options = unit ? [`--test-concurrency=${availableParallelism()}`] : [];
const { status } = spawnSync(process.execPath, ["--import", "tsx", "--test", ...options, ...files], {
  stdio: "inherit",
});
process.exit(status ?? 1);
