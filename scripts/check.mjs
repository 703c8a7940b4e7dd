// Checks the tree in about a minute: lint of protos, freshness of generated
// code, format and lint, words, links, types, and the unit tests (not with
// --no-tests, for when all tests have just run).
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

const bin = (name) => join("node_modules", ".bin", name);
const contract = join("..", "shared", "contract", "check.mjs");

step("buf lint", bin("buf"), ["lint", "proto"]);
const generated = () => snapshot("proto") + snapshot("gen");
const before = generated();
step("generate", process.execPath, ["scripts/gen.mjs"]);
if (generated() !== before) fail("gen/ or a v2 folder of proto/ was stale: commit what `npm run gen` wrote");
step("biome", bin("biome"), ["ci", "--error-on-warnings", "--colors=off", "."]);
step("words", process.execPath, ["scripts/words.mjs"]);
step("links", process.execPath, ["scripts/links.mjs"]);
step("types", bin("tsc"), ["-p", "tsconfig.json"]);
if (!process.argv.includes("--no-tests")) step("tests", process.execPath, ["scripts/test.mjs", "--unit"]);
if (existsSync(contract)) {
  const directory = mkdtempSync(join(tmpdir(), "arbor-image-"));
  const image = join(directory, "api.binpb");
  step("image", bin("buf"), ["build", "-o", image]);
  step("contract", process.execPath, [contract, image]);
  rmSync(directory, { recursive: true });
} else {
  console.log("contract: skipped, the published contract is not here");
}
console.log("check: all good");

function step(name, program, args) {
  const startedAt = performance.now();
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (status !== 0) {
    process.stdout.write(stdout ?? "");
    process.stderr.write(stderr ?? "");
    fail(`${name} failed after ${seconds} s`);
  }
  const summary = name === "tests" ? `, ${stdout.trim().split("\n").at(-1)}` : "";
  console.log(`${name}: ${seconds} s${summary}`);
  if (name === "contract") process.stdout.write(stdout);
}

function fail(reason) {
  console.error(`check: ${reason}`);
  process.exit(1);
}

function snapshot(directory) {
  const files = readdirSync(directory, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile());
  return files
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort()
    .map((file) => `${relative(directory, file)}\n${readFileSync(file, "base64")}`)
    .join("\n");
}
