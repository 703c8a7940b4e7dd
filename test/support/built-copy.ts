import { execFile } from "node:child_process";
import { cpSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { PROJECT } from "./project.js";
import { tempDir } from "./temp-dir.js";

const run = promisify(execFile);

/** What the build is made of. */
const SOURCES = ["src", "gen", "scripts", "package.json", "tsconfig.json", "tsconfig.build.json"];

/**
 * Builds a copy of the tree, so that no build here meets another one.
 *
 * @returns the path of the copy; the service is `dist/main.js` in it
 */
export async function buildCopy(): Promise<string> {
  const copy = tempDir();
  for (const name of SOURCES) cpSync(join(PROJECT, name), join(copy, name), { recursive: true });
  symlinkSync(join(PROJECT, "node_modules"), join(copy, "node_modules"));
  // Not through npm, which another Node than the running one may belong to.
  await run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], { cwd: copy });
  await run(process.execPath, ["scripts/copy-assets.mjs"], { cwd: copy });
  return copy;
}
