// Runs many test files in a few processes. What fails runs again alone.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { BUILD } from "./build-tests.mjs";

// If at most this many files fail, each runs again alone.
const MAX_AGAIN = 3;
// Tests make much garbage that lives for the duration of a call: with more room for it less is copied. And most of
// their code runs too seldom to repay its optimization, so V8 runs code for six times as long before it optimizes it.
const ENGINE = ["--max-semi-space-size=32", "--interrupt-budget=400000"];
const SUMMARY = resolve(BUILD, "summary.json");

/**
 * Runs tests and prints what failed and the totals. A test that measures times may fail on a busy machine, so a file has
 * failed only if it also fails alone; both runs are printed.
 *
 * @param shards files that each run some of the tests in one process; see `writeShards`
 * @param concurrency how many processes run at once
 * @param options further options of Node
 * @param outputOf what `buildTests` returned
 * @param wrapper a command that runs the command after it, such as one that starts a database first
 * @returns the status with which to exit
 */
export function runShards(shards, { concurrency, options, outputOf, wrapper = [] }) {
  const status = run(shards, concurrency);
  if (status === 0) return 0;
  const first = readSummary();
  if (first === undefined || !isRepeatable(first)) return status;
  console.log(`\nagain, alone: ${first.files.join(" ")}`);
  const again = run(first.files.map(outputOf), 1);
  const second = readSummary();
  if (second !== undefined) {
    const passed = first.pass + first.fail - second.fail;
    console.log(`in all: ${passed} passed, ${second.fail} failed, ${first.skip} skipped`);
  }
  return again;

  function run(files, atOnce) {
    rmSync(SUMMARY, { force: true });
    const reporter = ["--test-reporter=./scripts/test-reporter.mjs", "--test-reporter-destination=stdout"];
    const node = [
      process.execPath,
      ...ENGINE,
      ...options,
      "--test",
      `--test-concurrency=${atOnce}`,
      ...reporter,
      ...files,
    ];
    const [program, ...args] = [...wrapper, ...node];
    const env = { ...process.env, TEST_SUMMARY_FILE: SUMMARY };
    return spawnSync(program, args, { stdio: "inherit", env }).status ?? 1;
  }
}

// Undefined where the runner ended before it wrote one.
function readSummary() {
  return existsSync(SUMMARY) ? JSON.parse(readFileSync(SUMMARY, "utf8")) : undefined;
}

// A process that ended has failed as a whole.
function isRepeatable({ files }) {
  return files.length > 0 && files.length <= MAX_AGAIN && files.every((name) => name.endsWith(".test.ts"));
}
