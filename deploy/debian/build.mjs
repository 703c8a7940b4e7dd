// Builds the Debian package of a checkout that is built and has its dependencies installed.
//   npm run package:deb [-- --out DIRECTORY] [--package-version VERSION]
// SQLite drivers are compiled code, so the package is for the architecture of this machine. Built on Node 20, it has
// both drivers and runs on 20.19 and newer; built on a newer one, it needs Node 22.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";

const SOURCE = resolve(import.meta.dirname, "../..");
const HOME = "usr/lib/arbor";
const UNITS = "usr/lib/systemd/system";
const DOC = "usr/share/doc/arbor";
const NODE20_DRIVER = "node_modules/better-sqlite3-node20/build/Release/better_sqlite3.node";
const MAINTAINER = `${process.env.DEBFULLNAME ?? "Arbor"} <${process.env.DEBEMAIL ?? "arbor@example.com"}>`;
/** What packages have beside the code that runs. */
const NOT_RUN = [
  /^better-sqlite3(-node20)?\/(deps|src|binding\.gyp)$/,
  /^better-sqlite3-node20\/build\/(?!Release$|Release\/better_sqlite3\.node$)/,
  new RegExp(`^better-sqlite3/prebuilds/(?!linux-${process.arch}\\.node$)`),
  /(^|\/)\.[^/]+$/,
  /\.d\.[cm]?ts$|\.map$/,
];

const { values } = parseArgs({
  options: { out: { type: "string", default: "build" }, "package-version": { type: "string" } },
});
const { version: sourceVersion } = JSON.parse(fs.readFileSync(join(SOURCE, "package.json"), "utf8"));
const version = values["package-version"] ?? sourceVersion;
if (!/^[0-9][0-9A-Za-z.+~]*$/.test(version)) fail(`--package-version: ${version} is no version of a Debian package`);
if (!fs.existsSync(join(SOURCE, "dist/main.js"))) fail("dist/ is not there: run npm run build first");

const stage = fs.mkdtempSync(join(tmpdir(), "arbor-deb-"));
try {
  stageFiles();
  const file = join(resolve(values.out), `arbor_${version}_${architecture()}.deb`);
  fs.mkdirSync(dirname(file), { recursive: true });
  run("dpkg-deb", ["--root-owner-group", "-Zxz", "-z1", "--build", stage, file]);
  console.log(file);
} finally {
  fs.rmSync(stage, { recursive: true, force: true });
}

function stageFiles() {
  for (const name of ["dist", "docs", "gen", "proto", "package.json"]) copy(name, `${HOME}/${name}`);
  for (const directory of listProductionPackages()) copy(directory, `${HOME}/${directory}`);
  fs.mkdirSync(join(stage, "usr/bin"));
  fs.symlinkSync("../lib/arbor/dist/main.js", join(stage, "usr/bin/arbor"));
  for (const unit of ["arbor.service", "arbor@.service"]) copy(`deploy/systemd/${unit}`, `${UNITS}/${unit}`);
  copy("deploy/systemd/postgresql.conf", `${DOC}/examples/postgresql.conf`);
  copy("deploy/debian/arbor.json", "etc/arbor/arbor.json");
  copy("README.md", `${DOC}/README.md`);
  copy("docs/licences.md", `${DOC}/licences.md`);
  // Where people look for it; systems may leave out the files in that directory, and the service serves these.
  fs.symlinkSync("../../../lib/arbor/docs", join(stage, DOC, "docs"));
  copy("dist/bundled-licences.txt", `${DOC}/bundled-licences.txt`);
  copy("deploy/debian/copyright", `${DOC}/copyright`);
  writeChangelog();
  setModes(stage);
  writeControlFiles();
}

// What Debian's tools read is one entry that leads to the changes themselves.
function writeChangelog() {
  const seconds = process.env.SOURCE_DATE_EPOCH;
  const date = (seconds === undefined ? new Date() : new Date(Number(seconds) * 1000)).toUTCString();
  const lines = [
    `arbor (${version}) unstable; urgency=medium`,
    "  * See CHANGELOG.md.gz.",
    ` -- ${MAINTAINER}  ${date.replace("GMT", "+0000")}`,
  ];
  writeCompressed("changelog.gz", `${lines.join("\n\n")}\n`);
  writeCompressed("CHANGELOG.md.gz", fs.readFileSync(join(SOURCE, "CHANGELOG.md")));
}

function writeCompressed(name, content) {
  fs.writeFileSync(join(stage, DOC, name), gzipSync(content, { level: 9 }));
}

function writeControlFiles() {
  const files = listFiles(stage).filter((path) => fs.lstatSync(join(stage, path)).isFile());
  const bytes = files.reduce((sum, path) => sum + fs.lstatSync(join(stage, path)).size, 0);
  const fields = {
    version,
    architecture: architecture(),
    maintainer: MAINTAINER,
    installedSize: String(Math.ceil(bytes / 1024)),
    node: fs.existsSync(join(SOURCE, NODE20_DRIVER)) ? "20.19" : "22",
  };
  const control = fs
    .readFileSync(join(SOURCE, "deploy/debian/control"), "utf8")
    .replace(/\$\{(\w+)\}/g, (_, name) => fields[name]);
  const sums = files.map(
    (path) =>
      `${createHash("md5")
        .update(fs.readFileSync(join(stage, path)))
        .digest("hex")}  ${path}\n`,
  );
  fs.mkdirSync(join(stage, "DEBIAN"), { mode: 0o755 });
  write("control", control);
  write("md5sums", sums.filter((line) => !line.includes("  etc/")).join(""));
  write("conffiles", "/etc/arbor/arbor.json\n");
  for (const script of ["postinst", "prerm", "postrm"]) {
    write(script, fs.readFileSync(join(SOURCE, "deploy/debian", script)), 0o755);
  }
}

function write(name, content, mode = 0o644) {
  const file = join(stage, "DEBIAN", name);
  fs.writeFileSync(file, content);
  fs.chmodSync(file, mode);
}

/** The directories of the packages that run in production, such as `node_modules/pg`. */
function listProductionPackages() {
  const { stdout } = spawnSync("npm", ["ls", "--omit=dev", "--all", "--parseable"], { cwd: SOURCE, encoding: "utf8" });
  const packages = stdout.split("\n").flatMap((path) => {
    const directory = relative(SOURCE, path.trim());
    // A workspace is a link.
    const isPackage = /^node_modules\/(@[^/]+\/)?[^/]+$/.test(directory) && !fs.lstatSync(path.trim()).isSymbolicLink();
    return isPackage ? [directory] : [];
  });
  if (packages.length === 0) fail("node_modules/ is not there: run npm ci first");
  return packages;
}

function copy(from, to) {
  const source = join(SOURCE, from);
  fs.cpSync(source, join(stage, to), { recursive: true, filter: isRun });
}

function isRun(path) {
  const inside = relative(join(SOURCE, "node_modules"), path);
  return inside.startsWith("..") || !NOT_RUN.some((pattern) => pattern.test(inside));
}

function setModes(directory) {
  fs.chmodSync(directory, 0o755);
  for (const path of listFiles(directory)) {
    const file = join(directory, path);
    const stats = fs.lstatSync(file);
    if (stats.isSymbolicLink()) continue;
    fs.chmodSync(file, stats.isDirectory() || path === `${HOME}/dist/main.js` ? 0o755 : 0o644);
  }
}

function listFiles(directory) {
  return fs.readdirSync(directory, { recursive: true }).sort();
}

function architecture() {
  return run("dpkg", ["--print-architecture"]).trim();
}

function run(program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) fail(`${program}: ${error?.message ?? stderr}`);
  return stdout;
}

function fail(reason) {
  console.error(`package:deb: ${reason}`);
  process.exit(1);
}
