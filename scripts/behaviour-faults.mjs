// Puts faults into the service, one at a time, and prints which of them the tests of this checkout catch, and of those that
// the changed tests miss, which the tests of another checkout catch. For a change of tests that must lose nothing:
//
//   node scripts/behaviour-faults.mjs --against DIRECTORY [--seed S] [--count N] [--only 3,17]
//
// A fault is a check skipped, a comparison turned or a field lost, drawn from the places that both checkouts have. It is put
// into the compiled copies of both, never into a source. Only the folders of tests that belong to the fault's folder are run:
// first the tests that differ between the checkouts, unless they do not run the code of the fault; if none fails, those of the
// other checkout that differ; then those that both have, which are all run if only the other checkout's have failed, and else
// those nearest to the fault. It fails if the other checkout catches what this one misses.
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { transformSync } from "esbuild";
import { findFaultSites } from "./fault-sites.mjs";
import { SEPARATE, secondsOf, testsIn } from "./test-files.mjs";

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    seed: { type: "string", default: "1" },
    count: { type: "string", default: "60" },
    // The numbers of single faults of the draw.
    only: { type: "string" },
  },
});
const [seed, count] = [Number(values.seed), Number(values.count)];
if (values.against === undefined || ![seed, count].every(Number.isSafeInteger) || count < 1) {
  console.error("behaviour-faults: --against must be a checkout, --seed and --count whole numbers");
  process.exit(2);
}
const only = values.only?.split(",").map(Number);

/** The folders of the tests that are run for a folder of the source. */
const TESTS = {
  issuer: ["pipeline/auth", "issuer", "contract"],
  iam: ["iam", "access", "contract", "pipeline"],
  pipeline: ["pipeline", "contract", "iam"],
  registry: ["registry", "contract", "iam"],
  vulnerabilities: ["vulnerabilities", "contract"],
};
/** What tests that start processes import. */
const STARTS = /support\/(child-process|other-node|packed|workers)\.js"/;
/** The tests of one run may take so long. A test that hangs has noticed the fault. */
const LIMIT_MS = 240_000;

const OURS = resolve(".");
const THEIRS = resolve(values.against);
const OUTPUT = "build/faults";
const COVERAGE = "build/faults-coverage";

const listSources = (folder) =>
  readFolder(join("src", folder)).filter((path) => {
    const theirs = join(THEIRS, path);
    return existsSync(theirs) && readFileSync(path, "utf8") === readFileSync(theirs, "utf8");
  });
const sites = findFaultSites(OURS, Object.keys(TESTS).flatMap(listSources));
const drawn = draw(sites, count);
console.log(`${sites.length} places, ${drawn.length} drawn with seed ${seed}`);
for (const root of [OURS, THEIRS]) await build(root);
const [ours, theirs] = [testsOf(OURS, THEIRS), testsOf(THEIRS, OURS)];
console.log(
  `tests that differ: ${ours.changed.length} here, ${theirs.changed.length} there; the same: ${ours.same.length}`,
);

// Without a fault all must pass. Faults in code that they do not run need not be tried.
const controls = [
  [OURS, ours.changed],
  [THEIRS, theirs.changed],
];
const covered = new Map();
for (const [root, files] of controls) {
  const startMs = performance.now();
  const failed = await run(root, files, join(root, COVERAGE));
  covered.set(root, readCoverage(root));
  if (failed !== undefined) {
    console.error(`behaviour-faults: without a fault, ${failed} fails in ${root}`);
    process.exit(1);
  }
  console.log(`${files.length} files of ${root} pass in ${Math.round((performance.now() - startMs) / 1000)} s`);
}

// First the tests that differ, of all faults; then those that are the same, of the faults that none of these has caught.
const outcomes = [];
for (const [i, site] of drawn.entries()) {
  if (only !== undefined && !only.includes(i + 1)) continue;
  const folders = TESTS[site.file.split("/")[1]];
  const outcome = { number: i + 1, site, here: undefined, there: undefined };
  outcomes.push(outcome);
  await withFault(site, async () => {
    if (isCovered(OURS, site)) outcome.here = await run(OURS, select(ours.changed, folders));
    if (outcome.here === undefined && isCovered(THEIRS, site)) {
      outcome.there = await run(THEIRS, select(theirs.changed, folders));
    }
    // What only they catch may be caught here by a test that is the same.
    const isOpen = outcome.here === undefined && outcome.there !== undefined;
    if (isOpen) outcome.here = await run(OURS, select(ours.same, folders));
  });
  print(outcome);
}
for (const outcome of outcomes.filter(({ here, there }) => here === undefined && there === undefined)) {
  await withFault(outcome.site, async () => {
    outcome.here = outcome.there = await run(OURS, selectNear(ours.same, outcome.site.file));
  });
  print(outcome);
}
const lost = outcomes.filter(({ here, there }) => here === undefined && there !== undefined);
console.log(`${lost.length} faults that the tests of the other checkout catch, and those of this one do not`);
process.exit(lost.length === 0 ? 0 : 1);

async function withFault(site, action) {
  for (const root of [OURS, THEIRS]) inject(root, site);
  try {
    await action();
  } finally {
    for (const root of [OURS, THEIRS]) compile(root, site.file, readFileSync(join(root, site.file), "utf8"));
  }
}

function print({ number, site: { file, line, kind, code }, here, there }) {
  const columns = [
    number,
    `${file}:${line}`,
    `${kind}: ${code.slice(0, 60)}`,
    `there: ${there ?? "-"}`,
    `here: ${here ?? "-"}`,
  ];
  console.log(columns.join("\t"));
}

function readFolder(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name))
    .sort();
}

/** Draws without repetition. */
function draw(all, number) {
  let state = seed >>> 0;
  // mulberry32
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const rest = [...all];
  return Array.from(
    { length: Math.min(number, rest.length) },
    () => rest.splice(Math.floor(random() * rest.length), 1)[0],
  );
}

async function build(root) {
  const program = `import("./scripts/build-tests.mjs").then(({ buildTests }) => buildTests("${OUTPUT}"))`;
  const child = spawn(process.execPath, ["-e", program], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
  const code = await new Promise((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error(`${root} cannot be built`);
}

/** The tests of a checkout: those that differ from another one's, themselves or in what they import, and the others. */
function testsOf(root, other) {
  const all = testsIn(join(root, "test"), SEPARATE).map((path) => path.slice(root.length + 1));
  const folders = new Set(Object.values(TESTS).flat());
  const files = all.filter((path) => isIn(path, folders) && !STARTS.test(readFileSync(join(root, path), "utf8")));
  const changed = files.filter((path) => contentOf(root, path) !== contentOf(other, path));
  return { changed, same: files.filter((path) => !changed.includes(path)) };
}

/** The text of a test and of what it imports from its own folders; what all tests share says nothing about a rule. */
function contentOf(root, path, seen = new Set()) {
  if (seen.has(path) || !path.startsWith("test/") || path.startsWith("test/support/")) return "";
  seen.add(path);
  const absolute = join(root, path);
  if (!existsSync(absolute)) return "missing";
  const text = readFileSync(absolute, "utf8");
  const imported = [...text.matchAll(/\bfrom "(\.[^"]+)\.js"/g)].map(([, name]) => join(dirname(path), `${name}.ts`));
  return text + imported.map((one) => contentOf(root, one, seen)).join("");
}

function isIn(path, folders) {
  return [...folders].some((folder) => path.startsWith(`test/${folder}/`));
}

function select(files, folders) {
  return folders.flatMap((folder) => files.filter((path) => path.startsWith(`test/${folder}/`)));
}

/** The tests of the folder of a source, and what rows say about every method. */
function selectNear(files, source) {
  for (let folder = dirname(source).replace(/^src/, "test"); folder !== "test"; folder = dirname(folder)) {
    const inFolder = files.filter((path) => path.startsWith(`${folder}/`));
    if (inFolder.length > 0)
      return [...inFolder, ...files.filter((path) => /^test\/contract\/(wire-)?rules/.test(path))];
  }
  return files;
}

/** How often ranges of each compiled file were run, by process; a file that none has loaded is not there. */
function readCoverage(root) {
  const ranges = new Map();
  const prefix = pathToFileURL(join(root, OUTPUT, "src")).href;
  for (const name of readdirSync(join(root, COVERAGE))) {
    const { result } = JSON.parse(readFileSync(join(root, COVERAGE, name), "utf8"));
    for (const { url, functions } of result.filter((one) => one.url.startsWith(prefix))) {
      ranges.set(url, [...(ranges.get(url) ?? []), functions.flatMap((one) => one.ranges)]);
    }
  }
  rmSync(join(root, COVERAGE), { recursive: true });
  return ranges;
}

/** Whether the tests that differ have run the place of a fault. */
function isCovered(root, { file, start, end, replacement }) {
  const text = readFileSync(join(root, file), "utf8");
  const [before, after] = [text, text.slice(0, start) + replacement + text.slice(end)].map(transform);
  let place = 0;
  while (before[place] === after[place]) place++;
  const url = pathToFileURL(join(root, OUTPUT, file.replace(/\.ts$/, ".js"))).href;
  return (covered.get(root).get(url) ?? []).some((ranges) => {
    const innermost = ranges
      .filter(({ startOffset, endOffset }) => startOffset <= place && place < endOffset)
      .reduce((one, other) => (other.endOffset - other.startOffset <= one.endOffset - one.startOffset ? other : one));
    return innermost.count > 0;
  });
}

function inject(root, { file, start, end, replacement }) {
  const text = readFileSync(join(root, file), "utf8");
  compile(root, file, text.slice(0, start) + replacement + text.slice(end));
}

function compile(root, file, text) {
  writeFileSync(join(root, OUTPUT, file.replace(/\.ts$/, ".js")), transform(text));
}

function transform(text) {
  return transformSync(text, { loader: "ts", format: "esm", platform: "node", target: "node20" }).code;
}

/**
 * Runs tests until one fails, and returns its name; undefined if all pass.
 *
 * @param coverage where to write which code they run; nowhere unless given
 */
async function run(root, files, coverage) {
  if (files.length === 0) return undefined;
  const shards = [[], []];
  const seconds = [0, 0];
  for (const file of files) {
    const least = seconds[0] <= seconds[1] ? 0 : 1;
    shards[least].push(file);
    seconds[least] += secondsOf(file);
  }
  const describe = pathToFileURL(join(root, "scripts/describe-files.mjs")).href;
  const paths = shards
    .filter((names) => names.length > 0)
    .map((names, i) => {
      const path = join(root, OUTPUT, `shard-${i}.test.mjs`);
      const compiled = (name) => pathToFileURL(join(root, OUTPUT, name.replace(/\.ts$/, ".js"))).href;
      const addresses = Object.fromEntries(names.map((name) => [name, compiled(name)]));
      writeFileSync(
        path,
        `import { describeFiles } from "${describe}";\ndescribeFiles(${JSON.stringify(addresses)});\n`,
      );
      return path;
    });
  const child = spawn(process.execPath, ["--test", "--test-reporter=tap", ...paths], {
    ...{ cwd: root, detached: true, stdio: ["ignore", "pipe", "ignore"] },
    env: { ...process.env, ...(coverage && { NODE_V8_COVERAGE: coverage }) },
  });
  return new Promise((resolve) => {
    let [rest, found] = ["", undefined];
    const stop = (what) => {
      if (found !== undefined) return;
      found = what;
      process.kill(-child.pid, "SIGKILL");
    };
    const timer = setTimeout(() => stop("a test that hangs"), LIMIT_MS);
    child.stdout.on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const [, name] = /^\s*not ok \d+ - (.*)/.exec(line) ?? [];
        if (name !== undefined) stop(name);
      }
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve(found ?? (code === 0 ? undefined : "the process"));
    });
  });
}
