// scripts/links.mjs, on a small tree with planted mistakes.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { spawnSync } from "../support/child-process.js";

test("links to pages and headings that do not exist are found", () => {
  const found = run({
    "docs/page.md":
      "# Page tokens\n\n## `a` and *b*!\n\n[a](#page-tokens) [b](#a-and-b) [c](#none) [d](other.md) [e](https://x)\n",
    "src/a.ts": "// docs/page.md#page-tokens, docs/page.md#tokens and docs/none.md\n",
    "README.md": "[docs](docs/page.md#a-and-b)\n\n`src/a.ts`, `src/b.ts`\n",
  });
  assert.deepEqual(found, {
    status: 1,
    lines: [
      "README.md:3: src/b.ts",
      "docs/page.md:5: docs/page.md#none",
      "docs/page.md:5: docs/other.md",
      "src/a.ts:1: docs/page.md#tokens",
      "src/a.ts:1: docs/none.md",
    ],
  });
});

function run(files: Record<string, string>): { status: number | null; lines: string[] } {
  const root = mkdtempSync(join(tmpdir(), "arbor-links-"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [join("scripts", "links.mjs"), "--root", root], {
    encoding: "utf8",
  });
  rmSync(root, { recursive: true });
  // The last line tells a script that came to its end from one that failed.
  const lines = stdout.split("\n").filter((line) => line !== "");
  assert.match(lines.pop() ?? "", /^links: \d+ lead nowhere$/, stderr);
  return { status, lines };
}
