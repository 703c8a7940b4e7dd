// Runs the tests: all that need nothing but Node, or those named; with --unit
// only those of what the service is made of.
//   npm test [-- --unit | FILE...]
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { BUILD, buildTests } from "./build-tests.mjs";
import { SEPARATE, testsIn } from "./test-files.mjs";

// These run the service as a whole, many of them as a process.
const WHOLE = ["e2e", "contract", "audit", "cli", "client", "events", "iam", "issuer", "registry", "vulnerabilities"];
const PROCESSES = 24;

const arguments_ = process.argv.slice(2);
const unit = arguments_.includes("--unit");
const named = arguments_.filter((argument) => argument !== "--unit");
if (named.length > 0) process.exit(run(["--import", "tsx", "--test", ...named]));

buildTests();
const files = testsIn("test", unit ? [...SEPARATE, ...WHOLE] : SEPARATE);
const options = ["--test", "--test-reporter=./scripts/test-reporter.mjs", "--test-reporter-destination=stdout"];
process.exit(run([...options, `--test-concurrency=${availableParallelism()}`, ...inShards(files)]));

function inShards(files) {
  const directory = join(BUILD, "shards");
  mkdirSync(directory, { recursive: true });
  const shards = Array.from({ length: PROCESSES }, () => []);
  for (const [i, file] of files.entries()) shards[i % PROCESSES].push(file);
  return shards.map((names, i) => {
    const path = join(directory, `${String(i).padStart(2, "0")}.test.mjs`);
    const lines = names.map(
      (name) => `describe(${JSON.stringify(name)}, () => import(${JSON.stringify(compiled(name))}));`,
    );
    writeFileSync(path, `import { describe } from "node:test";\n${lines.join("\n")}\n`);
    return path;
  });
}

function compiled(name) {
  return `../${name.replace(/\.ts$/, ".js")}`;
}

function run(args) {
  return spawnSync(process.execPath, args, { stdio: "inherit" }).status ?? 1;
}
