import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import type { TestContext } from "node:test";

/** Replaces a function of Node's file system until the test ends, also where it was imported by its name. */
export function replaceFs(
  t: TestContext,
  name: "chmodSync" | "existsSync" | "utimesSync",
  replacement: () => unknown,
): void {
  const { mock } = t.mock.method(fs, name, replacement as never);
  syncBuiltinESMExports();
  t.after(() => {
    mock.restore();
    syncBuiltinESMExports();
  });
}
