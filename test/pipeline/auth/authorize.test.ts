// The decision as the pipeline asks for it, on a real store.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { toCapabilitySet } from "../../../src/kernel/capability-set.js";
import { ApiError, notFound } from "../../../src/kernel/errors.js";
import type { Principal } from "../../../src/kernel/principal.js";
import { MAX_DEPTH } from "../../../src/kernel/uidp.js";
import { authorize, bitOf, type Guard, maskNotFound, notFoundOrDenied } from "../../../src/pipeline/auth/authorize.js";
import { readAuthRule } from "../../../src/pipeline/method-table.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { roleKind } from "../../../src/store/iam/roles.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import type { Store } from "../../../src/store/store.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../../support/rows.js";
import { tempDir } from "../../support/temp-dir.js";
import { declareMethod } from "../declare.js";

const [LIST, CREATE] = [Capability.CAP_IAM_GROUPS_LIST, Capability.CAP_IAM_GROUPS_CREATE];
const issuedAt = 1_800_000_000;

const [root, foreign] = [rootUid(0x10), rootUid(0x20)];
const [child, sibling] = [childUid(root, 1), childUid(root, 2)];
const grandchild = childUid(child, 1);
const lookAlike = `${root.slice(0, 39)}1`;
const deep = Array.from({ length: MAX_DEPTH - 2 }, (_, i) => i).reduce((uid) => childUid(uid, 7), sibling);

const roles = { list: rootUid(0xa1), create: rootUid(0xa2), both: rootUid(0xa3), future: rootUid(0xa4) };
const who = {
  atRoot: rootUid(0xb1),
  atChild: rootUid(0xb2),
  atSibling: rootUid(0xb3),
  atLookAlike: rootUid(0xb4),
  split: rootUid(0xb5),
  listAbove: rootUid(0xb6),
  future: rootUid(0xb7),
  nobody: rootUid(0xb8),
  revoked: rootUid(0xb9),
  gone: rootUid(0xbf),
};
const bindings: readonly [identity: string, role: string, group: string][] = [
  [who.atRoot, roles.both, root],
  [who.atChild, roles.both, child],
  [who.atSibling, roles.both, sibling],
  [who.atLookAlike, roles.both, lookAlike],
  [who.split, roles.list, root],
  [who.split, roles.create, child],
  [who.listAbove, roles.list, root],
  [who.future, roles.future, root],
  [who.revoked, roles.both, root],
  [who.gone, roles.both, root],
];

function guardOf(capabilities: readonly Capability[], unscoped = false): Guard {
  const rule = readAuthRule(
    declareMethod({
      iam: { mode: { case: "enabled", value: { capabilities: [...capabilities], unscoped } } },
      fields: { uid: { scope: true } },
    }),
  );
  assert.ok(rule.mode === "guarded");
  return rule;
}

const request = declareMethod({ fields: { uid: { scope: true } } }).input;
const both = guardOf([CREATE, LIST]);
const list = guardOf([LIST]);

describe("authorize", () => {
  let store: Store;
  before(async () => {
    store = openSqlite({ directory: tempDir() });
    await store.write(async (tx) => {
      for (const uid of [root, foreign, lookAlike, child, sibling, grandchild])
        await tx.table(groupKind).insert(groupRow(uid));
      for (const [name, uid] of Object.entries(who)) {
        if (name === "gone") continue;
        await tx.table(identityKind).insert(identityRow(uid, { notBefore: name === "revoked" ? issuedAt + 1 : 0 }));
      }
      const put = (uid: string, bits: readonly number[]) =>
        tx.table(roleKind).insert(roleRow(uid, { capabilities: toCapabilitySet(bits) }));
      await put(roles.list, [bitOf(LIST)]);
      await put(roles.create, [bitOf(CREATE)]);
      await put(roles.both, [bitOf(LIST), bitOf(CREATE)]);
      await put(roles.future, [254, 255]);
      for (const [i, [identity, role, group]] of bindings.entries()) {
        await tx.table(roleBindingKind).insert(bindingRow(childUid(group, 0x900 + i), identity, role));
      }
    });
  });
  after(() => store.close());

  const decide = async (guard: Guard, by: string | undefined, uid: string, at = issuedAt) =>
    store.read((tx) =>
      authorize(guard, by === undefined ? undefined : principalOf(by, at), create(request, { uid }), tx),
    );

  const needs = "groups.create and groups.list";
  const scoped: readonly { by: keyof typeof who; at: string; allowed: boolean; reason: string }[] = [
    { by: "atRoot", at: root, allowed: true, reason: "there itself" },
    { by: "atRoot", at: child, allowed: true, reason: "one above" },
    { by: "atRoot", at: grandchild, allowed: true, reason: "two above" },
    { by: "atRoot", at: deep, allowed: true, reason: "as deep as can be" },
    { by: "atChild", at: grandchild, allowed: true, reason: "the parent" },
    { by: "atChild", at: root, allowed: false, reason: "the parent of where it holds" },
    { by: "atSibling", at: child, allowed: false, reason: "a sibling of where it holds" },
    { by: "atLookAlike", at: root, allowed: false, reason: "a look-alike of where it holds" },
    { by: "atRoot", at: lookAlike, allowed: false, reason: "a look-alike, the other way" },
    { by: "atRoot", at: foreign, allowed: false, reason: "another organisation" },
    { by: "atRoot", at: rootUid(0x77), allowed: false, reason: "a root that is not there" },
    { by: "atRoot", at: childUid(child, 0x77), allowed: true, reason: "what is not there is for the handler to say" },
    { by: "split", at: child, allowed: true, reason: "two roles hold it together" },
    { by: "split", at: grandchild, allowed: true, reason: "two roles, further up" },
    { by: "split", at: root, allowed: false, reason: "one of two is further down" },
    { by: "split", at: sibling, allowed: false, reason: "one of two is at a sibling" },
    { by: "listAbove", at: child, allowed: false, reason: "one capability of two" },
    { by: "future", at: child, allowed: false, reason: "capabilities this version does not know" },
    { by: "nobody", at: root, allowed: false, reason: "an identity without grants" },
  ];

  for (const { by, at, allowed, reason } of scoped) {
    test(`scoped: ${reason}: ${allowed ? "allowed" : "denied"}`, async () => {
      if (allowed) assert.equal((await decide(both, who[by], at)).uid, who[by]);
      else await assertRejected(decide(both, who[by], at), Code.PermissionDenied, permissionDenied(needs, at));
    });
  }

  const badScopes: readonly { uid: string; rule: string }[] = [
    { uid: "", rule: "is required" },
    ...[
      "/",
      "%",
      `${root}/`,
      root.slice(1),
      rootUid(0xabc).toUpperCase(),
      `${root}/x`,
      `${deep}/${"7".repeat(16)}`,
      "*",
    ].map((uid) => ({ uid, rule: "must be a uid, such as the service assigns" })),
  ];

  for (const { uid, rule } of badScopes) {
    test(`a scope that is no uid: ${uid.length > 50 ? `${uid.length} characters` : uid || "empty"}`, async () => {
      await assertRejected(decide(both, who.atRoot, uid), Code.InvalidArgument, `Invalid argument: uid: uid ${rule}`);
    });
  }

  const unauthenticated: readonly { by: string | undefined; at?: number; reason: string }[] = [
    { by: undefined, reason: "nobody" },
    { by: who.gone, reason: "an identity that is gone, bindings left behind" },
    { by: root, reason: "the uid of a group" },
    { by: roles.both, reason: "the uid of a role" },
    { by: who.revoked, reason: "a token issued before the identity's tokens were revoked" },
    { by: who.revoked, at: issuedAt - 3_600, reason: "a token much older than that" },
  ];

  for (const { by, at, reason } of unauthenticated) {
    for (const [name, guard] of [
      ["scoped", both],
      ["unscoped", guardOf([LIST], true)],
      ["open to any caller", guardOf([], true)],
    ] as const) {
      test(`unauthenticated, ${name}: ${reason}`, async () => {
        const text = "Unauthenticated: authorization: a valid bearer token is required";
        await assertRejected(decide(guard, by, root, at), Code.Unauthenticated, text);
      });
    }
  }

  test("a token issued in the second of the revocation, or later, is good", async () => {
    for (const at of [issuedAt + 1, issuedAt + 2]) {
      assert.equal((await decide(both, who.revoked, root, at)).uid, who.revoked);
    }
  });

  const unscoped: readonly {
    by: keyof typeof who;
    needed: readonly Capability[];
    visible: readonly string[];
    reason: string;
  }[] = [
    { by: "atRoot", needed: [LIST], visible: [root], reason: "all below the root" },
    { by: "atChild", needed: [LIST], visible: [child], reason: "all below a child" },
    { by: "split", needed: [LIST], visible: [root], reason: "the role that holds it" },
    { by: "split", needed: [LIST, CREATE], visible: [child], reason: "where two roles hold all together" },
    { by: "listAbove", needed: [LIST, CREATE], visible: [], reason: "nowhere all" },
    { by: "future", needed: [LIST], visible: [], reason: "capabilities this version does not know" },
    { by: "nobody", needed: [LIST], visible: [], reason: "no grants: an empty view, and no refusal" },
  ];

  for (const { by, needed, visible, reason } of unscoped) {
    test(`unscoped: ${reason}`, async () => {
      assert.deepEqual((await decide(guardOf(needed, true), who[by], "")).visibleGroups(), visible);
    });
  }

  const finds: readonly { by: keyof typeof who; guard: Guard; uid: string; found: boolean; reason: string }[] = [
    { by: "atRoot", guard: both, uid: childUid(root, 0x77), found: true, reason: "reads the parent" },
    { by: "atRoot", guard: both, uid: childUid(child, 0x77), found: true, reason: "reads the parent from further up" },
    { by: "atRoot", guard: list, uid: root, found: false, reason: "a root has no parent" },
    { by: "atChild", guard: both, uid: childUid(child, 0x77), found: true, reason: "reads the parent itself" },
    { by: "atChild", guard: list, uid: child, found: false, reason: "reads what is missing, but not its parent" },
  ];

  for (const { by, guard, uid, found, reason } of finds) {
    test(`what is missing looks ${found ? "missing" : "forbidden"}: ${reason}`, async () => {
      const caller = await decide(guard, who[by], uid);
      const thrown = notFound({ displayName: "group", type: "t" }, uid);
      const seen = maskNotFound(caller, thrown, guard, create(request, { uid }));
      if (found) return assert.equal(seen, thrown);
      assert.ok(seen instanceof ApiError);
      assert.equal(seen.code, Code.PermissionDenied);
      assert.equal(seen.message, permissionDenied(guard.capabilities.map(({ name }) => name).join(" and "), uid));
    });
  }

  test("create rights alone do not tell what exists", async () => {
    const create = guardOf([CREATE]);
    const uid = childUid(child, 0x77);
    const caller = await decide(create, who.split, uid);
    const thrown = notFound({ displayName: "group", type: "t" }, uid);
    // Held at the child; the right to read comes from the root here and makes it visible.
    assert.equal(notFoundOrDenied(caller, uid, thrown, "groups.create"), thrown);
    await store.write((tx) => tx.table(roleBindingKind).delete(childUid(root, 0x904)));
    const without = await decide(create, who.split, uid);
    assert.equal(
      notFoundOrDenied(without, uid, thrown, "groups.create").message,
      permissionDenied("groups.create", uid),
    );
  });

  test("forbidden and missing look alike, to the byte", async () => {
    const [there, notThere] = [foreign, rootUid(0x99)];
    const texts: string[] = [];
    for (const uid of [there, notThere]) {
      await decide(both, who.atRoot, uid).catch((error: Error) => texts.push(error.message.replaceAll(uid, "UID")));
    }
    assert.equal(texts.length, 2);
    assert.equal(texts[0], texts[1]);
  });

  test("other errors of a handler, and those of unscoped methods, stay as they are", async () => {
    const caller = await decide(both, who.atRoot, root);
    const none = create(request, { uid: root });
    for (const thrown of [new TypeError("x"), undefined, new ApiError(Code.Aborted, "ABORTED", "Aborted: x")]) {
      assert.equal(maskNotFound(caller, thrown, both, none), thrown);
    }
    const thrown = notFound({ displayName: "group", type: "t" }, root);
    assert.equal(maskNotFound(caller, thrown, guardOf([LIST], true), none), thrown);
  });
});

test("bits come from the proto; what is no capability has none", () => {
  assert.ok(bitOf(LIST) >= 0);
  assert.throws(() => bitOf(999_999 as Capability), new TypeError("unknown capability 999999"));
});

function principalOf(identityUid: string, at: number): Principal {
  return { identityUid, tokenId: "t", issuedAt: at, expiresAt: at + 3_600 };
}

function permissionDenied(needs: string, uid: string): string {
  return `Permission denied: ${needs} at ${uid} (or it might not exist)`;
}

async function assertRejected(response: Promise<unknown>, code: Code, text: string): Promise<void> {
  await assert.rejects(response, (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.code, code);
    assert.equal(error.message, text);
    return true;
  });
}
