// Starts a PostgreSQL server. Runs the tests that need it, and the tests of the API
// with the most writes on PostgreSQL in place of SQLite. A file that fails runs again alone, on a server of its own.
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { buildTests, writeShards } from "./build-tests.mjs";
import { runShards } from "./run-shards.mjs";

const AT_ONCE = availableParallelism();
const PROCESSES = 2 * AT_ONCE;
const ofApi = ["test/iam/v1", "test/registry/v1", "test/vulnerabilities/v1", "test/events"];
const testsIn = (folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join(folder, name));
// Other tests whose subject depends on the database.
const others = ["test/iam/temporary-bindings.test.ts"];
const published = testsIn("test/contract").filter((name) => name.includes("published-"));
const files = [...["test/pg", ...ofApi].flatMap(testsIn), ...published, ...others];
const outputOf = buildTests();
const shards = writeShards(files, PROCESSES, outputOf);
const wrapper = [process.execPath, "scripts/with-pg.mjs"];
process.exit(runShards(shards, { concurrency: AT_ONCE, options: [], outputOf, wrapper }));
