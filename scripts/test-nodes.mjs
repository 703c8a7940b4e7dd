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

// Together these versions of Node come with all current versions of npm. npm 12, which runs only
// approved install scripts, does not run on Node 20.
const NPM = { 20: 10, 22: 10, 24: 11, 26: 12 };
// Tests that take longer and depend no more on the version of Node run with --all only.
const FILES = [
  "test/e2e/one-processor.test.ts",
  "test/store/sqlite-driver.test.ts",
  "test/transport/http/http1-response.test.ts",
  "test/transport/protocols.test.ts",
  "test/transport/protocol/grpc-framing.test.ts",
  "test/transport/body-pieces.test.ts",
  "test/transport/refusals.test.ts",
  "test/transport/limits.test.ts",
  "test/transport/streams.test.ts",
  "test/transport/rejections.test.ts",
  "test/transport/lifecycle.test.ts",
  "test/contract/rules.test.ts",
  "test/issuer/mutations/mutations.test.ts",
  ...filesIn("test/hostile").filter((name) => /\/reset[^/]*\.test\.ts$/.test(name)),
];
/** See scripts/hostile.mjs. */
const SHORT = { HOSTILE_CALLS: "150", HOSTILE_TIMES: "reported" };
const INSTALL_MS = 1_200_000;
const ALL_MS = 1_200_000;
/** What a checkout has that is not in the repository. */
const NOT_COPIED = new Set(["node_modules", "dist", "build", "data", ".git"].map((name) => resolve(name)));

const arguments_ = process.argv.slice(2);
const majors = arguments_.filter((argument) => /^\d+$/.test(argument)).map(Number);
const named = arguments_.filter((argument) => argument.endsWith(".test.ts"));
const unknown = arguments_.filter((argument) => !/^(\d+|--all|--short|.*\.test\.ts)$/.test(argument));
if (unknown.length > 0) throw new Error(`unknown: ${unknown.join(" ")}`);
const files = named.length > 0 ? named : FILES;
const missing = files.filter((file) => !existsSync(file));
if (missing.length > 0) throw new Error(`there is no ${missing.join(" or ")}`);
const isShort = arguments_.includes("--short");

let passed = 0;
let failed = 0;
const versions = majors.length > 0 ? majors : [22, 24, 26];
let next = install(versions[0]);
for (let i = 1; i <= versions.length; i++) {
  const { directory, node, label, env } = await next;
  // Where times are reported alone, the next version is installed meanwhile.
  if (isShort) next = install(versions[i]);
  if (env !== undefined) await testOn(label, node, env, join(directory, "tree"));
  rmSync(directory, { recursive: true, force: true });
  if (!isShort) next = install(versions[i]);
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

/** Installs a version of Node and a copy of the tree on it; `env` is missing where that failed. */
async function install(major) {
  if (major === undefined) return undefined;
  const directory = mkdtempSync(join(tmpdir(), `arbor-node-${major}-`));
  const node = await getNode(major);
  const npm = await getNpm(NPM[major] ?? 12);
  const tree = join(directory, "tree");
  cpSync(".", tree, { recursive: true, filter: (path) => !NOT_COPIED.has(resolve(path)) });
  // Node 20 alone needs a compiler.
  mkdirSync(join(directory, "bin"));
  const bare = major >= 22;
  const env = bare ? bareEnvironment(node, join(directory, "bin")) : environmentFor(node);
  const label = `Node ${node.version}`;
  const { end, seconds, output } = await run(node.program, [npm.cli, "ci"], { cwd: tree, env }, INSTALL_MS);
  const compiler = bare ? "without a compiler " : "";
  console.log(`${label}: npm ${npm.version} ci ${compiler}ended with ${end}, ${seconds} s`);
  if (end === 0) passed++;
  else failed++;
  if (end !== 0) console.log(output);
  return { directory, node, label, env: end === 0 ? environmentFor(node) : undefined };
}

async function testOn(label, node, env, cwd) {
  const before = { passed, failed };
  const test = async (name, args) => {
    const { end, output, seconds } = await run(
      node.program,
      args,
      { cwd, env: { ...env, ...(isShort && SHORT) } },
      ALL_MS,
    );
    const good = countIn(output, "pass");
    // A run that ends otherwise than by its tests, or has none, has failed as well.
    const bad = countIn(output, "fail", "cancelled") || (end === 0 && good > 0 ? 0 : 1);
    passed += good;
    failed += bad;
    console.log(
      `${label}: ${name}: ${good} passed, ${bad} failed, ${seconds} s${end === 0 ? "" : `, ended with ${end}`}`,
    );
    if (bad > 0) console.log(failuresIn(output));
  };
  if (arguments_.includes("--all")) {
    await test("npm test", ["scripts/test.mjs"]);
    await test("npm run test:processes", ["scripts/test.mjs", "--processes"]);
  } else {
    const alone = files.filter((file) => file.startsWith("test/hostile/"));
    const others = files.filter((file) => !alone.includes(file));
    const reporter = "--test-reporter=tap";
    if (others.length > 0) {
      await test(`${others.length} files`, ["scripts/test.mjs", reporter, "--test-concurrency=2", ...others]);
    }
    // These build the service themselves, and start it and their clients from the checkout.
    for (const file of alone) await test(file, ["--import", "tsx", "--test", reporter, file]);
  }
  console.log(`${label}: ${passed - before.passed} passed, ${failed - before.failed} failed`);
}

/**
 * What a reporter counted, by some of its words. `npm test` runs what failed again: what passes then
 * counts as passed.
 */
function countIn(output, ...words) {
  const lines = [...output.matchAll(/^(\d+) passed, (\d+) failed/gm)].map((line) => line.slice(1).map(Number));
  const [first, last] = [lines[0], lines.at(-1)];
  if (first !== undefined) return words.includes("pass") ? first[0] + first[1] - last[1] : last[1];
  const counts = [...output.matchAll(/^# (\w+) (\d+)$/gm)].filter(([, word]) => words.includes(word));
  return counts.reduce((sum, [, , count]) => sum + Number(count), 0);
}

/** What a report says of the tests that failed: their names and all that follows of each, and the attacks' summaries. */
function failuresIn(output) {
  let isTelling = false;
  const lines = output.split("\n").filter((line) => {
    if (/^\s*(not )?ok\b/.test(line)) isTelling = /^\s*not ok\b/.test(line);
    return isTelling || /^# (Error|.*FAILED)/.test(line);
  });
  return lines.join("\n");
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
