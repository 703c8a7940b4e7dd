import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PROJECT } from "../support/project.js";

const read = (file: string) => readFileSync(join(PROJECT, file), "utf8");
/** What the builder gets to see: all is ignored but these. */
const visible = new Set([...read(".dockerignore").matchAll(/^!(.+)$/gm)].map(([, path]) => path));
/** What the image is built from: the arguments of COPY but the last, where the source is the checkout. */
const copied = [...read("deploy/container/Containerfile").matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(
  ([, paths = ""]) => paths.split(" "),
);

test("a builder sees what the Containerfile copies from the checkout, and nothing else", () => {
  assert.ok(copied.length > 10, `${copied.length} paths`);
  assert.deepEqual([...visible].sort(), [...new Set(copied)].sort());
});
