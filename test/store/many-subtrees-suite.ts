// Lists over more subtrees than are read one by one, compared with a sorted and filtered array.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { parentOf } from "../../src/kernel/uidp.js";
import { type GroupRow, groupKind } from "../../src/store/iam/groups.js";
import { type IdentityRow, identityKind } from "../../src/store/iam/identities.js";
import type { ListQuery, Page } from "../../src/store/lists/query.js";
import type { Store } from "../../src/store/store.js";
import { childUid, groupRow, identityRow, rootUid } from "../support/rows.js";
import { isCampaign } from "../support/scale.js";
import { tableOf } from "./table-of.js";

const ROOTS = 330;
/** One of them has more rows than one statement scans. */
const LARGE_ROOT = 7;
const LARGE = 4_300;
const names = ["a", "b", "same", "z"];

interface Model {
  readonly groups: readonly GroupRow[];
  readonly identities: readonly IdentityRow[];
}

// Uids are spread, so that their order is not that of names or times.
const top = (i: number) => rootUid(0x9_0000 + ((i * 7919) % 65_537));

function model(): Model {
  const groups: GroupRow[] = [];
  const identities: IdentityRow[] = [];
  const add = (uid: string) => {
    const i = groups.length;
    groups.push(groupRow(uid, { name: names[(i * 11) % 4] ?? "", createTimeMs: 1_000 + ((i * 31) % 97) }));
  };
  for (let i = 0; i < ROOTS; i++) {
    add(top(i));
    for (let k = 0; k < i % 3; k++) add(childUid(top(i), k));
    // Most roots have none.
    const count = i === LARGE_ROOT ? LARGE : i % 10 === 0 ? 12 : 0;
    for (let k = 0; k < count; k++) {
      identities.push(
        identityRow(childUid(top(i), 0x1000 + k), {
          name: names[(k * 7) % 4] ?? "",
          relation: k % 5,
          createTimeMs: 1_000 + ((k * 17) % 89),
        }),
      );
    }
  }
  return { groups, identities };
}

type Ordered = GroupRow | IdentityRow;
type ListInput = Pick<ListQuery, "visible" | "filter" | "order">;

function listExpectedUids(rows: readonly Ordered[], { visible, filter, order }: ListInput): string[] {
  const tops = new Set(visible);
  const key = (row: Ordered) => ({ uid: row.uid, name: row.name, created_at: row.createTimeMs })[order.field] ?? "";
  const admitted = rows.filter(
    (row) =>
      tops.has(row.uid.slice(0, 40)) &&
      (filter.name === undefined || row.name === filter.name) &&
      (!filter.inRoot || parentOf(row.uid) === undefined) &&
      (filter.equals?.relation === undefined || (row as IdentityRow).relation === filter.equals.relation),
  );
  admitted.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.uid < b.uid ? -1 : 1));
  const sorted = admitted.map(({ uid }) => uid);
  return order.descending ? sorted.reverse() : sorted;
}

const kinds = {
  groups: { filters: [{}, { name: "same" }, { inRoot: true }, { inRoot: true, name: "b" }] },
  identities: {
    filters: [{}, { name: "same" }, { equals: { relation: 3 } }, { name: "a", equals: { relation: 1 } }],
  },
} as const;
const orders = ["uid", "name", "created_at"].flatMap((field) => [
  { field, descending: false },
  { field, descending: true },
]);
// In a campaign each filter meets each order, otherwise two of them in turn, one of each direction.
const chooseOrders = (index: number) => orders.filter((_, i) => isCampaign || (index + i) % 3 === 0);
/** How many of the subtrees are visible: few enough to be read one by one, and all. */
const views = [60, ROOTS];

/** Registers the suite. */
export function manySubtreesSuite(store: () => Store): void {
  describe("lists over many subtrees", () => {
    const all = model();
    before(async () => {
      for (const chunk of splitChunks(all.groups)) {
        await store().write(async (tx) => {
          for (const row of chunk) await tx.table(groupKind).insert(row);
        });
      }
      for (const chunk of splitChunks(all.identities)) {
        await store().write(async (tx) => {
          for (const row of chunk) await tx.table(identityKind).insert(row);
        });
      }
    });

    for (const [index, kind] of (["groups", "identities"] as const).entries()) {
      for (const [row, filter] of kinds[kind].filters.entries()) {
        for (const [column, size] of views.entries()) {
          test(`${kind} in ${size} subtrees, ${JSON.stringify(filter)}: in order, in pages and with skip`, async () => {
            // In no order.
            const visible = Array.from({ length: size }, (_, i) => top(i));
            for (const order of chooseOrders(index + row + column)) {
              const input = { visible, filter, order };
              const expected = listExpectedUids(all[kind], input);
              const page = (query: Partial<ListQuery>) =>
                store().read((tx) => tableOf(tx, kind).list({ ...input, limit: 50, skip: 0, ...query })) as Promise<
                  Page<Ordered>
                >;
              const uids: string[] = [];
              const uncounted: string[] = [];
              // Long lists are read completely in large pages, and their beginning in small ones.
              const limit =
                expected.length > 1_000 ? 1_500 : isCampaign ? 73 : Math.max(73, Math.ceil(expected.length / 4));
              for (let after: ListQuery["after"], i = 0; i === 0 || after; i++) {
                const found = await page({ limit, ...(after && { after }) });
                assert.equal(found.total, expected.length);
                uids.push(...found.rows.map(({ uid }) => uid));
                const again = await page({ limit, uncounted: true, ...(after && { after }) });
                assert.equal(again.total, 0);
                uncounted.push(...again.rows.map(({ uid }) => uid));
                after = found.next;
              }
              const what = `${order.field} ${order.descending}`;
              assert.deepEqual(uids, expected, what);
              assert.deepEqual(uncounted, expected, `${what} uncounted`);
              for (const skip of [1, 60, Math.max(0, expected.length - 5), expected.length + 5]) {
                const skipped = (await page({ skip, limit: 7 })).rows.map(({ uid }) => uid);
                assert.deepEqual(skipped, expected.slice(skip, skip + 7), `${what} skip ${skip}`);
              }
              const [from] = (await page({ limit: 20 })).rows.slice(-1);
              const key = { uid: from?.uid, name: from?.name, created_at: from?.createTimeMs }[order.field] ?? "";
              const afterAndSkip = await page({ after: { key, uid: from?.uid ?? "" }, skip: 40, limit: 9 });
              if (from) {
                assert.deepEqual(
                  afterAndSkip.rows.map(({ uid }) => uid),
                  expected.slice(60, 69),
                  `${what} both`,
                );
              }
            }
          });
        }
      }
    }
  });
}

function* splitChunks<T>(rows: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < rows.length; i += 500) yield rows.slice(i, i + 500);
}
