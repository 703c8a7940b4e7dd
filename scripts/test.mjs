// Runs the tests: those that need nothing but Node, or the named ones, or with --unit
// only those that do not start the service. test/support/scale.ts sets the number of
// repetitions. A file that fails runs again alone and has failed only if it fails
// again; both runs are printed.
//   npm test [-- --unit | FILE...]
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { BUILD, buildTests, outputOf } from "./build-tests.mjs";
import { SEPARATE, secondsOf, testsIn } from "./test-files.mjs";

// These start the service, many of them as a process.
const WHOLE = [
  "e2e",
  "contract",
  "audit",
  "cli",
  "client",
  "events",
  "iam",
  "issuer",
  "registry",
  "upgrade",
  "vulnerabilities",
];
// Each process takes more than a second to import the service, but one that runs many files keeps their memory.
const PROCESSES = 12;
// Many tests mostly wait.
const AT_ONCE = Math.ceil(1.5 * availableParallelism());
// If at most this many files fail, each runs again alone.
const MAX_AGAIN = 3;
const FAILED = resolve(BUILD, "failed.json");

const arguments_ = process.argv.slice(2);
const unit = arguments_.includes("--unit");
const named = arguments_.filter((argument) => argument !== "--unit");
if (named.length > 0) process.exit(run(["--import", "tsx", "--test", `--test-concurrency=${AT_ONCE}`, ...named]));

buildTests();
const files = testsIn("test", unit ? [...SEPARATE, ...WHOLE] : SEPARATE);
const options = ["--test", "--test-reporter=./scripts/test-reporter.mjs", "--test-reporter-destination=stdout"];
const status = run([...options, `--test-concurrency=${AT_ONCE}`, ...writeShards(files)]);
const failed = status === 0 ? [] : readFailedFiles();
// A test that measures times may fail on a busy machine, so a file must also fail alone.
if (failed.length === 0 || failed.length > MAX_AGAIN) process.exit(status);
console.log(`\nagain, alone: ${failed.join(" ")}`);
process.exit(run([...options, "--test-concurrency=1", ...failed]));

function readFailedFiles() {
  const names = existsSync(FAILED) ? JSON.parse(readFileSync(FAILED, "utf8")) : [];
  return names.every((name) => name.endsWith(".test.js")) ? names : [];
}

/** Writes files that each run some of the tests in one process, with about the same total duration. */
function writeShards(files) {
  const directory = join(BUILD, "shards");
  mkdirSync(directory, { recursive: true });
  const shards = Array.from({ length: PROCESSES }, () => ({ names: [], seconds: 0 }));
  for (const name of [...files].sort((one, other) => secondsOf(other) - secondsOf(one))) {
    const least = shards.reduce((one, other) => (other.seconds < one.seconds ? other : one));
    least.names.push(name);
    least.seconds += secondsOf(name);
  }
  // The longest start first, so that at the end no processor is idle while another runs one of them.
  shards.sort((one, other) => other.seconds - one.seconds);
  return shards.map(({ names }, i) => {
    const path = join(directory, `${String(i).padStart(2, "0")}.test.mjs`);
    const lines = names.map(
      (name) => `describe(${JSON.stringify(name)}, () => import(${JSON.stringify(join("..", "..", outputOf(name)))}));`,
    );
    writeFileSync(path, `import { describe } from "node:test";\n${lines.join("\n")}\n`);
    return path;
  });
}

function run(args) {
  const env = { ...process.env, ARBOR_FAILED_TESTS: FAILED };
  return spawnSync(process.execPath, args, { stdio: "inherit", env }).status ?? 1;
}
