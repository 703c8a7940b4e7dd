// Writes to a row that another request has deleted meanwhile: they store nothing, and no list or total changes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import type { ListQuery } from "../../src/store/lists/query.js";
import { repoKind } from "../../src/store/registry/repos.js";
import { tagKind } from "../../src/store/registry/tags.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import type { Tx } from "../../src/store/transaction.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../support/rows.js";
import { memoryDir } from "../support/temp-dir.js";
import { repoRow, tagRow } from "./registry-suite.js";
import { tableOf } from "./table-of.js";

const root = rootUid(1);
const identity = identityRow(childUid(root, 1));
const role = roleRow(childUid(root, 2), { groupUid: root });
const repo = repoRow(childUid(root, 3));
const tag = tagRow(6, { repoUid: repo.uid });
const gone = childUid(root, 99);

let store: Store;
before(async () => {
  store = openSqlite({ directory: memoryDir() });
  await store.write(async (tx) => {
    await tx.table(groupKind).insert(groupRow(root));
    await tx.table(identityKind).insert(identity);
    await tx.table(roleKind).insert(role);
    await tx.table(roleBindingKind).insert(bindingRow(childUid(root, 4), identity.uid, role.uid));
    await tx.table(repoKind).insert(repo);
    await tx.table(tagKind).insert(tag);
  });
});
after(() => store.close());

const query: ListQuery = {
  ...{ visible: [root], filter: {}, order: { field: "name", descending: false }, limit: 10, skip: 0 },
};
const kinds = ["groups", "identities", "roles", "roleBindings", "repos", "tags"] as const;

const listAll = () =>
  store.read(async (tx) => {
    const found: [string, number, readonly string[]][] = [];
    for (const kind of kinds) {
      const order = kind === "roleBindings" ? { field: "created_at", descending: false } : query.order;
      const { rows, total } = await tableOf(tx, kind).list({ ...query, order });
      found.push([kind, total, rows.map(({ uid }) => uid)]);
    }
    return found;
  });

const writes: Readonly<Record<string, (tx: Tx) => unknown>> = {
  "an update of a group": (tx) => tx.table(groupKind).update(gone, { name: "late" }, 2_000),
  "an update of an identity": (tx) => tx.table(identityKind).update(gone, { name: "late" }, 2_000),
  "a deletion of an identity": (tx) => tx.table(identityKind).delete(gone),
  "an update of a role": (tx) => tx.table(roleKind).update(gone, { name: "late" }, 2_000),
  "a deletion of a role": (tx) => tx.table(roleKind).delete(gone),
  "a deletion of a binding": (tx) => tx.table(roleBindingKind).delete(gone),
  "a replacement of a repo": (tx) => tx.table(repoKind).replace({ ...repo, uid: gone, name: "late" }),
  "a deletion of a repo": (tx) => tx.table(repoKind).delete(gone),
  "a replacement of a tag": (tx) => tx.table(tagKind).replace({ ...tag, uid: gone, name: "late" }),
  "a deletion of a tag": (tx) => tx.table(tagKind).delete(gone),
};

for (const [what, write] of Object.entries(writes)) {
  test(`${what} that is gone stores nothing`, async () => {
    const present = await listAll();
    assert.ok(present.every(([, total]) => total > 0));
    assert.equal(await store.write(async (tx) => write(tx)), undefined);
    assert.deepEqual(await listAll(), present);
  });
}
