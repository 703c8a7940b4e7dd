// Runs the tests that need nothing but Node, in a few processes; with --processes those
// that start processes themselves, with --unit only those that do not start the service,
// or the named ones. test/support/scale.ts sets the number of repetitions. A file that
// fails runs again alone and has failed only if it fails again; both runs are printed.
//   npm test [-- --processes | --unit | FILE... [--test-reporter=NAME, or another option of Node's test runner]]
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { BUILD, buildTests, writeShards } from "./build-tests.mjs";
import { runShards } from "./run-shards.mjs";
import { SEPARATE, startsProcesses, startsService, testsIn } from "./test-files.mjs";

// With --unit these are left out as well: `npm run check` takes about a minute.
const LONG_FOLDERS = [
  "app",
  "e2e",
  "contract",
  "audit",
  "cli",
  "client",
  "events",
  "iam",
  "issuer",
  "registry",
  "scim",
  "upgrade",
  "vulnerabilities",
];
// Many tests mostly wait.
const AT_ONCE = 2 * availableParallelism();
// A process of tests that hangs is ended and has failed: it takes a minute or two. Campaigns take as long as they take.
const LIMIT_MS = (process.env.TEST_ARBOR_CAMPAIGN ?? "") === "" ? 20 * 60_000 : 0;

const arguments_ = process.argv.slice(2);
const unit = arguments_.includes("--unit");
const processes = arguments_.includes("--processes");
// Each process imports the service first, which takes as long as many of its tests. A multiple of
// the processes at once, so that they end at about the same time.
const PROCESSES = 2 * AT_ONCE;
const limit = LIMIT_MS === 0 ? [] : [`--test-timeout=${LIMIT_MS}`];
const named = arguments_.filter((argument) => !argument.startsWith("--"));
const runnerOptions = arguments_.filter((argument) => argument.startsWith("--test-"));
if (named.length > 0) process.exit(runNamed());

const outputOf = buildTests();
const files = testsIn("test", unit ? [...SEPARATE, ...LONG_FOLDERS] : SEPARATE).filter(
  (path) => startsProcesses(path) === processes && !(unit && startsService(path)),
);
const shards = writeShards(files, PROCESSES, outputOf);
process.exit(runShards(shards, { concurrency: AT_ONCE, options: limit, outputOf }));

// Several such runs may go on at the same time, so each has its own output.
function runNamed() {
  const output = join(BUILD, `named-${process.pid}`);
  try {
    const files = named.map(buildTests(output));
    const options = ["--enable-source-maps", "--test", `--test-concurrency=${AT_ONCE}`, ...limit, ...runnerOptions];
    return spawnSync(process.execPath, [...options, ...files], { stdio: "inherit" }).status ?? 1;
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}
