import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { definitions } from "../../../src/app/definitions.js";
import { groups } from "../../../src/iam/groups/group.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { guardDelete } from "../../../src/pipeline/resource/delete.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import type { Tx } from "../../../src/store/transaction.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../../support/rows.js";
import { tempDir } from "../../support/temp-dir.js";

const group = rootUid(1);
const someone = rootUid(2);
const role = rootUid(3);
const put: Record<string, (tx: Tx) => unknown> = {
  groups: (tx) => tx.groups.insert(groupRow(childUid(group, 1))),
  identities: (tx) => tx.identities.insert(identityRow(childUid(group, 2))),
  roles: (tx) => tx.roles.insert(roleRow(childUid(group, 3), { groupUid: group })),
  "role bindings": (tx) => tx.roleBindings.insert(bindingRow(childUid(group, 4), someone, role)),
  "the binding it came with": (tx) =>
    tx.roleBindings.insert(bindingRow(childUid(group, 5), someone, role, { automatic: true })),
  "something below another group": (tx) => tx.identities.insert(identityRow(childUid(rootUid(4), 6))),
};

const cases: readonly { below: readonly string[]; named?: string }[] = [
  { below: [] },
  { below: ["the binding it came with", "something below another group"] },
  { below: ["groups"], named: "groups" },
  { below: ["identities"], named: "identities" },
  { below: ["roles"], named: "roles" },
  { below: ["role bindings"], named: "role bindings" },
  { below: ["role bindings", "identities"], named: "identities" },
  { below: ["roles", "groups", "identities", "role bindings"], named: "groups" },
];

for (const { below, named } of cases) {
  test(`deleting a group with ${below.join(", ") || "nothing"} below: ${named ?? "allowed"}`, async (t) => {
    const store = openSqlite({ directory: tempDir() });
    t.after(() => store.close());
    await store.write(async (tx) => {
      for (const uid of [group, rootUid(4)]) await tx.groups.insert(groupRow(uid));
      await tx.roles.insert(roleRow(role));
      for (const what of below) await put[what]?.(tx);
    });
    const guard = async () => store.read((tx) => guardDelete(definitions, groups, group, tx, 1_000));
    if (named === undefined) return guard();
    await assert.rejects(guard, (error) => {
      assert.ok(error instanceof ApiError);
      assert.equal(error.code, Code.FailedPrecondition);
      assert.equal(error.message, `Precondition failed: cannot delete group with child ${named}`);
      return true;
    });
  });
}
