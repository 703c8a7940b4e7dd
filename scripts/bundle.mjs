// Bundles the program `dist/main.js` with the libraries that it imports: a start then reads a few files instead of some
// 700. The modules that the compiler wrote stay beside it for programs that import them.
//
// An argument names another folder than `dist`, which has the compiled modules as well. More arguments name other programs
// than `main.ts`: those of the package of the command line (scripts/package-npm.mjs).
//
// Native modules and packages that find files of their own stay outside. A command loads its chunks when it is called.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { build } from "esbuild";

const OUTSIDE = [
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-trace-node",
  "better-sqlite3",
  "better-sqlite3-node20",
  "jq-wasm",
  "oidc-provider",
  "open",
  "pg",
  "re2js",
  "swagger-ui-dist",
];
const CHUNKS = "chunks";
/** What is loaded by commands that open a database, or by the service when it needs it. */
const WITH_SERVICE = [
  /^cli\/host\/(?!serve|config|commands)[^.]*\.ts$/,
  /^store\/(pg\/open|open-snapshot|migrate\/open-sqlite-migration|migrate\/phases)\.ts$/,
];

const src = resolve("src");
const [out = "dist", ...programs] = process.argv.slice(2);
rmSync(join(out, CHUNKS), { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: (programs.length > 0 ? programs : ["main.ts"]).map((program) => join(src, program)),
  outdir: out,
  entryNames: "[name]",
  chunkNames: `${CHUNKS}/[name]-[hash]`,
  bundle: true,
  splitting: true,
  // The names of files in the bundle do not depend on where node_modules is.
  preserveSymlinks: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: "none",
  metafile: true,
  external: OUTSIDE,
  // For the libraries that are CommonJS.
  banner: {
    js: 'import{createRequire as __createRequire}from"node:module";const require=__createRequire(import.meta.url);',
  },
  plugins: [{ name: "arbor", setup: rewriteModules }],
});
writeFileSync(join(out, "bundled-licences.txt"), collectLicences());

function rewriteModules(bundler) {
  bundler.onResolve({ filter: /^#gen\// }, ({ path }) => ({ path: resolve("gen", path.slice("#gen/".length)) }));
  bundler.onLoad({ filter: /\.[cm]?[jt]s$/ }, ({ path }) => {
    const text = readFileSync(path, "utf8");
    const own = path.startsWith(src) ? addService(keepLocation(text, path), path) : text;
    const contents = keepErrorNames(own);
    return contents === text ? undefined : { contents, loader: path.endsWith("ts") ? "ts" : "js" };
  });
}

// A module finds its files from where the compiler wrote it, and chunks are in another folder.
function keepLocation(text, path) {
  if (/import\.meta\.(?!url\b)/.test(text)) throw new Error(`${path}: only import.meta.url is right in a bundle`);
  const compiled = relative(src, path).replace(/\.ts$/, ".js");
  return text.replaceAll("import.meta.url", `new URL(${JSON.stringify(`../${compiled}`)}, import.meta.url).href`);
}

// A module of several commands goes into a chunk for each set of commands that have it, and a start takes half a
// millisecond for each chunk. Commands that open a database have most of the service, so they are given all of it.
function addService(text, path) {
  const service = join(src, "cli/host/serve.ts");
  const isGiven = WITH_SERVICE.some((pattern) => pattern.test(relative(src, path)));
  return isGiven ? `${text}\nimport ${JSON.stringify(service)};\n` : text;
}

// Logs name the classes of errors, and the bundler renames classes.
function keepErrorNames(text) {
  return text.replace(/^(\s*(?:export )?(?:default )?class (\w+) extends \w*Error\s*\{)/gm, '$1 static name = "$2";');
}

// The licences of the libraries ask for their texts to be kept with copies.
function collectLicences() {
  const folders = Object.keys(metafile.inputs).map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]);
  const all = new Set([...folders.filter((folder) => folder !== undefined), ...listLibrariesOfConsole()]);
  return [...all].sort().map(describeLicence).join("\n\n");
}

// Those of the console that was built into the same directory.
function listLibrariesOfConsole() {
  const path = join(out, "console/build.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).libraries : [];
}

function describeLicence(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file === undefined ? "" : `\n\n${readFileSync(join(folder, file), "utf8").trim()}`;
  return `${name} ${version}: ${license}${text}`;
}
