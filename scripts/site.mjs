// Builds the documentation as a site, unless the directory has that of the same sources already.
//   node scripts/site.mjs [DIRECTORY]
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/** What the site is made of. */
const SOURCES = [
  "docs",
  "examples",
  "deploy/kubernetes/README.md",
  "site",
  "gen/api.binpb",
  "package.json",
  "src/cli",
  "src/codec",
  "src/transport/http",
  "src/transport/openapi",
  "scripts/site.mjs",
];
const LIBRARIES = ["@11ty/eleventy", "esbuild", "highlight.js", "leven", "minisearch", "stemmer"];

const [out = "dist/site"] = process.argv.slice(2);
const stamp = hashSources();
// Its style is named after the stamp.
if (!existsSync(join(out, "assets", `${stamp}.css`))) buildSite();

// Others may read the directory, or build it, at the same time.
function buildSite() {
  mkdirSync(dirname(out), { recursive: true });
  const fresh = mkdtempSync(`${out}-`);
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const { status } = spawnSync(process.execPath, ["--import", tsx, "site/build.mjs", fresh, stamp], {
    stdio: "inherit",
  });
  if (status !== 0) {
    rmSync(fresh, { recursive: true, force: true });
    process.exit(status ?? 1);
  }
  chmodSync(fresh, 0o755);
  rmSync(out, { recursive: true, force: true });
  renameSync(fresh, out);
}

function hashSources() {
  const hash = createHash("sha256");
  for (const name of LIBRARIES) {
    hash.update(`${name} ${JSON.parse(readFileSync(join("node_modules", name, "package.json"), "utf8")).version}\n`);
  }
  for (const path of SOURCES.flatMap(filesIn)) hash.update(`${path}\n`).update(readFileSync(path));
  return hash.digest("hex").slice(0, 16);
}

function filesIn(path) {
  const entries = path.includes(".") ? undefined : readdirSync(path, { recursive: true, withFileTypes: true });
  if (entries === undefined) return [path];
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}
