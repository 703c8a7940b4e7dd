// Starts a PostgreSQL server. Runs the tests that need it, and the tests of the API
// with the most writes on PostgreSQL in place of SQLite.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { buildTests, writeShards } from "./build-tests.mjs";

const PROCESSES = 4;
const ofApi = ["test/iam/v1", "test/registry/v1", "test/vulnerabilities/v1", "test/events"];
const testsIn = (folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join(folder, name));
const published = testsIn("test/contract").filter((name) => name.includes("published-"));
const files = [...["test/pg", ...ofApi].flatMap(testsIn), ...published];
const shards = writeShards(files, PROCESSES, buildTests());
const options = ["--test-reporter=./scripts/test-reporter.mjs", "--test-reporter-destination=stdout"];
const tests = ["--test", `--test-concurrency=${availableParallelism()}`, ...options, ...shards];
const args = ["scripts/with-pg.mjs", process.execPath, ...tests];
process.exit(spawnSync(process.execPath, args, { stdio: "inherit" }).status ?? 1);
