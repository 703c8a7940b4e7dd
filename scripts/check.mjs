// Checks the tree in about a minute: lint of protos, freshness of generated
// code, format and lint, links, names in comments, types, and the unit tests (not with
// --no-tests, for when all tests have just run).
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { text } from "node:stream/consumers";

const bin = (name) => join("node_modules", ".bin", name);
const contract = join("..", "shared", "contract", "check.mjs");

const pages = ["settings.md", "settings.schema.json", "commands.md", "roles.md"].map((name) => join("docs", name));
const snapshotGenerated = () =>
  snapshot("proto") + snapshot("gen") + pages.map((file) => readFileSync(file, "utf8")).join("");

// What reads proto/ or gen/ waits until they are written anew.
await Promise.all([step("biome", bin("biome"), ["ci", "--error-on-warnings", "--colors=off", "."]), generate()]);
await Promise.all([
  step("types", bin("tsc"), ["-p", "tsconfig.json"]),
  step("types of the console", bin("tsc"), ["-p", "console/tsconfig.json"]),
  step("links", process.execPath, ["scripts/links.mjs"]),
  step("comments", process.execPath, ["scripts/comments.mjs"]),
  step("migrations", process.execPath, ["scripts/gen-migration.mjs", "--check"]),
  checkContract(),
]);
if (!process.argv.includes("--no-tests")) await step("tests", process.execPath, ["scripts/test.mjs", "--unit"]);
console.log("check: all good");

async function generate() {
  await step("buf lint", bin("buf"), ["lint", "proto"]);
  const before = snapshotGenerated();
  await step("generate", process.execPath, ["scripts/gen.mjs"]);
  if (snapshotGenerated() !== before)
    fail("gen/, a v2 folder of proto/ or a generated page of docs/ was stale: commit what `npm run gen` wrote");
}

async function checkContract() {
  if (!existsSync(contract)) {
    console.log("contract: skipped, the published contract is not here");
    return;
  }
  const directory = mkdtempSync(join(tmpdir(), "arbor-image-"));
  const image = join(directory, "api.binpb");
  await step("image", bin("buf"), ["build", "-o", image]);
  process.stdout.write(await step("contract", process.execPath, [contract, image]));
  rmSync(directory, { recursive: true });
}

/** Runs a program, ends this one if that fails, and returns what it wrote. */
async function step(name, program, args) {
  const startedAt = performance.now();
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (status !== 0) {
    process.stdout.write(stdout);
    process.stderr.write(stderr);
    fail(`${name} failed after ${seconds} s`);
  }
  const summary = name === "tests" ? `, ${stdout.trim().split("\n").at(-1)}` : "";
  console.log(`${name}: ${seconds} s${summary}`);
  return stdout;
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
