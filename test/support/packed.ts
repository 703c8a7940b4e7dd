import { execFile } from "node:child_process";
import { cpSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { PROJECT } from "./project.js";
import { tempDir } from "./temp-dir.js";

const run = promisify(execFile);

/** What the build and the package are made of; `files` of package.json says what goes in. */
const SOURCES = [
  "src",
  "docs",
  "gen",
  "proto",
  "scripts",
  "site",
  "package.json",
  "tsconfig.json",
  "tsconfig.build.json",
];
const TEXTS = ["README.md", "CHANGELOG.md", "LICENSE"];

/**
 * Packs a copy of the tree, so that no build here meets another one; returns the path of the tarball.
 *
 * @param change changes the copy before it is built
 */
export async function pack(change: (copy: string) => void = () => {}): Promise<string> {
  const copy = tempDir();
  const present = readdirSync(PROJECT);
  for (const name of [...SOURCES, ...TEXTS.filter((text) => present.includes(text))]) {
    cpSync(join(PROJECT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(PROJECT, "node_modules"), join(copy, "node_modules"));
  change(copy);
  await run("npm", ["pack", "--silent"], { cwd: copy });
  const tarball = readdirSync(copy).find((name) => name.endsWith(".tgz"));
  if (tarball === undefined) throw new Error("npm pack made no tarball");
  return join(copy, tarball);
}
