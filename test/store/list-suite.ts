// Lists of every shape, compared with a sorted and filtered array of the same rows.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { isBelow, isWithin, parentOf } from "../../src/kernel/uidp.js";
import type { ListFilter, ListQuery } from "../../src/store/lists/query.js";
import type { Store } from "../../src/store/store.js";
import type { GroupRow } from "../../src/store/tables/groups.js";
import { childUid, groupRow, rootUid } from "../support/rows.js";
import { chooseScale, sample } from "../support/scale.js";

const [first, second, foreign] = [rootUid(0x10001), rootUid(0x10002), rootUid(0x10003)];
const names = ["a", "a b", "a-b", "a.b", "a_b", "ab", "b", "_", "z9"];

function tree(): GroupRow[] {
  const rows: GroupRow[] = [];
  const add = (uid: string) => {
    const i = rows.length;
    rows.push(
      groupRow(uid, {
        name: names[(i * 7) % names.length] ?? "a",
        createTimeMs: 1_000 + ((i * 31) % 17),
        updateTimeMs: 5_000 + ((i * 13) % 29),
      }),
    );
    return uid;
  };
  for (const root of [first, second, foreign]) {
    add(root);
    for (let a = 1; a <= 4; a++) {
      const child = add(childUid(root, a));
      for (let b = 1; b <= 5; b++) add(childUid(child, b));
    }
    // Deeper than the expression of the statements covers by itself.
    for (let depth = 0, uid = childUid(childUid(root, 4), 5); depth < 4; depth++) uid = add(childUid(uid, 1));
  }
  return rows;
}

const [childA, childB] = [childUid(first, 1), childUid(first, 2)];
const views: Record<string, readonly string[]> = {
  "one root": [first],
  "two roots": [first, second],
  "two subtrees": [childA, childUid(second, 3)],
  "a subtree and a root": [childB, second],
  nothing: [],
};
const filters: Record<string, ListFilter> = {
  none: {},
  "a name": { name: "a_b" },
  "an unused name": { name: "unused" },
  "descendants of a root": { descendantsOf: first },
  "descendants of a child": { descendantsOf: childA },
  "descendants of a leaf": { descendantsOf: childUid(childA, 1) },
  "descendants of a missing group": { descendantsOf: childUid(first, 77) },
  "descendants of an invisible root": { descendantsOf: foreign },
  "children of a root": { childrenOf: first },
  "children of a child": { childrenOf: childB },
  "children of /": { childrenOf: "/" },
  "named children": { childrenOf: first, name: "ab" },
  "named descendants": { descendantsOf: first, name: "ab" },
  "children of a child and descendants of its root": { childrenOf: childA, descendantsOf: first },
  "children of a root and descendants of its child": { childrenOf: first, descendantsOf: childA },
  roots: { inRoot: true },
  "ancestors of a leaf": { ancestorsOf: childUid(childA, 1) },
  "some by uid": { uids: [childA, childUid(foreign, 1), second, childA, rootUid(5)] },
  "by uid and name": { uids: [childA, childB], name: "ab" },
};
const orders = ["uid", "name", "created_at", "updated_at"].flatMap((field) => [
  { field, descending: false },
  { field, descending: true },
]);

/** Registers the suite for a store that holds nothing else under the roots used here. */
export function listSuite(store: () => Store): void {
  describe("lists", () => {
    const rows = tree();
    before(() =>
      store().write(async (tx) => {
        for (const row of rows) await tx.groups.insert(row);
      }),
    );

    // Each view and each filter meets each order; sizes of pages and skips come in turn, but in a campaign.
    for (const [i, [view, visible]] of Object.entries(views).entries()) {
      for (const [j, [filterName, filter]] of Object.entries(filters).entries()) {
        test(`${view}, ${filterName}: every order, in pages of 1, 4 and 50, with and without skip`, async () => {
          for (const [k, order] of orders.entries()) {
            const expected = listExpectedUids(rows, { visible, filter, order });
            for (const limit of sample([1, 4, 50], i + j + k)) {
              const uids = await walk(store(), { visible, filter, order, limit, skip: 0 }, expected.length);
              assert.deepEqual(uids, expected, `${order.field} ${order.descending} by ${limit}`);
            }
            for (const skip of sample([1, 3, expected.length, expected.length + 5], i + j + k)) {
              const page = await store().read((tx) => tx.groups.list({ visible, filter, order, limit: 4, skip }));
              assert.deepEqual(
                page.rows.map(({ uid }) => uid),
                expected.slice(skip, skip + 4),
                `skip ${skip}`,
              );
              assert.equal(page.total, expected.length);
            }
          }
        });
      }
    }

    test("the row of a group is listed at its position, wherever a page of its descendants begins", async () => {
      const root = rootUid(0x10008);
      const below = Array.from({ length: 12 }, (_, i) => groupRow(childUid(root, i + 1), { name: `n${i}` }));
      await store().write(async (tx) => {
        await tx.groups.insert(groupRow(root, { name: "n5" }));
        for (const row of below) await tx.groups.insert(row);
      });
      for (const named of ["", "n0", "n5a", "n99", "z"]) {
        const rows = [groupRow(root, { name: named || "n5" }), ...below];
        await store().write((tx) => tx.groups.update(root, { name: named || "n5" }, 7));
        for (const order of orders.filter(({ field }) => field === "uid" || field === "name")) {
          const query = { visible: [root], filter: {}, order };
          const expected = listExpectedUids(rows, query);
          for (let skip = 0; skip <= expected.length + 1; skip++) {
            const page = await store().read((tx) => tx.groups.list({ ...query, skip, limit: 3 }));
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
        await tx.groups.insert(groupRow(root, { name: "root" }));
        await tx.groups.insert(groupRow(child, { name: "child" }));
        await tx.accountAssociations.insert({ ...association, uid: root, parentUid: null });
        await tx.accountAssociations.insert({ ...association, uid: child, parentUid: root });
      });
      const found = await store().read((tx) => tx.accountAssociations.list(query));
      assert.deepEqual([found.rows.map(({ uid }) => uid), found.total], [[root, child], 2]);
      await store().write((tx) => tx.accountAssociations.delete(root));
      const groups = await store().read((tx) => tx.groups.list(query));
      assert.deepEqual([groups.rows.map(({ uid }) => uid), groups.total], [[child, root], 2]);
    });

    test("a deleted group leaves no list and no total to a group created later", async () => {
      const query = { filter: {}, order: { field: "name", descending: false }, skip: 0, limit: 5 };
      for (let n = 0; n < 3; n++) {
        const root = rootUid(0x10100 + n);
        const [row, child] = [groupRow(root), groupRow(childUid(root, 1), { name: "child" })];
        await store().write(async (tx) => {
          for (const one of [row, child]) await tx.groups.insert(one);
        });
        const list = () => store().read((tx) => tx.groups.list({ ...query, visible: [root] }));
        assert.equal((await list()).total, 2);
        assert.equal(await store().read((tx) => tx.groups.hasChildren(root)), true);
        await store().write((tx) => tx.groups.delete(child.uid));
        assert.equal(await store().read((tx) => tx.groups.hasChildren(root)), false);
        await store().write((tx) => tx.groups.delete(row.uid));
        assert.deepEqual(await list(), { rows: [], next: undefined, total: 0 });
      }
    });

    test("renames, deletions and creations keep lists and totals right", async () => {
      const root = rootUid(0x10009);
      let model = [groupRow(root, { name: "root" })];
      await store().write((tx) => tx.groups.insert(model[0] ?? groupRow(root)));
      let seed = 7;
      const random = (n: number) => {
        seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
        return seed % n;
      };
      for (let step = 0; step < chooseScale(120, 60); step++) {
        const target = model[random(model.length)] ?? groupRow(root);
        const kind = random(3);
        await store().write(async (tx) => {
          if (kind === 0 || model.length < 5) {
            const row = groupRow(childUid(target.uid, 0x100 + step), {
              name: names[step % names.length] ?? "a",
              createTimeMs: step,
            });
            if (row.uid.length > 90) return;
            await tx.groups.insert(row);
            model.push(row);
          } else if (kind === 1) {
            const name = names[random(names.length)] ?? "a";
            const row = await tx.groups.update(target.uid, { name }, 9_000 + step);
            model = model.map((one) => (one.uid === target.uid && row ? row : one));
          } else if (target.uid !== root && !model.some(({ uid }) => isBelow(uid, target.uid))) {
            await tx.groups.delete(target.uid);
            model = model.filter(({ uid }) => uid !== target.uid);
          }
        });
        const order = orders[step % orders.length] ?? { field: "uid", descending: false };
        for (const filter of [{}, { descendantsOf: root }, { childrenOf: target.uid }, { name: "ab" }]) {
          const query = { visible: [root], filter, order };
          const expected = listExpectedUids(model, query);
          assert.deepEqual(
            await walk(store(), { ...query, limit: 3, skip: 0 }, expected.length),
            expected,
            `step ${step}`,
          );
        }
      }
    });
  });
}

// Follows the cursors from the first page to the last and checks the total on each.
async function walk(store: Store, query: ListQuery, total: number): Promise<string[]> {
  const uids: string[] = [];
  let position: ListQuery["after"];
  do {
    const page = await store.read((tx) => tx.groups.list({ ...query, ...(position && { after: position }) }));
    assert.equal(page.total, total, "total");
    assert.ok(page.rows.length <= query.limit);
    assert.ok(page.next === undefined || page.rows.length === query.limit, "a page before the last is full");
    uids.push(...page.rows.map(({ uid }) => uid));
    position = page.next;
  } while (position);
  return uids;
}

function listExpectedUids(
  rows: readonly GroupRow[],
  { visible, filter, order }: Pick<ListQuery, "visible" | "filter" | "order">,
) {
  const column =
    { uid: "uid", name: "name", created_at: "createTimeMs", updated_at: "updateTimeMs" }[order.field] ?? "uid";
  const key = (row: GroupRow) => row[column as "uid" | "name" | "createTimeMs"];
  const admitted = rows.filter(
    (row) =>
      visible.some((top) => isWithin(row.uid, top)) &&
      (filter.name === undefined || row.name === filter.name) &&
      (filter.uids === undefined || filter.uids.includes(row.uid)) &&
      (filter.ancestorsOf === undefined || isBelow(filter.ancestorsOf, row.uid)) &&
      (filter.descendantsOf === undefined || isBelow(row.uid, filter.descendantsOf)) &&
      (filter.childrenOf === undefined || (parentOf(row.uid) ?? "/") === filter.childrenOf) &&
      (!filter.inRoot || parentOf(row.uid) === undefined),
  );
  const ascending = (a: GroupRow, b: GroupRow) => {
    if (key(a) !== key(b)) return key(a) < key(b) ? -1 : 1;
    return a.uid < b.uid ? -1 : 1;
  };
  const sorted = admitted.sort(ascending).map(({ uid }) => uid);
  return order.descending ? sorted.reverse() : sorted;
}
