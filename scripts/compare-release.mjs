// Compares the processor time per call with that of the last release of another version (bench/compare.ts), and of that release
// with itself:
//
//   node scripts/compare-release.mjs [OPTIONS OF bench/compare.ts]
//
// The release is taken from the history of git.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, symlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { extractCommit } from "./checkout.mjs";

const PROJECT = resolve(import.meta.dirname, "..");
const OPTIONS = ["--control", "--starts", "2", "--slices", "8", "--limit", "240"];

const release = findLastRelease();
const scratch = mkdtempSync(join(tmpdir(), "arbor-release-"));
// The benchmark gets the signal too, and ends.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {});
try {
  if (release === undefined)
    console.log("compare-release: left out: the history of git has no release of another version");
  else process.exitCode = compareWith(release);
} finally {
  // What it has started gets the signal too, and may need a moment to end.
  await rm(scratch, { recursive: true, force: true, maxRetries: 10 });
}

function findLastRelease() {
  const { stdout } = spawnSync("git", ["log", "--format=%H %s", "HEAD"], { cwd: PROJECT, encoding: "utf8" });
  const own = JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")).version;
  for (const line of (stdout ?? "").split("\n")) {
    const [, commit, version] = /^(\S+) release: version (\S+)$/.exec(line) ?? [];
    if (commit !== undefined && version !== own) return { commit, version };
  }
  return undefined;
}

function compareWith({ commit, version }) {
  console.log(`compare-release: version ${version}, ${commit}`);
  if (!extractCommit(commit, scratch)) throw new Error("its files cannot be extracted");
  if (isDeepStrictEqual(readPackages(scratch), readPackages(PROJECT))) {
    symlinkSync(join(PROJECT, "node_modules"), join(scratch, "node_modules"));
  } else {
    execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: scratch, stdio: ["ignore", "ignore", "inherit"] });
  }
  const compare = ["--import", "tsx", "bench/compare.ts", "--against", scratch, ...OPTIONS, ...process.argv.slice(2)];
  return spawnSync(process.execPath, compare, { cwd: PROJECT, stdio: "inherit" }).status ?? 1;
}

/** The packages of a lock file, without the project itself. */
function readPackages(checkout) {
  const { "": _, ...packages } = JSON.parse(readFileSync(join(checkout, "package-lock.json"), "utf8")).packages;
  return packages;
}
