import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];
process.once("exit", () => {
  for (const directory of made) rmSync(directory, { recursive: true, force: true });
});

/** A new empty directory that goes away with the process. */
export function tempDir(): string {
  const directory = mkdtempSync(join(tmpdir(), "arbor-test-"));
  made.push(directory);
  return directory;
}
