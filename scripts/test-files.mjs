// Which tests there are.
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Folders of tests that need PostgreSQL, a browser, a container registry, the npm registry or an idle machine. */
export const SEPARATE = ["pg", "pack", "browser", "registry-e2e", "hostile"];

/** The paths of the tests in `directory`, but for those in folders named in `skipped`. */
export function testsIn(directory, skipped) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return skipped.includes(entry.name) ? [] : testsIn(path, skipped);
    return entry.name.endsWith(".test.ts") ? [path] : [];
  });
}
