// Lists of groups in cases that random ones seldom meet; those are in list-oracle.ts.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { accountAssociationKind } from "../../src/store/iam/account-associations.js";
import { type GroupRow, groupKind } from "../../src/store/iam/groups.js";
import type { ListQuery } from "../../src/store/lists/query.js";
import type { Store } from "../../src/store/store.js";
import { childUid, groupRow, rootUid } from "../support/rows.js";

const orders = ["uid", "name"].flatMap((field) => [
  { field, descending: false },
  { field, descending: true },
]);

/** Registers the suite for a store that holds nothing else under the roots used here. */
export function listSuite(store: () => Store): void {
  describe("lists", () => {
    test("the row of a group is listed at its position, wherever a page of its descendants begins", async () => {
      const root = rootUid(0x10008);
      const below = Array.from({ length: 12 }, (_, i) => groupRow(childUid(root, i + 1), { name: `n${i}` }));
      await store().write(async (tx) => {
        await tx.table(groupKind).insert(groupRow(root, { name: "n5" }));
        for (const row of below) await tx.table(groupKind).insert(row);
      });
      for (const named of ["", "n0", "n5a", "n99", "z"]) {
        const rows = [groupRow(root, { name: named || "n5" }), ...below];
        await store().write((tx) => tx.table(groupKind).update(root, { name: named || "n5" }, 7));
        for (const order of orders) {
          const query = { visible: [root], filter: {}, order };
          const expected = sortUids(rows, order);
          for (let skip = 0; skip <= expected.length + 1; skip++) {
            const page = await store().read((tx) => tx.table(groupKind).list({ ...query, skip, limit: 3 }));
            assert.deepEqual(
              page.rows.map(({ uid }) => uid),
              expected.slice(skip, skip + 3),
              `${named} ${JSON.stringify(order)} ${skip}`,
            );
          }
        }
      }
    });

    test("deleting a row with the uid of a group, such as its account association, keeps the lists of the group", async () => {
      const root = rootUid(0x10007);
      const child = childUid(root, 1);
      const association = { name: "a", description: "", accounts: {}, createTimeMs: 1, updateTimeMs: 1 };
      const query = { visible: [root], filter: {}, order: { field: "name", descending: false }, skip: 0, limit: 5 };
      await store().write(async (tx) => {
        await tx.table(groupKind).insert(groupRow(root, { name: "root" }));
        await tx.table(groupKind).insert(groupRow(child, { name: "child" }));
        await tx.table(accountAssociationKind).insert({ ...association, uid: root, parentUid: null });
        await tx.table(accountAssociationKind).insert({ ...association, uid: child, parentUid: root });
      });
      const found = await store().read((tx) => tx.table(accountAssociationKind).list(query));
      assert.deepEqual([found.rows.map(({ uid }) => uid), found.total], [[root, child], 2]);
      await store().write((tx) => tx.table(accountAssociationKind).delete(root));
      const groups = await store().read((tx) => tx.table(groupKind).list(query));
      assert.deepEqual([groups.rows.map(({ uid }) => uid), groups.total], [[child, root], 2]);
    });

    test("a deleted group leaves no list and no total to a group created later", async () => {
      const query = { filter: {}, order: { field: "name", descending: false }, skip: 0, limit: 5 };
      for (let n = 0; n < 3; n++) {
        const root = rootUid(0x10100 + n);
        const [row, child] = [groupRow(root), groupRow(childUid(root, 1), { name: "child" })];
        await store().write(async (tx) => {
          for (const one of [row, child]) await tx.table(groupKind).insert(one);
        });
        const list = () => store().read((tx) => tx.table(groupKind).list({ ...query, visible: [root] }));
        assert.equal((await list()).total, 2);
        assert.deepEqual(await store().read((tx) => tx.table(groupKind).findUidsWhere("parentUid", root)), [child.uid]);
        await store().write((tx) => tx.table(groupKind).delete(child.uid));
        assert.deepEqual(await store().read((tx) => tx.table(groupKind).findUidsWhere("parentUid", root)), []);
        await store().write((tx) => tx.table(groupKind).delete(row.uid));
        assert.deepEqual(await list(), { rows: [], next: undefined, total: 0 });
      }
    });
  });
}

function sortUids(rows: readonly GroupRow[], { field, descending }: ListQuery["order"]): string[] {
  const key = (row: GroupRow) => (field === "name" ? row.name : row.uid);
  const compare = (a: GroupRow, b: GroupRow) => ((key(a) === key(b) ? a.uid < b.uid : key(a) < key(b)) ? -1 : 1);
  const uids = [...rows].sort(compare).map(({ uid }) => uid);
  return descending ? uids.reverse() : uids;
}
