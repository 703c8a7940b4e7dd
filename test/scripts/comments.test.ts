// scripts/comments.mjs, on a small tree with planted mistakes.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { spawnSync } from "../support/child-process.js";

test("names of comments that do not exist are found, and those that do are not", () => {
  const found = run({
    "src/kernel/time.ts": "export const now = 1;\n",
    "src/store/open.ts": [
      "// Opens it, as pg/open.ts, kernel/time.ts, src/kernel/time.ts and store/open.ts do, and as close.ts, pg/close.ts do not.",
      "/**",
      " * As {@link open}, {@link Store.close} and {@link $row}, and neither {@link opened} nor {@link Store.open.late}.",
      " * Files such as `*.test.ts`, .ts and https://example.org/x.ts are none of the tree.",
      " */",
      "export const open = (Store: { close(): void }, $row: object) => [Store.close(), $row]; // gone.ts is not read",
      "",
    ].join("\n"),
    "src/store/pg/open.ts": "// The schema of open.ts, not of shut.mjs.\n",
  });
  assert.deepEqual(found, {
    status: 1,
    lines: [
      "src/store/open.ts:1: close.ts",
      "src/store/open.ts:1: pg/close.ts",
      "src/store/open.ts:3: opened",
      "src/store/open.ts:3: Store.open.late",
      "src/store/pg/open.ts:1: shut.mjs",
    ],
  });
});

function run(files: Record<string, string>): { status: number | null; lines: string[] } {
  const root = mkdtempSync(join(tmpdir(), "arbor-comments-"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [join("scripts", "comments.mjs"), "--root", root], {
    encoding: "utf8",
  });
  rmSync(root, { recursive: true });
  const lines = stdout.split("\n").filter((line) => line !== "");
  assert.match(lines.pop() ?? "", /^comments: \d+ names of what does not exist$/, stderr);
  return { status, lines };
}
