// Ranks: after any changes, a page after any number of entries is that of a sorted array of the same entries.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { and, eq, sql } from "drizzle-orm";
import { groupIndex } from "../../src/store/group-store.js";
import type { Store, Tx } from "../../src/store/port.js";
import { adjustRanks, buildRanks, type RankChange } from "../../src/store/rank-maintenance.js";
import type { KeyType, RankPosition } from "../../src/store/rank-statements.js";
import { completeRanks } from "../../src/store/rank-store.js";
import { type RankedList, seekRank } from "../../src/store/ranks.js";
import { buildInsertValues, type Executor, statement, statementFamily } from "../../src/store/statement.js";
import type { GroupRow } from "../../src/store/tables/groups.js";
import type { Tables } from "../../src/store/tables.js";
import { createRandom } from "../support/operations.js";
import { childUid, groupRow, rootUid } from "../support/rows.js";
import { chooseScale } from "../support/scale.js";

/** Small buckets, so that few entries fill many of them. */
const SIZE = 4;
/** Numbers of lists that no kind of resource has. */
const [TEXT_LIST, TIME_LIST] = [9_000, 9_001];

const entries = (type: KeyType, t: Tables) => (type === "text" ? t.textEntries : t.timeEntries) as typeof t.textEntries;
type EntryValues = { list: number; scope: number } & RankPosition;
const insertEntry = statementFamily<KeyType, EntryValues>(
  String,
  (type) => (q, t) => q.insert(entries(type, t)).values(buildInsertValues(entries(type, t))),
);
const deleteEntry = statementFamily<KeyType, EntryValues>(String, (type) => (q, t) => {
  const e = entries(type, t);
  const isColumn = (name: "list" | "scope" | "key" | "below") => eq(e[name], sql.placeholder(name));
  return q.delete(e).where(and(isColumn("list"), isColumn("scope"), isColumn("key"), isColumn("below")));
});
const insertGroup = statement<GroupRow>((q, t) => q.insert(t.groups).values(buildInsertValues(t.groups)));
const deleteGroup = statement<{ uid: string }>((q, t) =>
  q.delete(t.groups).where(eq(t.groups.uid, sql.placeholder("uid"))),
);
const bucketsOf = statementFamily<KeyType, { list: number; scope: number }, RankPosition & { n: number | null }>(
  String,
  (type) => (q, t) => {
    const r = (type === "text" ? t.textRanks : t.timeRanks) as typeof t.textRanks;
    return q
      .select({ key: r.key, below: r.below, n: sql<number | null>`sum(${r.n})`.mapWith(Number).as("n") })
      .from(r)
      .where(and(eq(r.list, sql.placeholder("list")), eq(r.scope, sql.placeholder("scope"))))
      .groupBy(r.key, r.below)
      .orderBy(r.key, r.below);
  },
);

const damageRanks = statementFamily<KeyType, object>(String, (type) => (q, t) => {
  const r = (type === "text" ? t.textRanks : t.timeRanks) as typeof t.textRanks;
  return q.update(r).set({ n: sql`${r.n} + 1` });
});

const scopeOf = statement<{ uid: string }, { id: number }>((q, t) =>
  q
    .select({ id: t.scopes.id })
    .from(t.scopes)
    .where(eq(t.scopes.uid, sql.placeholder("uid"))),
);

/** The lists of the groups below one, by name and by create time. */
async function listsIn(tx: Executor, uid: string): Promise<RankedList[]> {
  const [{ id: scope }] = (await tx.rows(scopeOf, { uid })) as [{ id: number }];
  const { name, created_at } = groupIndex.sorts;
  assert.ok(name && created_at);
  return [name, created_at].map(({ type, list }) => ({ type, list, scope }));
}

const compare = (a: RankPosition, b: RankPosition) =>
  a.key === b.key ? Buffer.compare(a.below, b.below) : a.key < b.key ? -1 : 1;
const executor = (tx: Tx) => tx as unknown as Executor;

/** A list, and what it must contain. */
class Model {
  readonly positions: RankPosition[] = [];
  built = false;
  readonly of: RankedList;
  readonly random: (n: number) => number;

  constructor(of: RankedList, random: (n: number) => number) {
    this.of = of;
    this.random = random;
  }

  /** A position that the list may have, such as one of an entry that was deleted. */
  anyPosition(): RankPosition {
    const { random, of } = this;
    const below = Buffer.alloc(8 * (1 + random(2)));
    below[0] = random(256);
    below[below.length - 1] = random(256);
    if (of.rows) return { key: "", below };
    return { key: of.type === "text" ? `k${random(12)}` : random(2) * 1e12 + random(12), below };
  }

  newPosition(): RankPosition {
    let position = this.anyPosition();
    while (this.positions.some((one) => compare(one, position) === 0)) position = this.anyPosition();
    return position;
  }

  /** Changes some entries in the database and here. */
  async change(tx: Executor, adjust: (changes: RankChange[]) => Promise<void>): Promise<void> {
    const { random, of, positions } = this;
    const changes: RankChange[] = [];
    const remove = positions.length > 0 && random(5) < 2;
    for (let i = random(3); i >= 0; i--) {
      // A changed key deletes one entry and adds another.
      if (remove || random(4) === 0) {
        const [position] = positions.splice(random(positions.length), 1);
        if (position) changes.push({ of, ...position, delta: -1 });
      }
      if (remove) continue;
      const position = this.newPosition();
      positions.push(position);
      changes.push({ of, ...position, delta: 1 });
    }
    for (const { delta, key, below } of changes) await this.write(tx, { key, below }, delta);
    positions.sort(compare);
    await adjust(changes);
  }

  async write(tx: Executor, { key, below }: RankPosition, delta: 1 | -1): Promise<void> {
    const { of } = this;
    if (!of.rows) {
      const family = delta > 0 ? insertEntry : deleteEntry;
      await tx.rows(family(of.type), { list: of.list, scope: of.scope, key, below });
      return;
    }
    const uid = `${of.rows.scopeUid}/${below.toString("hex").replace(/.{16}(?=.)/g, "$&/")}`;
    if (delta > 0) await tx.rows(insertGroup, groupRow(uid, { parentUid: of.rows.scopeUid }));
    else await tx.rows(deleteGroup, { uid });
  }

  /** What a seek should find, or a description of how its result differs. */
  async seekOnce(tx: Executor): Promise<string | undefined> {
    const { random, positions } = this;
    const descending = random(2) === 0;
    const after = [undefined, this.anyPosition(), positions[random(positions.length)]][random(3)];
    const skip = 1 + random(positions.length + 3);
    const found = await seekRank(tx, this.of, { after, skip, descending });
    if (found === undefined && !this.built) return undefined;
    const sign = descending ? -1 : 1;
    const ordered = descending ? [...positions].reverse() : positions;
    const rest = after ? ordered.filter((one) => sign * compare(one, after) > 0) : ordered;
    const expected = rest[skip - 1] ?? "end";
    const [a, b] = [found, expected].map((one) => JSON.stringify(one));
    return a === b
      ? undefined
      : `skip ${skip} ${descending ? "down" : "up"} after ${JSON.stringify(after)}: ${a}, not ${b}`;
  }

  /** The buckets whose sizes are wrong. */
  async wrongBuckets(tx: Executor): Promise<string[]> {
    const { list, scope, type } = this.of;
    const buckets = await tx.rows(bucketsOf(type), { list, scope });
    return buckets.flatMap((bucket, i) => {
      const next = buckets[i + 1];
      const inBucket = this.positions.filter(
        (one) => compare(one, bucket) >= 0 && (next === undefined || compare(one, next) < 0),
      );
      if (bucket.n === null || bucket.n === inBucket.length) return [];
      return [`bucket ${i} of ${buckets.length} has ${inBucket.length} entries, not ${bucket.n}`];
    });
  }
}

/** Registers the suite for a store that holds nothing else under the roots used here. */
export function ranksSuite(store: () => Store): void {
  describe("ranks", () => {
    const scopeUid = rootUid(0x70001);
    before(() => store().write((tx) => tx.groups.insert(groupRow(scopeUid))));

    const lists: Record<string, (scope: number) => RankedList> = {
      "a list by text": (scope) => ({ type: "text", list: TEXT_LIST, scope }),
      "a list by time": (scope) => ({ type: "time", list: TIME_LIST, scope }),
      "a list by uid": (scope) => ({ type: "text", list: TEXT_LIST, scope, rows: { kind: groupIndex, scopeUid } }),
    };
    for (const [name, listOf] of Object.entries(lists)) {
      const modelOf = (seed: number) => new Model(listOf(1_000_000 + seed), createRandom(seed));
      const adjust = (tx: Executor, model: Model) => (changes: RankChange[]) =>
        adjustRanks(tx, changes, model.random(tx.counterSlots), SIZE);

      test(`${name}: every skip is exact while entries change and are counted`, async () => {
        const rounds = chooseScale(3_000, 160);
        const model = modelOf(1);
        for (let i = 0; i < rounds; i++) {
          await store().write(async (unit) => {
            const tx = executor(unit);
            await model.change(tx, adjust(tx, model));
            if (i >= 40 && i % 7 === 0) model.built = await buildRanks(tx, model.of, 1 + model.random(3), SIZE);
            assert.equal(await model.seekOnce(tx), undefined, `round ${i}`);
            if (i % 10 === 0) assert.deepEqual(await model.wrongBuckets(tx), [], `round ${i}`);
          });
        }
        assert.ok(model.built);
        await store().write(async (unit) => {
          const tx = executor(unit);
          for (let i = 0; i < 50; i++) assert.equal(await model.seekOnce(tx), undefined);
          while (model.positions.length > 0) {
            const position = model.positions.pop() as RankPosition;
            await model.write(tx, position, -1);
            await adjust(tx, model)([{ of: model.of, ...position, delta: -1 }]);
          }
          assert.deepEqual(await model.wrongBuckets(tx), []);
          assert.equal(await seekRank(tx, model.of, { skip: 1, descending: false }), "end");
        });
      });

      test(`${name}: detects a change that does not update the ranks`, async () => {
        const model = modelOf(2);
        await store()
          .write(async (unit) => {
            const tx = executor(unit);
            for (let i = 0; i < 20; i++) await model.change(tx, adjust(tx, model));
            model.built = await buildRanks(tx, model.of, 100, SIZE);
            assert.deepEqual(await model.wrongBuckets(tx), []);
            while (model.positions.length % 2 === 0) await model.change(tx, adjust(tx, model));
            const length = model.positions.length;
            while (model.positions.length === length) await model.change(tx, async () => {});
            assert.notDeepEqual(await model.wrongBuckets(tx), []);
            throw new Rollback();
          })
          .catch(expectRollback);
      });
    }

    test("lists by every order skip exactly without ranks, with them, and after further changes", async () => {
      const parent = rootUid(0x70002);
      const rows = Array.from({ length: 5_200 }, (_, i) =>
        groupRow(childUid(parent, (i * 7_919) % 1_000_003), {
          name: `g${(i * 37) % 101}`,
          createTimeMs: 1_000 + i,
          updateTimeMs: 5_000 + ((i * 31) % 1_009),
        }),
      );
      const top = groupRow(parent, { name: "top" });
      await store().write((tx) => tx.groups.insert(top));
      for (let i = 0; i < rows.length; i += 650) {
        await store().write(async (tx) => {
          for (const row of rows.slice(i, i + 650)) await tx.groups.insert(row);
        });
      }
      const compareAll = async () => {
        for (const [field, column] of Object.entries(columns)) {
          const ascending = sortGroups([...rows, top], column);
          for (const descending of [false, true]) {
            const all = descending ? [...ascending].reverse() : ascending;
            const below = all.filter((row) => row !== top);
            for (const filter of [{ descendantsOf: parent }, { childrenOf: parent }, {}]) {
              const sorted = filter.descendantsOf || filter.childrenOf ? below : all;
              for (const skip of [1_500, 4_321, sorted.length - 1, sorted.length]) {
                const query = { visible: [parent], filter, order: { field, descending }, skip, limit: 3 };
                const page = await store().read((tx) => tx.groups.list(query));
                const expected = sorted.slice(skip, skip + 3);
                assert.deepEqual(
                  page.rows.map(({ uid }) => uid),
                  expected.map(({ uid }) => uid),
                  JSON.stringify(query),
                );
              }
            }
          }
        }
      };
      await compareAll();
      assert.equal(await completeRanks(store()), 8);
      assert.equal(await completeRanks(store()), 0);
      await compareAll();
      await store().write(async (tx) => {
        for (const row of rows.splice(1_000, 40)) await tx.groups.delete(row);
        for (const [i, row] of rows.slice(2_000, 2_040).entries()) {
          rows[2_000 + i] = (await tx.groups.update(row.uid, { name: `new${i}` }, 900 + i)) as GroupRow;
        }
      });
      await compareAll();

      // The control: with wrong ranks the pages are wrong, so the pages above were found by them.
      const query = { visible: [parent], filter: { descendantsOf: parent }, skip: 4_321, limit: 3 };
      for (const field of Object.keys(columns)) {
        const order = { field, descending: false };
        const right = (await store().read((tx) => tx.groups.list({ ...query, order }))).next;
        await store()
          .write(async (tx) => {
            for (const type of ["text", "time"] as const) await executor(tx).rows(damageRanks(type), {});
            assert.notDeepEqual((await tx.groups.list({ ...query, order })).next, right);
            throw new Rollback();
          })
          .catch(expectRollback);
      }
    });

    test("a deleted group takes its ranks along, and those of others stay", async () => {
      const [gone, other] = [rootUid(0x70003), rootUid(0x70004)];
      const children = (parent: string) => [1, 2, 3].map((n) => groupRow(childUid(parent, n), { parentUid: parent }));
      await store().write(async (unit) => {
        const tx = executor(unit);
        for (const parent of [gone, other]) {
          for (const row of [groupRow(parent), ...children(parent)]) await unit.groups.insert(row);
          for (const list of await listsIn(tx, parent)) assert.ok(await buildRanks(tx, list, 10, SIZE));
        }
      });
      await store().write(async (unit) => {
        const tx = executor(unit);
        const lists = await listsIn(tx, gone);
        const countBuckets = async (some: readonly RankedList[]) =>
          Promise.all(
            some.map(async ({ type, list, scope }) => (await tx.rows(bucketsOf(type), { list, scope })).length),
          );
        assert.deepEqual(await countBuckets(lists), [1, 1]);
        for (const row of [...children(gone), groupRow(gone)]) await unit.groups.delete(row);
        assert.deepEqual(await countBuckets(lists), [0, 0]);
        assert.deepEqual(await countBuckets(await listsIn(tx, other)), [1, 1]);
      });
    });

    test("concurrent writers leave exact ranks", async () => {
      const of = { type: "time", list: TIME_LIST, scope: 2_000_000 } as const;
      const model = new Model(of, createRandom(3));
      await store().write((tx) => buildRanks(executor(tx), of, 1, SIZE));
      // All of them write at the end of the list.
      const positions = Array.from({ length: 200 }, (_, i) => ({ key: 1_000 + i, below: Buffer.alloc(8, i) }));
      const writer = async (n: number) => {
        for (let i = n; i < positions.length; i += 8) {
          const position = positions[i] as RankPosition;
          await store().write(async (unit) => {
            const tx = executor(unit);
            await model.write(tx, position, 1);
            await adjustRanks(tx, [{ of, ...position, delta: 1 }], (i * 7) % tx.counterSlots, SIZE);
          });
        }
      };
      await Promise.all(Array.from({ length: 8 }, (_, n) => writer(n)));
      model.positions.push(...positions);
      model.built = true;
      await store().read(async (unit) => {
        const tx = executor(unit);
        assert.deepEqual(await model.wrongBuckets(tx), []);
        assert.ok((await tx.rows(bucketsOf("time"), { list: of.list, scope: of.scope })).length > 10);
        for (let i = 0; i < 20; i++) assert.equal(await model.seekOnce(tx), undefined);
      });
    });
  });
}

const columns = { uid: "uid", name: "name", created_at: "createTimeMs", updated_at: "updateTimeMs" } as const;

function sortGroups(rows: readonly GroupRow[], column: keyof GroupRow): GroupRow[] {
  const compareText = (a: string | number, b: string | number) => (a < b ? -1 : a > b ? 1 : 0);
  const keyOf = (row: GroupRow) => row[column] as string | number;
  return [...rows].sort((a, b) => compareText(keyOf(a), keyOf(b)) || compareText(a.uid, b.uid));
}

class Rollback extends Error {}

function expectRollback(error: unknown): void {
  if (!(error instanceof Rollback)) throw error;
}
