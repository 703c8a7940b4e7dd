import assert from "node:assert/strict";
import { test } from "node:test";
import { isRepoName, parseRepoPath } from "../../src/registry/oci/repo-path.js";
import { measureLeastProcessorMs } from "../support/stopwatch.js";

const ROOT = "a".repeat(40);
const CHILD = `${ROOT}/${"b".repeat(16)}`;

const paths: readonly (readonly [path: string, org: string | undefined, repo?: string])[] = [
  [`${ROOT}/app`, ROOT, "app"],
  [`${CHILD}/app`, CHILD, "app"],
  [`${CHILD}/${"c".repeat(16)}`, CHILD, "c".repeat(16)],
  ["example.org/app", "example.org", "app"],
  ["example.org/a.b_c__d---e", "example.org", "a.b_c__d---e"],
  [`${ROOT}/${"a".repeat(128)}`, ROOT, "a".repeat(128)],
  ["", undefined],
  ["app", undefined],
  [ROOT, undefined],
  ["/app", undefined],
  [`${ROOT}/`, undefined],
  [`${ROOT}//app`, undefined],
  [`${ROOT}/child/app`, undefined],
  [`${ROOT}/${"b".repeat(15)}/app`, undefined],
  ["example.org/child/app", undefined],
  [`${ROOT.toUpperCase()}/app`, undefined],
  [`${ROOT}/App`, undefined],
  [`${ROOT}/..`, undefined],
  [`${ROOT}/a..b`, undefined],
  [`${ROOT}/a___b`, undefined],
  [`${ROOT}/-a`, undefined],
  [`${ROOT}/a-`, undefined],
  [`${ROOT}/a b`, undefined],
  [`${ROOT}/a\n`, undefined],
  [`${ROOT}/a%2fb`, undefined],
  [`${ROOT}/é`, undefined],
  [`${ROOT}/${"a".repeat(129)}`, undefined],
  [`${ROOT}${`/${"b".repeat(16)}`.repeat(13)}/app`, undefined],
];

for (const [path, org, repo] of paths) {
  test(`${org === undefined ? "no repo has" : "a repo may have"} the path ${JSON.stringify(path.slice(0, 70))}`, () => {
    assert.deepEqual(parseRepoPath(path), org === undefined ? undefined : { org, repo });
  });
}

test("a long invalid name is rejected in linear time", () => {
  const ms = measureLeastProcessorMs(() => assert.equal(isRepoName(`${"a-".repeat(63)}!`), false));
  assert.ok(ms < 50, `${ms} ms`);
});
