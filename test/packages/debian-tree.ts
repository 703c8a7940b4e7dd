// A root file system of Debian, made once by debootstrap and kept in the temporary directory of the system.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const SUITE = "bookworm";
const CACHE = join(tmpdir(), "arbor-debian");
/** Nothing that runs needs them, and each copy of the tree would have them. */
const NOT_NEEDED = ["var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"];

/** The path of the tree, which nothing may change. */
export async function getDebianTree(): Promise<string> {
  const tree = join(CACHE, SUITE);
  if (existsSync(tree)) return tree;
  mkdirSync(CACHE, { recursive: true });
  const draft = mkdtempSync(join(CACHE, "draft-"));
  try {
    await run("debootstrap", ["--variant=minbase", SUITE, draft], { maxBuffer: 2 ** 26 });
    for (const path of NOT_NEEDED) rmSync(join(draft, path), { recursive: true });
    // Other users must find their way in.
    await run("chmod", ["0755", draft]);
    renameSync(draft, tree);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(tree)) throw error;
  }
  return tree;
}
