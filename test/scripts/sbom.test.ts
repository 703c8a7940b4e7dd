// The bill of materials and the list of licences.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { spawnSync } from "../support/child-process.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

interface Lock {
  readonly packages: Record<
    string,
    { name?: string; license?: string; dev?: boolean; devOptional?: boolean; version?: string; link?: boolean }
  >;
}

/** A folder with the manifests of the project, changed by `change`. */
function copyManifests(change: (lock: Lock) => void = () => {}): string {
  const root = tempDir();
  cpSync(join(PROJECT, "package.json"), join(root, "package.json"));
  const lock = JSON.parse(readFileSync(join(PROJECT, "package-lock.json"), "utf8")) as Lock;
  change(lock);
  writeFileSync(join(root, "package-lock.json"), JSON.stringify(lock));
  mkdirSync(join(root, "docs"));
  return root;
}

function run(root: string, ...args: readonly string[]) {
  const script = join(PROJECT, "scripts", "sbom.mjs");
  return spawnSync(process.execPath, [script, "--root", root, ...args], { encoding: "utf8", maxBuffer: 2 ** 26 });
}

test("the bill has the same bytes in any folder, and follows the schema of CycloneDX", async () => {
  const [here, there] = [run(PROJECT), run(copyManifests())];
  assert.equal(here.status, 0, here.stderr);
  assert.equal(here.stdout, there.stdout);
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot5);
  assert.equal(await validator.validate(here.stdout), null);
  const spoilt = here.stdout.replace('"type": "library"', '"type": "planted"');
  assert.notEqual(await validator.validate(spoilt), null);
});

/** Dependencies of development that the build puts into the console. */
const IN_CONSOLE = ["react", "react-dom", "scheduler", "@base-ui/react", "@floating-ui/dom", "wouter", "regexparam"];
/** Those that it does not. */
const OUTSIDE = ["@types/react", "typescript", "esbuild", "playwright-core"];

test("the bill has every production dependency of the lock file with its hash and licence, and what the console has", () => {
  interface Component {
    readonly name: string;
    readonly version: string;
    readonly purl: string;
    readonly hashes?: readonly unknown[];
    readonly licenses?: readonly unknown[];
  }
  const { components } = JSON.parse(run(PROJECT).stdout) as { components: readonly Component[] };
  const { packages } = JSON.parse(readFileSync(join(PROJECT, "package-lock.json"), "utf8")) as Lock;
  const expected = new Set<string>();
  for (const [path, { name, dev, devOptional, version, link }] of Object.entries(packages)) {
    if (!path.includes("node_modules/") || link || dev || (devOptional && /types/.test(path))) continue;
    expected.add(`${name ?? path.replace(/^.*node_modules\//, "")}@${version}`);
  }
  const found = new Set(components.map(({ name, version }) => `${name}@${version}`));
  assert.deepEqual(
    [...expected].filter((one) => !found.has(one)),
    [],
  );
  const bundled = [...found].filter((one) => !expected.has(one)).map((one) => one.replace(/@[^@]*$/, ""));
  assert.deepEqual(
    IN_CONSOLE.filter((name) => !bundled.includes(name)),
    [],
  );
  assert.deepEqual(
    OUTSIDE.filter((name) => bundled.includes(name)),
    [],
  );
  assert.ok(bundled.length < 50, bundled.join());
  // The driver for Node 20 needs it, which is optional, and tools of development do.
  assert.ok(components.some(({ purl }) => purl.startsWith("pkg:npm/semver@")));
  // What the driver of PostgreSQL needs, its types need as well: that makes none of it a dependency of development.
  assert.ok(components.some(({ purl }) => purl.startsWith("pkg:npm/pg-protocol@")));
  for (const { purl, hashes = [], licenses = [] } of components) {
    assert.ok(hashes.length > 0 && licenses.length > 0, purl);
  }
});

test("docs/licences.md is that of the lock file", () => {
  const root = copyManifests();
  const { status, stderr } = run(root, "--licences");
  assert.equal(status, 0, stderr);
  const written = readFileSync(join(root, "docs", "licences.md"), "utf8");
  assert.equal(
    written,
    readFileSync(join(PROJECT, "docs", "licences.md"), "utf8"),
    "run npm run -s sbom -- --licences",
  );
});

for (const licence of ["GPL-3.0-only", "MIT AND GPL-3.0-only", "see the file", undefined]) {
  test(`a dependency under ${licence ?? "no licence"} is rejected`, () => {
    const root = copyManifests(({ packages }) => {
      const jose = packages["node_modules/jose"];
      assert.ok(jose);
      if (licence === undefined) delete jose.license;
      else jose.license = licence;
    });
    const { status, stderr } = run(root, "--licences");
    assert.equal(status, 1);
    assert.match(stderr, /^jose \S+: the licence .* is not accepted$/m);
  });
}
