// The software bill of materials of the package: its production dependencies as the lock file has them, with their
// hashes and licences, in CycloneDX 1.5. The same lock file gives the same bytes.
//
//   npm run -s sbom [-- --licences]
//
// Prints it. --licences writes docs/licences.md instead, and fails if a licence is not accepted.
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import satisfies from "spdx-satisfies";

/** Licences that ask for their texts to be kept and nothing more. */
const ACCEPTED = ["0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"];
const HEADER = `# Licences of dependencies

The packages that an installation may contain, including those that only Node 20 needs. \`npm run -s sbom -- --licences\`
writes this page from the lock file. Each package has one of the licences ${ACCEPTED.join(", ")}.

| Package | Version | Licence |
|---|---|---|
`;

const { values } = parseArgs({
  options: { licences: { type: "boolean", default: false }, root: { type: "string", default: "." } },
});
const root = resolve(values.root);
const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
const { "": project } = packages;
// Of what is a dependency of development as well as an optional one, types are not installed without the former.
const TYPES = /\/(?:@types\/[^/]+|[^/]+-types)$/;
const installed = Object.entries(packages)
  .filter(([path, { dev, devOptional }]) => path !== "" && !dev && !(devOptional && TYPES.test(path)))
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
      [refOf(project), new Set(dependenciesOf({ path: "", ...project }))],
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

// As Node finds them: in the folder of the package itself, then in those above.
function* dependenciesOf({ path, dependencies, optionalDependencies }) {
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    for (let folder = path; ; folder = folder.replace(/\/?node_modules\/(?:@[^/]+\/)?[^/]+$/, "")) {
      const found = installed.find((entry) => entry.path === join(folder, "node_modules", name));
      if (found !== undefined) yield refOf(found);
      // Not every optional dependency is in the lock file.
      if (found !== undefined || folder === "") break;
    }
  }
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
