// Runs the tests that need nothing but Node, in a few processes; with --processes those
// that start processes themselves, with --unit only those that do not start the service,
// or the named ones. test/support/scale.ts sets the number of repetitions. A file that
// fails runs again alone and has failed only if it fails again; both runs are printed.
//   npm test [-- --processes | --unit | FILE... [--test-reporter=NAME, or another option of Node's test runner]]
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { BUILD, buildTests, writeShards } from "./build-tests.mjs";
import { SEPARATE, startsProcesses, testsIn } from "./test-files.mjs";

// These start the service, many of them as a process.
const WHOLE = [
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
  "upgrade",
  "vulnerabilities",
];
// Many tests mostly wait.
const AT_ONCE = 2 * availableParallelism();
// A process of tests that hangs is ended and has failed: it takes a minute or two. Campaigns take as long as they take.
const LIMIT_MS = (process.env.TEST_ARBOR_CAMPAIGN ?? "") === "" ? 20 * 60_000 : 0;
// If at most this many files fail, each runs again alone.
const MAX_AGAIN = 3;
const SUMMARY = resolve(BUILD, "summary.json");

const arguments_ = process.argv.slice(2);
const unit = arguments_.includes("--unit");
const processes = arguments_.includes("--processes");
// Each process imports the service first, which takes as long as many of its tests. A multiple of
// the processes at once, so that they end at about the same time.
const PROCESSES = 2 * AT_ONCE;
// Tests make much garbage that lives for the duration of a call: with more room for it less is copied. And most of
// their code runs too seldom to repay its optimization, so V8 runs code for six times as long before it optimizes it.
const ENGINE = ["--max-semi-space-size=32", "--interrupt-budget=400000"];
const limit = LIMIT_MS === 0 ? [] : [`--test-timeout=${LIMIT_MS}`];
const named = arguments_.filter((argument) => !argument.startsWith("--"));
const runnerOptions = arguments_.filter((argument) => argument.startsWith("--test-"));
if (named.length > 0) process.exit(runNamed());

const outputOf = buildTests();
const files = testsIn("test", unit ? [...SEPARATE, ...WHOLE] : SEPARATE).filter(
  (path) => startsProcesses(path) === processes,
);
const options = [
  ...ENGINE,
  "--test",
  ...limit,
  "--test-reporter=./scripts/test-reporter.mjs",
  "--test-reporter-destination=stdout",
];
rmSync(SUMMARY, { force: true });
const status = run([...options, `--test-concurrency=${AT_ONCE}`, ...writeShards(files, PROCESSES, outputOf)]);
if (status === 0) process.exit(0);
const first = readSummary();
// A test that measures times may fail on a busy machine, so a file must also fail alone.
if (first === undefined || !isRepeatable(first)) process.exit(status);
console.log(`\nagain, alone: ${first.files.join(" ")}`);
rmSync(SUMMARY, { force: true });
const again = run([...options, "--test-concurrency=1", ...first.files]);
const second = readSummary();
if (second !== undefined) {
  const passed = first.pass + first.fail - second.fail;
  console.log(`in all: ${passed} passed, ${second.fail} failed, ${first.skip} skipped`);
}
process.exit(again);

// Undefined where the runner ended before it wrote one.
function readSummary() {
  return existsSync(SUMMARY) ? JSON.parse(readFileSync(SUMMARY, "utf8")) : undefined;
}

function isRepeatable({ files }) {
  return files.length > 0 && files.length <= MAX_AGAIN && files.every((name) => name.endsWith(".test.js"));
}

// Several such runs may go on at the same time, so each has its own output.
function runNamed() {
  const output = join(BUILD, `named-${process.pid}`);
  try {
    const files = named.map(buildTests(output));
    return run([
      "--enable-source-maps",
      "--test",
      `--test-concurrency=${AT_ONCE}`,
      ...limit,
      ...runnerOptions,
      ...files,
    ]);
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

function run(args) {
  const env = { ...process.env, TEST_SUMMARY_FILE: SUMMARY };
  return spawnSync(process.execPath, args, { stdio: "inherit", env }).status ?? 1;
}
