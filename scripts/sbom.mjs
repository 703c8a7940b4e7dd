// The software bill of materials of the package: its production dependencies, and those that are bundled into the console, as
// the lock file has them, with their hashes and licences, in CycloneDX 1.5. The same lock file gives the same bytes.
//
//   npm run -s sbom [-- --licences]
//
// Prints it. --licences writes docs/licences.md instead, and fails if a licence is not accepted.
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import satisfies from "spdx-satisfies";

/** Licences that ask for their texts to be kept and nothing more, or for nothing at all. */
const ACCEPTED = ["0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unlicense"];
const HEADER = `# Licences of dependencies

The packages that an installation may contain, including those that only Node 20 needs, and those that are bundled into the
console. \`npm run -s sbom -- --licences\` writes this page from the lock file. Each package has one of the licences ${ACCEPTED.join(", ")}.

| Package | Version | Licence |
|---|---|---|
`;

const { values } = parseArgs({
  options: { licences: { type: "boolean", default: false }, root: { type: "string", default: "." } },
});
const root = resolve(values.root);
const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
const { "": project } = packages;
/** The workspace whose dependencies are bundled. */
const CONSOLE = "console";
// Of what is a dependency of development as well as an optional one, types are not installed without the former.
const TYPES = /\/(?:@types\/[^/]+|[^/]+-types)$/;
const bundled = listBundled();
const installed = Object.entries(packages)
  .filter(([path, { dev, devOptional }]) => bundled.has(path) || (!dev && !(devOptional && TYPES.test(path))))
  .filter(([path, { link }]) => path.includes("node_modules/") && !link)
  .map(([path, entry]) => ({ path, ...entry, name: entry.name ?? nameOf(path) }));
if (values.licences) writeLicences();
else process.stdout.write(`${JSON.stringify(makeBill(), null, 2)}\n`);

function makeBill() {
  // A package may stand in several folders.
  const components = new Map(installed.map((entry) => [refOf(entry), componentOf(entry)]));
  const dependencies = new Map(installed.map((entry) => [refOf(entry), new Set()]));
  for (const entry of installed) for (const ref of dependenciesOf(entry)) dependencies.get(refOf(entry)).add(ref);
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { component: { ...componentOf(project), type: "application" } },
    components: [...components].sort(byFirst).map(([, component]) => component),
    dependencies: [
      [refOf(project), new Set([...dependenciesOf({ path: "", ...project }), ...dependenciesOf(consoleEntry())])],
      ...[...dependencies].sort(byFirst),
    ].map(([ref, dependsOn]) => ({ ref, dependsOn: [...dependsOn].sort() })),
  };
}

function componentOf({ name, version, license, integrity, optional }) {
  const [algorithm, digest] = integrity?.split("-") ?? [];
  return {
    type: "library",
    "bom-ref": refOf({ name, version }),
    name,
    version,
    scope: optional ? "optional" : "required",
    ...(digest && {
      hashes: [{ alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(digest, "base64").toString("hex") }],
    }),
    ...(license && { licenses: [/[ (]/.test(license) ? { expression: license } : { license: { id: license } }] }),
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
  };
}

function* dependenciesOf({ path, dependencies, optionalDependencies }) {
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const found = findPath(path, name);
    const entry = installed.find((one) => one.path === found);
    // Not every optional dependency is in the lock file.
    if (entry !== undefined) yield refOf(entry);
  }
}

// As Node finds it: in the folder of the package itself, then in those above.
function findPath(from, name) {
  for (let folder = from; ; folder = folder.replace(/(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$|^[^/]+$/, "")) {
    const path = join(folder, "node_modules", name);
    if (path in packages) return path;
    if (folder === "") return undefined;
  }
}

/** The paths of what may be bundled into the console: what it depends on, and what that depends on. */
function listBundled() {
  const found = new Set();
  const add = ({ path, dependencies = {} }) => {
    for (const name of Object.keys(dependencies)) {
      const next = findPath(path, name);
      if (next === undefined || found.has(next) || TYPES.test(next)) continue;
      found.add(next);
      add({ path: next, ...packages[next] });
    }
  };
  add(consoleEntry());
  return found;
}

// It depends on them for its development alone, since it is built before it is packed.
function consoleEntry() {
  return { path: CONSOLE, dependencies: packages[CONSOLE]?.devDependencies };
}

function writeLicences() {
  const rejected = installed.filter(({ license }) => !isAccepted(license));
  for (const { name, version, license = "(none)" } of rejected)
    console.error(`${name} ${version}: the licence ${license} is not accepted`);
  if (rejected.length > 0) process.exit(1);
  const lines = installed.map(
    ({ name, version, license }) => `| ${name} | ${version} | ${license.replace(/^\((.*)\)$/, "$1")} |\n`,
  );
  writeFileSync(join(root, "docs", "licences.md"), HEADER + [...new Set(lines)].sort().join(""));
}

function isAccepted(licence) {
  try {
    return satisfies(licence, ACCEPTED);
  } catch {
    // No expression of SPDX.
    return false;
  }
}

function refOf({ name, version }) {
  return `${name}@${version}`;
}

function nameOf(path) {
  return path.replace(/^.*node_modules\//, "");
}

function byFirst([a], [b]) {
  return a < b ? -1 : 1;
}
