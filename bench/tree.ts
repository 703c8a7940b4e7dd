// The generated organisation of the benchmarks. It depends only on the number of
// groups, so every run can use the same data directory.

/** A group of the benchmark's tree; times are epoch milliseconds. */
export interface TreeGroup {
  readonly uid: string;
  readonly parentUid: string | null;
  readonly name: string;
  readonly description: string;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** The shape of the tree. */
export interface Tree {
  readonly groups: number;
  /** The root of nearly all groups, three levels deep. */
  readonly root: string;
  /** The number of children of each group above the lowest level: about the cube root of all. */
  readonly fanOut: number;
  /** The number of descendants of the root, and of each group of the first level. */
  readonly belowRoot: number;
  readonly belowFirst: number;
}

/** The main root's number among the numbered groups. */
const ROOT_NUMBER = 1;
/** The number of children of each small root. */
const SMALL_CHILDREN = 4;
const START_MS = Date.UTC(2026, 0, 1);
const YEAR_MS = 365 * 24 * 3600 * 1000;

/** The tree with this total number of groups, at least 20. */
export function buildTree(groups: number): Tree {
  let fanOut = 2;
  while (1 + levels(fanOut + 1) <= groups) fanOut++;
  return { groups, root: rootUid(ROOT_NUMBER), fanOut, belowRoot: levels(fanOut), belowFirst: fanOut + fanOut ** 2 };
}

/** All groups of the tree; the main root and its descendants are in the order of their uids. */
export function* groupsOf(tree: Tree): Generator<TreeGroup> {
  let number = ROOT_NUMBER;
  yield buildGroup(tree.root, null, number++);
  yield* below(tree.root, 3);
  while (number <= tree.groups) {
    const root = rootUid(number);
    yield buildGroup(root, null, number++);
    for (let i = 0; i < SMALL_CHILDREN && number <= tree.groups; i++) {
      yield buildGroup(`${root}/${segment(number)}`, root, number++);
    }
  }

  function* below(parent: string, depth: number): Generator<TreeGroup> {
    const children = Array.from({ length: tree.fanOut }, () => number++).map((n) => ({ n, text: segment(n) }));
    children.sort((a, b) => (a.text < b.text ? -1 : 1));
    for (const { n, text } of children) {
      const uid = `${parent}/${text}`;
      yield buildGroup(uid, parent, n);
      if (depth > 1) yield* below(uid, depth - 1);
    }
  }
}

function levels(fanOut: number): number {
  return fanOut + fanOut ** 2 + fanOut ** 3;
}

function buildGroup(uid: string, parentUid: string | null, number: number): TreeGroup {
  const createTimeMs = START_MS + (mixBits(number ^ 0x5bd1e995) % YEAR_MS);
  return {
    uid,
    parentUid,
    // Names follow neither uids nor times, so that no order comes for free.
    name: `team-${hex(mixBits(number ^ 0x2545f491))}`,
    description: `Group number ${number} of the benchmark, described in a sentence`,
    createTimeMs,
    updateTimeMs: createTimeMs + (mixBits(number ^ 0x7f4a7c15) % 1_000_000),
  };
}

function rootUid(number: number): string {
  return segment(number) + segment(number ^ 0x55555555) + hex(number);
}

// Only the first half depends on the number.
function segment(number: number): string {
  return hex(mixBits(number)) + hex(mixBits(number ^ 0x3c6ef372));
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, "0");
}

// A permutation of the numbers of 32 bits.
function mixBits(number: number): number {
  let h = number | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
