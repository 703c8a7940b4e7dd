// Installs a clean copy of the tree on other versions of Node, as a user would. There
// it runs tests of what differs between versions of Node: sockets, streams, signatures,
// and the start on one processor.
//   npm run test:nodes [-- 22 24 26] [--all | --short | FILE...]
// --all runs what `npm test` runs. --short makes fewer calls during attacks and only prints times. The last line
// counts the tests of all versions.
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { bareEnvironment, environmentFor, getNode, getNpm } from "../test/support/other-node.ts";
import { SEPARATE, testsIn } from "./test-files.mjs";

// Together these versions of Node come with all current versions of npm. npm 12, which runs only
// approved install scripts, does not run on Node 20.
const NPM = { 20: 10, 22: 10, 24: 11, 26: 12 };
// Tests that take longer and depend no more on the version of Node run with --all only.
const FILES = [
  "test/e2e/one-processor.test.ts",
  "test/store/sqlite-driver.test.ts",
  "test/transport/protocols.test.ts",
  "test/transport/rpc/grpc-framing.test.ts",
  "test/transport/limits.test.ts",
  "test/transport/streams.test.ts",
  "test/transport/refusals.test.ts",
  "test/transport/lifecycle.test.ts",
  "test/contract/matrix.test.ts",
  "test/issuer/mutations/mutations.test.ts",
  "test/e2e/hostile.test.ts",
  ...filesIn("test/hostile").filter((name) => /\/reset[^/]*\.test\.ts$/.test(name)),
];
/** See scripts/hostile.mjs. */
const SHORT = { ARBOR_HOSTILE_CALLS: "150", ARBOR_HOSTILE_TIMES: "reported" };
const INSTALL_MS = 1_200_000;
const FILE_MS = 900_000;
/** Files of a checkout that are not in the repository. */
const NOT_COPIED = new Set(["node_modules", "dist", "data", ".git"].map((name) => resolve(name)));

const arguments_ = process.argv.slice(2);
const majors = arguments_.filter((argument) => /^\d+$/.test(argument)).map(Number);
const named = arguments_.filter((argument) => argument.endsWith(".test.ts"));
const unknown = arguments_.filter((argument) => !/^(\d+|--all|--short|.*\.test\.ts)$/.test(argument));
if (unknown.length > 0) throw new Error(`unknown: ${unknown.join(" ")}`);
const chosen = named.length > 0 ? named : FILES;
const files = arguments_.includes("--all") ? testsIn("test", SEPARATE) : chosen;

let passed = 0;
let failed = 0;
for (const major of majors.length > 0 ? majors : [22, 24, 26]) await testOn(major);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

async function testOn(major) {
  const directory = mkdtempSync(join(tmpdir(), `arbor-node-${major}-`));
  const before = { passed, failed };
  try {
    const node = await getNode(major);
    const npm = await getNpm(NPM[major] ?? 12);
    const tree = join(directory, "tree");
    cpSync(".", tree, { recursive: true, filter: (path) => !NOT_COPIED.has(resolve(path)) });
    // Only Node 20 needs a compiler.
    mkdirSync(join(directory, "bin"));
    const bare = major >= 22;
    const env = bare ? bareEnvironment(node, join(directory, "bin")) : environmentFor(node);
    const label = `Node ${node.version}`;
    const install = await run(node.program, [npm.cli, "ci"], { cwd: tree, env }, INSTALL_MS);
    console.log(
      `${label}: npm ${npm.version} ci ${bare ? "without a compiler " : ""}ended with ${install.end}, ${install.seconds} s`,
    );
    if (install.end !== 0) {
      failed++;
      console.log(install.output);
      return;
    }
    passed++;
    for (const file of files) await testFile(label, node, tree, file);
    console.log(`${label}: ${passed - before.passed} passed, ${failed - before.failed} failed`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function testFile(label, node, cwd, file) {
  const args = ["--import", "tsx", "--test", "--test-reporter=tap", file];
  const env = { ...environmentFor(node), ...(arguments_.includes("--short") && SHORT) };
  const { end, output, seconds } = await run(node.program, args, { cwd, env }, FILE_MS);
  const count = (name) => Number(new RegExp(`^# ${name} (\\d+)$`, "m").exec(output)?.[1] ?? 0);
  const good = count("pass");
  // A file that crashes, or runs no test, has failed as well.
  const bad = count("fail") + count("cancelled") || (end === 0 && good > 0 ? 0 : 1);
  passed += good;
  failed += bad;
  console.log(
    `${label}: ${file}: ${good} passed, ${bad} failed, ${seconds} s${end === 0 ? "" : `, ended with ${end}`}`,
  );
  if (bad > 0) console.log(output.split("\n").filter(tellsWhy).join("\n"));
}

/** Whether a line of the report names a failed test or its error. */
function tellsWhy(line) {
  return /^\s*(not ok |error: |location: |# Error)/.test(line);
}

function filesIn(directory) {
  return existsSync(directory) ? readdirSync(directory).map((name) => `${directory}/${name}`) : [];
}

/** Runs a program in its own process group, and kills the group after a timeout. */
function run(program, args, options, limitMs) {
  return new Promise((done, fail) => {
    const startMs = performance.now();
    const child = spawn(program, args, { ...options, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let expired = false;
    const timer = setTimeout(() => {
      expired = true;
      process.kill(-child.pid, "SIGKILL");
    }, limitMs);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8");
      stream.on("data", (chunk) => {
        output += chunk;
      });
    }
    child.on("error", fail);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      const end = expired ? `no end within ${limitMs / 1000} s` : (code ?? signal);
      done({ end, output, seconds: ((performance.now() - startMs) / 1000).toFixed(1) });
    });
  });
}
