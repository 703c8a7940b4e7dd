// What every proto says of Go: a package of one module, whose path and name follow from its protobuf package.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { PROJECT } from "../support/project.js";

it("every proto names its Go package by the rule of docs/stubs.md", () => {
  const root = join(PROJECT, "proto");
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".proto"));
  assert.ok(files.length > 50);
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8");
    const parts = /^package ([\w.]+);$/m.exec(text)?.[1]?.split(".") ?? [];
    const [before = "", last = ""] = parts.slice(-2);
    const name = /^v\d/.test(last) ? before + last : last;
    const said = [...text.matchAll(/^option go_package = "(.*)";$/gm)].map(([, value]) => value);
    assert.deepEqual(said, [`arbor-platform/gen/${parts.join("/")};${name}`], file);
  }
});
