// scripts/words.mjs and scripts/links.mjs, on small trees with planted mistakes.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { spawnSync } from "../support/child-process.js";

test("a word of the table is found wherever a reader meets it", () => {
  const found = run("words", {
    "src/a.ts": "export function onKeyNews(): void {}\nexport const fine = 1;\n",
    "src/b.ts": "// The store reads\n// whole\n// lists here.\nexport const fine = 1;\n",
    "src/turn-reader.ts": "export const fine = 1;\n",
    "src/wait.mjs": "export const options = { waitForTurn: true };\n",
    "test/a.test.ts": 'test("the newest word counts", () => {});\n',
    "docs/page.md": "# Page\n\nThe upkeep of keys.\n",
    "proto/a.proto": 'syntax = "proto3";\n// All that lies below\n// the group.\nmessage A {}\n',
  });
  assert.deepEqual(found, {
    status: 1,
    lines: [
      'docs/page.md:3: "upkeep"',
      'proto/a.proto:2: "lies below"',
      'src/a.ts:1: "news" in onKeyNews',
      'src/b.ts:2: "whole lists"',
      'src/turn-reader.ts:1: "turn" in turn-reader.ts',
      'src/wait.mjs:1: "turn" in waitForTurn',
      'test/a.test.ts:1: "newest word"',
    ],
  });
});

test("a phrase that describes its subject by images or by what others do is found", () => {
  const found = run("words", {
    "src/a.ts": "// Roles that lie in no group, and one that lies in no\n// organisation.\nexport const fine = 1;\n",
    "src/b.ts": "/** Rejected before anybody looks at it: nobody learns of it. */\nexport const fine = 1;\n",
    "src/c.ts": "/** Told of errors of which the caller learns nothing. */\nexport const fine = 1;\n",
    "src/d.ts": '// A proxy tells us the address.\nexport const unit = "14 us";\n',
    "src/e.ts": 'export const text = "dta is no setting";\n',
  });
  assert.deepEqual(found.lines, [
    'src/a.ts:1: "lie in no"',
    'src/a.ts:1: "lies in no"',
    'src/b.ts:1: "nobody learns"',
    'src/b.ts:1: "anybody looks"',
    'src/c.ts:1: "Told of errors"',
    'src/c.ts:1: "of which the caller learns nothing"',
    'src/d.ts:1: "us"',
    'src/e.ts:1: "is no setting"',
  ]);
});

test("a reference to a document outside the tree is found", () => {
  const found = run("words", {
    "src/a.ts": "// Errors as JSON (spec section 7).\n/* See architecture, section\n * 6. */\nexport const fine = 1;\n",
    "docs/page.md": "RFC 6749, section 5.2, is fine. (spec, section 9)\n",
  });
  assert.deepEqual(found.lines, [
    'docs/page.md:1: "spec, section"',
    'src/a.ts:1: "spec section"',
    'src/a.ts:2: "architecture, section"',
  ]);
});

test("exceptions, other senses and generated protos pass", () => {
  const found = run("words", {
    "CHANGELOG.md": "The upkeep of keys.\n",
    "README.md": "Start with `--behind-proxy`; `last_seen` says when.\n",
    "src/a.ts": [
      "export const behindProxy = true;",
      "const seen = new Set([1]);",
      'export const returned = [seen, "https://example.com/upkeeper"];',
      'export const pattern = /"\\/\\/ upkeep/;',
      "export const comment = `// $`;",
    ].join("\n"),
    "proto/v2/a.proto": "// The upkeep of keys.\n",
    "proto/b.proto": 'option a = "// upkeep";\n',
  });
  assert.deepEqual(found, { status: 0, lines: [] });
});

test("a participle names a value, never a function", () => {
  const found = run("words", {
    "src/a.ts": "const seen = 1;\nconst shown = () => seen;\nexport function missing(): void {}\nshown();\n",
    "src/b.ts": "export function updateLastSeen(): void {}\nexport const isMissing = () => true;\n",
    "src/c.ts": "export const used = 1;\nexport function placedRow(created: () => void): void {}\n",
    "src/d.ts": "export function seedTable(): void {}\nexport function needsSeed(failed: boolean): void {}\n",
  });
  assert.deepEqual(found.lines, [
    'src/a.ts:2: "shown" in shown',
    'src/a.ts:3: "missing" in missing',
    'src/c.ts:2: "placed" in placedRow',
    'src/c.ts:2: "created" in created',
  ]);
});

test("links to pages and headings that do not exist are found", () => {
  const found = run("links", {
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

function run(script: "words" | "links", files: Record<string, string>): { status: number | null; lines: string[] } {
  const root = mkdtempSync(join(tmpdir(), "arbor-words-"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [join("scripts", `${script}.mjs`), "--root", root], {
    encoding: "utf8",
  });
  rmSync(root, { recursive: true });
  // The last line tells a script that came to its end from one that failed. What the compiler's own process writes to
  // stderr as it is stopped says nothing about either.
  const lines = stdout.split("\n").filter((line) => line !== "");
  assert.match(lines.pop() ?? "", /^(?:words: \d+ found|links: \d+ lead nowhere)$/, stderr);
  return { status, lines: lines.map((line) => line.replace(/; write: .*/, "")) };
}
