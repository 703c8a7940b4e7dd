import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hasBit, toCapabilitySet } from "../../../src/kernel/capability-set.js";
import { isWithin, maximalOf } from "../../../src/kernel/uidp.js";
import { Caller } from "../../../src/pipeline/auth/caller.js";
import type { AccessRow } from "../../../src/store/iam/access.js";
import { childUid, rootUid } from "../../support/rows.js";

const principal = { identityUid: rootUid(9), tokenId: "t", issuedAt: 1, expiresAt: 2 };
const [root, other] = [rootUid(0x10), rootUid(0x11)];
const [child, sibling] = [childUid(root, 1), childUid(root, 2)];
const grandchild = childUid(child, 1);
const lookAlike = `${root.slice(0, 39)}1`;
const [A, B] = [7, 201];

type Grant = readonly [groupUid: string, ...bits: number[]];

function callerOf(grants: readonly Grant[], needed: readonly number[] = [A]): Caller {
  const rows = grants.map(([groupUid, ...bits]): AccessRow => row(groupUid, toCapabilitySet(bits)));
  return new Caller(
    principal,
    needed.map((bit) => ({ bit })),
    rows,
  );
}

function row(groupUid: string | null, capabilities: string | null): AccessRow {
  return {
    identityUid: principal.identityUid,
    notBefore: 0,
    revokeTimeMs: 0,
    revokedTokenId: null,
    keyId: null,
    providerUid: null,
    groupUid,
    roleUid: groupUid === null ? null : rootUid(0x20),
    capabilities,
    pending: false,
    endTimeMs: null,
  };
}

const decisions: readonly {
  grants: readonly Grant[];
  needed?: readonly number[];
  at: string;
  holds: boolean;
  reason: string;
}[] = [
  { grants: [], at: child, holds: false, reason: "no grant" },
  { grants: [[child, A]], at: child, holds: true, reason: "a grant there" },
  { grants: [[root, A]], at: child, holds: true, reason: "a grant at the parent" },
  { grants: [[root, A]], at: grandchild, holds: true, reason: "a grant at the grandparent" },
  { grants: [[child, A]], at: root, holds: false, reason: "a grant below" },
  { grants: [[sibling, A]], at: child, holds: false, reason: "a grant at a sibling" },
  { grants: [[other, A]], at: child, holds: false, reason: "a grant at another root" },
  { grants: [[lookAlike, A]], at: root, holds: false, reason: "a grant at a look-alike" },
  { grants: [[child.slice(0, -1), A]], at: child, holds: false, reason: "a grant at a bare prefix" },
  { grants: [[child, B]], at: child, holds: false, reason: "another capability" },
  { grants: [[child, A - 1, A + 1, A + 4]], at: child, holds: false, reason: "the bits around it" },
  { grants: [[child, A, B]], needed: [A, B], at: child, holds: true, reason: "both in one role" },
  {
    grants: [
      [child, A],
      [child, B],
    ],
    needed: [A, B],
    at: child,
    holds: true,
    reason: "both in two roles",
  },
  {
    grants: [
      [root, A],
      [child, B],
    ],
    needed: [A, B],
    at: child,
    holds: true,
    reason: "one above, one there",
  },
  {
    grants: [
      [root, A],
      [child, B],
    ],
    needed: [A, B],
    at: root,
    holds: false,
    reason: "one there, one below",
  },
  {
    grants: [
      [root, A],
      [child, B],
    ],
    needed: [A, B],
    at: sibling,
    holds: false,
    reason: "one above, one at a sibling",
  },
  { grants: [[child, A]], needed: [A, B], at: child, holds: false, reason: "one of two" },
  { grants: [[child, A]], needed: [A, 256], at: child, holds: false, reason: "a bit that no set can hold" },
  { grants: [], needed: [], at: child, holds: true, reason: "nothing is needed" },
];

for (const { grants, needed = [A], at, holds, reason } of decisions) {
  test(`holds: ${reason}: ${holds}`, () => {
    const capabilities = needed.map((bit) => ({ bit }));
    assert.equal(callerOf(grants).holds(capabilities, at), holds);
  });
}

const odd: readonly { row: AccessRow; reason: string }[] = [
  { row: row(null, null), reason: "an identity without grants" },
  { row: row(child, null), reason: "a binding to a role that is gone" },
  { row: row(null, "f".repeat(64)), reason: "capabilities without a group" },
  { row: row(child, ""), reason: "an empty set" },
  { row: row(child, "F".repeat(64)), reason: "a set nobody wrote so" },
];

for (const { row: one, reason } of odd) {
  test(`odd rows hold nothing: ${reason}`, () => {
    const caller = new Caller(principal, [{ bit: A }], [one]);
    for (const at of [root, child, grandchild]) assert.equal(caller.holds([{ bit: A }], at), false);
    assert.deepEqual(caller.visibleGroups(), []);
  });
}

test("an empty uid is not above everything", () => {
  const caller = new Caller(principal, [{ bit: A }], [row("", "f".repeat(64))]);
  assert.equal(caller.holds([{ bit: A }], root), false);
});

test("bits only a newer version knows change nothing", () => {
  const caller = callerOf([[child, A, 250, 255]]);
  assert.equal(caller.holds([{ bit: A }], child), true);
  assert.equal(caller.holds([{ bit: B }], child), false);
});

const views: readonly {
  grants: readonly Grant[];
  needed?: readonly number[];
  visible: readonly string[];
  reason: string;
}[] = [
  { grants: [], visible: [], reason: "no grant" },
  { grants: [[child, A]], visible: [child], reason: "one group" },
  {
    grants: [
      [child, A],
      [sibling, A],
    ],
    visible: [child, sibling],
    reason: "two groups",
  },
  {
    grants: [
      [child, A],
      [root, A],
    ],
    visible: [root],
    reason: "one within the other",
  },
  {
    grants: [
      [root, A],
      [lookAlike, A],
    ],
    visible: [root, lookAlike].sort(),
    reason: "look-alikes are two",
  },
  { grants: [[child, B]], visible: [], reason: "another capability" },
  {
    grants: [
      [child, A],
      [sibling, B],
    ],
    visible: [child],
    reason: "only where it is held",
  },
  {
    grants: [
      [child, A],
      [child, B],
    ],
    needed: [A, B],
    visible: [child],
    reason: "both by two roles",
  },
  {
    grants: [
      [root, A],
      [child, B],
    ],
    needed: [A, B],
    visible: [child],
    reason: "one above: from where both hold",
  },
  {
    grants: [
      [child, A],
      [sibling, B],
    ],
    needed: [A, B],
    visible: [],
    reason: "one each at siblings",
  },
  {
    grants: [
      [root, A],
      [child, B],
      [grandchild, A, B],
    ],
    needed: [A, B],
    visible: [child],
    reason: "the highest of all",
  },
  {
    grants: [
      [root, B],
      [other, A],
    ],
    visible: [other],
    reason: "another root",
  },
];

for (const { grants, needed = [A], visible, reason } of views) {
  test(`visible groups: ${reason}`, () => {
    assert.deepEqual(callerOf(grants, needed).visibleGroups(), visible);
  });
}

test("a token with a cap is good for what both the cap and a grant contain", () => {
  const limit = { cap: toCapabilitySet([A]) };
  const caller = new Caller({ ...principal, limit }, [{ bit: B }], [row(child, toCapabilitySet([A, B]))]);
  assert.equal(caller.holds([{ bit: A }], grandchild), true);
  assert.equal(caller.holds([{ bit: B }], grandchild), false);
  assert.equal(caller.rightsAt(child), toCapabilitySet([A]));
  assert.deepEqual(caller.visibleGroups(), []);
});

test("a token for some groups counts a grant above one of them there, and no other grant", () => {
  const limit = { scope: [child, other] };
  const rows = [root, grandchild].map((uid) => row(uid, toCapabilitySet([A])));
  const caller = new Caller({ ...principal, limit }, [{ bit: A }], rows);
  assert.deepEqual(caller.visibleGroups(), [child]);
  for (const uid of [root, sibling, other]) assert.equal(caller.holds([{ bit: A }], uid), false);
  const below = new Caller({ ...principal, limit }, [{ bit: A }], [row(grandchild, toCapabilitySet([A]))]);
  assert.equal(below.holds([{ bit: A }], grandchild), false);
});

test("for people of an organisation's own provider only grants within that organisation count", () => {
  const rows = [root, grandchild, other].map((uid) => row(uid, toCapabilitySet([A])));
  const createFor = (providerUid: string | null) =>
    new Caller(
      principal,
      [{ bit: A }],
      rows.map((one) => ({ ...one, providerUid })),
    );
  assert.deepEqual(createFor(childUid(root, 9)).visibleGroups(), [root]);
  assert.equal(createFor(childUid(root, 9)).holds([{ bit: A }], other), false);
  assert.deepEqual(createFor(null).visibleGroups(), [root, other]);
});

test("among many grants those above count as well", () => {
  const many = Array.from({ length: 40 }, (_, i): Grant => [childUid(other, i + 1), B]);
  const caller = callerOf([...many, [root, A], [child, B]]);
  assert.equal(caller.holds([{ bit: A }, { bit: B }], grandchild), true);
  assert.equal(caller.holds([{ bit: B }], childUid(childUid(other, 1), 1)), true);
  assert.equal(caller.holds([{ bit: A }], other), false);
  assert.equal(caller.holds([{ bit: B }], root), false);
  assert.equal(caller.rightsAt(grandchild), toCapabilitySet([A, B]));
  assert.equal(caller.rightsAt(sibling), toCapabilitySet([A]));
});

// Few groups and bits, so that grants meet often.
const uids = fc
  .tuple(fc.nat(1), fc.array(fc.nat(1), { maxLength: 4 }))
  .map(([first, rest]) => rest.reduce(childUid, rootUid(first)));
const grantsOf = fc.array(
  fc.tuple(uids, fc.uniqueArray(fc.nat(3), { maxLength: 3 })).map(([uid, bits]): Grant => [uid, ...bits]),
  { maxLength: 8 },
);
const neededOf = fc.uniqueArray(fc.nat(3), { minLength: 1, maxLength: 3 });

test("property: decisions and visible groups agree with a model that walks up the tree", () => {
  fc.assert(
    fc.property(grantsOf, neededOf, uids, (grants, needed, at) => {
      const caller = callerOf(grants, needed);
      const model = (uid: string) =>
        needed.every((bit) =>
          grants.some(([group, ...bits]) => isWithin(uid, group) && hasBit(toCapabilitySet(bits), bit)),
        );
      assert.equal(
        caller.holds(
          needed.map((bit) => ({ bit })),
          at,
        ),
        model(at),
      );
      const visible = caller.visibleGroups();
      assert.deepEqual(visible, maximalOf(visible), "none within another");
      assert.equal(
        visible.some((top) => isWithin(at, top)),
        model(at),
        "a list shows what a get allows",
      );
    }),
    { numRuns: 3_000 },
  );
});
