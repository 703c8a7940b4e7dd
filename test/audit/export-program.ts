// The program of docs/operations.md that verifies exports without Arbor.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawnSync } from "../support/child-process.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

/** Reads the program from the document. */
export function readProgram(): string {
  const document = readFileSync(join(PROJECT, "docs", "operations.md"), "utf8");
  return /<!-- verify-chain\.mjs -->\n```js\n([\s\S]*?)```\n/.exec(document)?.[1] ?? assert.fail("no program");
}

/** Runs the program as its reader does. */
export function runProgram(input: string, kids: readonly string[]) {
  const file = join(tempDir(), "verify-chain.mjs");
  writeFileSync(file, readProgram());
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...kids], { input, encoding: "utf8" });
  return { status, stdout, reason: /^Error: (.*)$/m.exec(stderr)?.[1] };
}
