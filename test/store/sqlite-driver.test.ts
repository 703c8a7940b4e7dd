// The choice of the SQLite driver by the version of Node, and that no other module loads a driver.
import assert from "node:assert/strict";
import { cpSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, it } from "node:test";
import { chooseDriver, describeMissingDriver, openDatabase } from "../../src/store/sqlite/driver.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const load = createRequire(import.meta.url);
const LOADER = "src/store/sqlite/driver.ts";

interface Manifest {
  readonly version: string;
}
interface Lock {
  readonly packages: Readonly<
    Record<string, { optional?: boolean; engines?: { node?: string }; gypfile?: boolean } | undefined>
  >;
}

describe("the SQLite driver", () => {
  for (const [node, expected] of [
    ["20.19.0", "better-sqlite3-node20"],
    ["20.20.2", "better-sqlite3-node20"],
    ["21.7.3", "better-sqlite3-node20"],
    ["22.0.0", "better-sqlite3"],
    ["24.15.0", "better-sqlite3"],
    ["26.10.0", "better-sqlite3"],
    ["100.0.0", "better-sqlite3"],
  ] as const) {
    it(`of Node ${node} is ${expected}`, () => assert.equal(chooseDriver(node), expected));
  }

  it("is the one chosen for this Node, and opens a database", () => {
    const { version } = load(`${chooseDriver(process.versions.node)}/package.json`) as Manifest;
    const ofNode20 = process.versions.node.startsWith("20.");
    assert.equal(Number.parseInt(version, 10), ofNode20 ? 12 : 13);
    const db = openDatabase(":memory:");
    assert.equal(db.prepare("SELECT 1").pluck().get(), 1);
    db.close();
    const inUse = Object.keys(load.cache).filter((file) => /\/better-sqlite3(-node20)?\/lib\/database\.js$/.test(file));
    const [used] = inUse.filter((file) => file.includes(`/${chooseDriver(process.versions.node)}/`));
    assert.ok(used, inUse.join());
  });

  it("is imported by the loader alone, in src, tests, benchmarks and scripts", () => {
    const importing = /(?:from|import|import\(|require\(|load\()\s*"better-sqlite3(?:-node20)?"/;
    const files = ["src", "test", "bench", "scripts"].flatMap(sourcesIn);
    assert.ok(files.length > 300, `${files.length} files were found`);
    assert.deepEqual(
      files.filter((file) => importing.test(readFileSync(file, "utf8"))),
      [LOADER],
    );
    // This query builder imports the driver, and opens databases by itself when it is given a path.
    assert.deepEqual(
      files.filter((file) => /from "drizzle-orm\/better-sqlite3"/.test(readFileSync(file, "utf8"))),
      [],
    );
  });

  it("is marked in the lock file: one for Node 20 alone, the other not to be compiled", () => {
    const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as Lock;
    const hint = "npm has written the lock file anew: run node scripts/mark-drivers.mjs";
    const old = packages["node_modules/better-sqlite3-node20"];
    assert.deepEqual([old?.optional, old?.engines], [true, { node: "20.x" }], hint);
    const current = packages["node_modules/better-sqlite3"];
    assert.deepEqual([current?.optional, current?.gypfile], [undefined, false], hint);
  });
});

function sourcesIn(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return sourcesIn(path);
    return /\.(?:ts|mjs|js)$/.test(entry.name) ? [path] : [];
  });
}

const needsNoCompiler =
  chooseDriver(process.versions.node) === "better-sqlite3" && "this version of Node has a driver that is not compiled";
it("a driver that was not compiled, as with `npm ci --ignore-scripts`, is named with what to do", {
  skip: needsNoCompiler,
}, () => {
  const copy = join(tempDir(), "node_modules");
  for (const name of [
    "better-sqlite3-node20/lib",
    "better-sqlite3-node20/package.json",
    "bindings",
    "file-uri-to-path",
  ]) {
    cpSync(join(PROJECT, "node_modules", name), join(copy, name), { recursive: true });
  }
  const Driver = createRequire(join(copy, "x.js"))("better-sqlite3-node20");
  let error: unknown;
  try {
    new Driver(":memory:");
  } catch (thrown) {
    error = thrown;
  }
  const described = describeMissingDriver(error, "better-sqlite3-node20");
  assert.match(
    described?.message ?? String(error),
    /is missing: .* `npm rebuild better-sqlite3-node20`, or use Node 22/,
  );
  // The control: an error of a file is none of the driver.
  assert.throws(() => openDatabase(join(copy, "missing", "file.db")), /directory does not exist/);
});
