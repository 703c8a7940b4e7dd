import { execFile } from "node:child_process";
import { cpSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { PROJECT } from "./project.js";
import { tempDir } from "./temp-dir.js";

const run = promisify(execFile);

/** What the build and the package are made of; `files` of package.json says what goes in. */
const SOURCES = [
  "console",
  "src",
  "docs",
  "gen",
  "proto",
  "scripts",
  "site",
  "examples",
  "deploy/kubernetes/README.md",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "tsconfig.build.json",
];
const TEXTS = ["README.md", "CHANGELOG.md", "LICENSE"];

/**
 * Packs the service from a copy of the tree, so that no build here meets another one; returns the path of the tarball.
 *
 * @param change changes the copy before it is built
 */
export async function pack(change: (copy: string) => void = () => {}): Promise<string> {
  const copy = copyTree();
  change(copy);
  await run("npm", ["pack", "--silent"], { cwd: copy });
  const tarball = readdirSync(copy).find((name) => name.endsWith(".tgz"));
  if (tarball === undefined) throw new Error("npm pack made no tarball");
  return join(copy, tarball);
}

/** The packages of a release. */
export interface Packages {
  /** The directory of the tree that they were made from. */
  readonly copy: string;
  /** The scope of their names, such as `@arbor-platform`. */
  readonly scope: string;
  /** The tarballs. */
  readonly client: string;
  readonly cli: string;
}

/** Makes the packages of a release from a copy of the tree, as `npm run package:npm` does. */
export async function packAll(): Promise<Packages> {
  const copy = copyTree();
  const out = join(copy, "packages");
  await run("npm", ["run", "-s", "package:npm", "--", "--out", out], { cwd: copy });
  const { version, config } = JSON.parse(readFileSync(join(copy, "package.json"), "utf8"));
  const pathOf = (name: string) => join(out, `${config.scope.slice(1)}-${name}-${version}.tgz`);
  return { copy, scope: config.scope, client: pathOf("client"), cli: pathOf("cli") };
}

function copyTree(): string {
  const copy = tempDir();
  const present = readdirSync(PROJECT);
  for (const name of [...SOURCES, ...TEXTS.filter((text) => present.includes(text))]) {
    cpSync(join(PROJECT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(PROJECT, "node_modules"), join(copy, "node_modules"));
  return copy;
}
