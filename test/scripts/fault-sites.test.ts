// The places of faults that `npm run campaign -- behaviour-faults` draws from.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

interface Site {
  readonly line: number;
  readonly kind: string;
  readonly code: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

const { findFaultSites } = (await import(pathToFileURL(join(PROJECT, "scripts/fault-sites.mjs")).href)) as {
  findFaultSites(root: string, files: readonly string[]): readonly Site[];
};

const SOURCE = `
export function read(text: string, limit: number) {
  if (text === "") return undefined;
  if (text.length > limit) {
    throw new Error("too long");
  }
  if (typeof text !== "string") note(text);
  return { text, length: text.length, ...more };
}
const build = (a: number) => ({ a, nested: { b: a } });
`;

test("places are checks that end a function, comparisons of values, and fields of what is returned", () => {
  const root = tempDir();
  writeFileSync(join(root, "tsconfig.json"), JSON.stringify({ compilerOptions: { noLib: true }, files: ["read.ts"] }));
  writeFileSync(join(root, "read.ts"), SOURCE);
  const sites = findFaultSites(root, ["read.ts"]);
  const faulty = sites.map(({ start, end, replacement }) => SOURCE.slice(0, start) + replacement + SOURCE.slice(end));
  assert.deepEqual(
    sites.map(({ line, kind, code }) => `${line} ${kind}: ${code}`),
    [
      '3 check skipped: text === ""',
      '3 comparison turned: text === ""',
      "4 check skipped: text.length > limit",
      "4 comparison turned: text.length > limit",
      "8 field lost: text",
      "8 field lost: length: text.length",
      "10 field lost: a",
      "10 field lost: nested: { b: a }",
    ],
  );
  const lineOf = (i: number, line: number) => faulty[i]?.split("\n")[line - 1]?.trim();
  assert.equal(lineOf(0, 3), 'if (false && (text === "")) return undefined;');
  assert.equal(lineOf(1, 3), 'if (text !== "") return undefined;');
  assert.equal(lineOf(3, 4), "if (text.length <= limit) {");
  assert.equal(lineOf(5, 8), "return { text,  ...more };");
});
