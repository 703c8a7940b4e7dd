import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  depthOf,
  isBelow,
  isUidp,
  isWithin,
  lineageOf,
  MAX_DEPTH,
  maximalOf,
  parentOf,
  rootOf,
} from "../../src/kernel/uidp.js";
import { childUid, rootUid } from "../support/rows.js";
import { measureLeastProcessorMs } from "../support/stopwatch.js";

const root = "0123456789abcdef0123456789abcdef01234567";
const child = `${root}/89abcdef01234567`;
const grandchild = `${child}/0000000000000000`;
const deepest = [root, ...Array.from({ length: MAX_DEPTH - 1 }, () => "89abcdef01234567")].join("/");

const shapes: readonly { uid: string; valid: boolean; reason: string }[] = [
  { uid: root, valid: true, reason: "a root" },
  { uid: child, valid: true, reason: "one below a root" },
  { uid: grandchild, valid: true, reason: "two below a root" },
  { uid: deepest, valid: true, reason: "as deep as can be" },
  { uid: `${deepest}/89abcdef01234567`, valid: false, reason: "one segment too deep" },
  { uid: "", valid: false, reason: "nothing" },
  { uid: "/", valid: false, reason: "the place above all roots is no uid" },
  { uid: root.slice(1), valid: false, reason: "a root one digit short" },
  { uid: `${root}0`, valid: false, reason: "a root one digit long" },
  { uid: root.toUpperCase(), valid: false, reason: "upper case" },
  { uid: `${root.slice(0, 39)}g`, valid: false, reason: "a letter that is no hex digit" },
  { uid: `${root}/`, valid: false, reason: "a slash behind" },
  { uid: `/${root}`, valid: false, reason: "a slash in front" },
  { uid: `${root}//89abcdef01234567`, valid: false, reason: "an empty segment" },
  { uid: `${root}/${root}`, valid: false, reason: "a root below a root" },
  { uid: "89abcdef01234567", valid: false, reason: "a child without its root" },
  { uid: `${child}0`, valid: false, reason: "a segment one digit long" },
  { uid: `${root}\n`, valid: false, reason: "a line feed behind" },
  { uid: `${root} `, valid: false, reason: "a blank behind" },
  { uid: `${root}\u0000`, valid: false, reason: "NUL behind" },
  { uid: `${root}/%`, valid: false, reason: "a wildcard" },
  { uid: `${root}/..`, valid: false, reason: "dots" },
  { uid: "０".repeat(40), valid: false, reason: "digits of another script" },
];

for (const { uid, valid, reason } of shapes) {
  test(`isUidp: ${reason}: ${valid}`, () => assert.equal(isUidp(uid), valid));
}

test("isUidp of a megabyte of slashes costs nothing", () => {
  const text = `${root}${"/".repeat(1_000_000)}`;
  const ms = measureLeastProcessorMs(() => assert.equal(isUidp(text), false));
  assert.ok(ms < 5, `${ms} ms`);
});

const cases: readonly { uid: string; parent: string | undefined; depth: number; lineage: readonly string[] }[] = [
  { uid: root, parent: undefined, depth: 1, lineage: [root] },
  { uid: child, parent: root, depth: 2, lineage: [root, child] },
  { uid: grandchild, parent: child, depth: 3, lineage: [root, child, grandchild] },
];

for (const { uid, parent, depth, lineage } of cases) {
  test(`parent, root, depth and lineage at depth ${depth}`, () => {
    assert.equal(parentOf(uid), parent);
    assert.equal(rootOf(uid), root);
    assert.equal(depthOf(uid), depth);
    assert.deepEqual(lineageOf(uid), lineage);
  });
}

const lookAlike = `${root.slice(0, 39)}8`;
const relations: readonly { uid: string; ancestor: string; below: boolean; within: boolean; reason: string }[] = [
  { uid: child, ancestor: root, below: true, within: true, reason: "a child" },
  { uid: grandchild, ancestor: root, below: true, within: true, reason: "a grandchild" },
  { uid: root, ancestor: root, below: false, within: true, reason: "itself" },
  { uid: root, ancestor: child, below: false, within: false, reason: "the parent" },
  { uid: childUid(root, 2), ancestor: child, below: false, within: false, reason: "a sibling" },
  { uid: `${lookAlike}/89abcdef01234567`, ancestor: root, below: false, within: false, reason: "below a look-alike" },
  { uid: `${child}0`, ancestor: child, below: false, within: false, reason: "a bare prefix" },
  { uid: `${child}0/1`, ancestor: child, below: false, within: false, reason: "a slash, but one character late" },
  { uid: child, ancestor: "", below: false, within: false, reason: "nothing is above a root" },
];

for (const { uid, ancestor, below, within, reason } of relations) {
  test(`isBelow and isWithin: ${reason}`, () => {
    assert.equal(isBelow(uid, ancestor), below);
    assert.equal(isWithin(uid, ancestor), within);
  });
}

// Few roots and segments, so that random uids are often related.
const uids = fc
  .tuple(fc.integer({ min: 0, max: 2 }), fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 5 }))
  .map(([first, rest]) => rest.reduce(childUid, rootUid(first)));

const segmentsOf = (uid: string) => uid.split("/");
const isPrefixOf = (a: readonly string[], b: readonly string[]) => a.every((segment, i) => segment === b[i]);

test("property: lineage, parent, root and depth are those of the list of segments", () => {
  fc.assert(
    fc.property(uids, (uid) => {
      const segments = segmentsOf(uid);
      assert.ok(isUidp(uid));
      assert.equal(depthOf(uid), segments.length);
      assert.equal(rootOf(uid), segments[0]);
      assert.equal(parentOf(uid), segments.length === 1 ? undefined : segments.slice(0, -1).join("/"));
      assert.deepEqual(
        lineageOf(uid),
        segments.map((_, i) => segments.slice(0, i + 1).join("/")),
      );
    }),
  );
});

test("property: below means a longer list of segments with the same beginning", () => {
  fc.assert(
    fc.property(uids, uids, (a, b) => {
      const [left, right] = [segmentsOf(a), segmentsOf(b)];
      assert.equal(isBelow(a, b), left.length > right.length && isPrefixOf(right, left));
      assert.equal(isWithin(a, b), isPrefixOf(right, left));
      assert.equal(isWithin(a, b), lineageOf(a).includes(b));
    }),
    { numRuns: 1_000 },
  );
});

test("property: the maximal uids cover all, none covers another, and they are sorted", () => {
  fc.assert(
    fc.property(fc.array(uids, { maxLength: 12 }), (all) => {
      const naive = [...new Set(all)].filter((uid) => !all.some((other) => other !== uid && isWithin(uid, other)));
      assert.deepEqual(maximalOf(all), naive.sort());
    }),
    { numRuns: 1_000 },
  );
});
