// Builds the web console, unless the directory has that of the same sources already.
//   node scripts/console.mjs [DIRECTORY]
//
// Writes `index.html`; under `assets/` scripts and styles, named after their content; beside each file its compressed
// forms; and `build.json`: what it was built from, and the libraries that are in it, for their licences (scripts/bundle.mjs).
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";
import { strippedStubs } from "./strip-options.mjs";

/** What the console is made of. The lock file has the versions of the libraries. */
const SOURCES = ["console", "gen", "package-lock.json", "scripts/console.mjs", "scripts/strip-options.mjs"];
/** Where the service serves the directory. */
const PUBLIC = "/console/";
const COMPRESSED = /\.(?:css|html|js|svg)$/;
/** As in the service: smaller files, and what becomes hardly smaller, have no compressed form. */
const MIN_BYTES = 1024;
const WORTHWHILE = 0.9;

const [out = "dist/console"] = process.argv.slice(2);
const sources = hashSources();
if (readBuild()?.sources !== sources) await buildConsole();

function readBuild() {
  try {
    return JSON.parse(fs.readFileSync(join(out, "build.json"), "utf8"));
  } catch {
    return undefined;
  }
}

// Others may read the directory, or build it, at the same time.
async function buildConsole() {
  fs.mkdirSync(dirname(out), { recursive: true });
  const fresh = fs.mkdtempSync(`${out}-`);
  try {
    const { outputs, inputs } = await bundle(fresh);
    fs.writeFileSync(join(fresh, "index.html"), formatPage(fresh, outputs, copyIcon(fresh)));
    for (const path of filesIn(fresh)) if (COMPRESSED.test(path)) compress(path);
    const folders = Object.keys(inputs).map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]);
    const libraries = [...new Set(folders.filter((folder) => folder !== undefined))].sort();
    fs.writeFileSync(join(fresh, "build.json"), `${JSON.stringify({ sources, libraries }, undefined, 2)}\n`);
    fs.chmodSync(fresh, 0o755);
    fs.rmSync(out, { recursive: true, force: true });
    fs.renameSync(fresh, out);
  } catch (error) {
    fs.rmSync(fresh, { recursive: true, force: true });
    throw error;
  }
}

async function bundle(outdir) {
  const { metafile } = await build({
    entryPoints: ["console/src/main.tsx", "console/src/styles.css"],
    outdir,
    entryNames: "assets/[name]-[hash]",
    chunkNames: "assets/[name]-[hash]",
    assetNames: "assets/[name]-[hash]",
    publicPath: PUBLIC,
    loader: { ".svg": "file" },
    bundle: true,
    splitting: true,
    // The names of files do not depend on where node_modules is.
    preserveSymlinks: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    jsx: "automatic",
    minify: true,
    legalComments: "none",
    metafile: true,
    plugins: [strippedStubs(resolve("gen"))],
  });
  return metafile;
}

function copyIcon(folder) {
  const icon = fs.readFileSync("console/icon.svg");
  const path = join(folder, "assets", `icon-${createHash("sha256").update(icon).digest("hex").slice(0, 8)}.svg`);
  fs.writeFileSync(path, icon);
  return path;
}

// The policy of the page admits no script and no style in it.
function formatPage(folder, outputs, icon) {
  const paths = Object.fromEntries(
    Object.entries(outputs).flatMap(([path, { entryPoint }]) => (entryPoint ? [[basename(entryPoint), path]] : [])),
  );
  const urlOf = (path) => PUBLIC + relative(folder, resolve(path)).replaceAll("\\", "/");
  const lines = [
    `<link rel="icon" href="${urlOf(icon)}">`,
    `<link rel="stylesheet" href="${urlOf(paths["styles.css"])}">`,
    ...listStatic(outputs, paths["main.tsx"]).map((path) => `<link rel="modulepreload" href="${urlOf(path)}">`),
    `<script type="module" src="${urlOf(paths["main.tsx"])}"></script>`,
  ];
  const template = fs.readFileSync("console/index.html", "utf8");
  return template.replace(/^ *<\/head>/m, (end) => lines.map((line) => `    ${line}\n`).join("") + end);
}

/** The chunks that a chunk always loads, which a browser may request before it has read their imports. */
function listStatic(outputs, path, found = new Set()) {
  for (const { path: next, kind } of outputs[path].imports) {
    if (kind !== "import-statement" || found.has(next)) continue;
    found.add(next);
    listStatic(outputs, next, found);
  }
  return [...found];
}

function compress(path) {
  const bytes = fs.readFileSync(path);
  if (bytes.length < MIN_BYTES) return;
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const forms = { br: brotliCompressSync(bytes, { params }), gz: gzipSync(bytes, { level: 9 }) };
  for (const [ending, form] of Object.entries(forms)) {
    if (form.length <= bytes.length * WORTHWHILE) fs.writeFileSync(`${path}.${ending}`, form);
  }
}

function hashSources() {
  const hash = createHash("sha256");
  for (const path of SOURCES.flatMap((source) => (fs.statSync(source).isFile() ? [source] : filesIn(source)))) {
    if (!/(?:\.d\.ts|\.binpb)$|\bnode_modules\b/.test(path)) hash.update(`${path}\n`).update(fs.readFileSync(path));
  }
  return hash.digest("hex").slice(0, 16);
}

function filesIn(directory) {
  return fs
    .readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}
