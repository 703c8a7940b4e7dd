import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { BLOCK_ROWS, bitOf, RowSet, wordOf } from "../../src/store/advisories/row-set.js";

const numbers = fc.uniqueArray(fc.oneof(fc.nat(300), fc.integer({ min: 2_000, max: 4_200 }), fc.nat(2 ** 33)));
const sortNumbers = (set: RowSet) => set.numbers().sort((a, b) => a - b);
const ascending = (all: readonly number[]) => [...all].sort((a, b) => a - b);

describe("a set of rows", () => {
  it("gives every number a bit of its own", () => {
    const seen = new Set<string>();
    for (let n = 0; n < 3 * BLOCK_ROWS; n++) seen.add(`${wordOf(n)} ${bitOf(n)}`);
    assert.equal(seen.size, 3 * BLOCK_ROWS);
    assert.equal(Math.max(...Array.from({ length: BLOCK_ROWS }, (_, n) => wordOf(n))) + 1, wordOf(BLOCK_ROWS));
  });

  it("gives numbers that follow one another different words", () => {
    assert.equal(new Set(Array.from({ length: 64 }, (_, n) => wordOf(1_000 + n))).size, 64);
  });

  it("holds the numbers that it was made of, and no others", () => {
    fc.assert(
      fc.property(numbers, (some) => {
        const set = RowSet.of(some);
        assert.deepEqual(sortNumbers(set), ascending(some));
        assert.equal(set.size, some.length);
        for (const number of some) {
          assert.ok(set.has(number));
          if (!some.includes(number + 1)) assert.ok(!set.has(number + 1));
          assert.ok(set.blocks().includes(number - (number % BLOCK_ROWS)));
        }
      }),
    );
  });

  it("is united, intersected and subtracted as sets of numbers are", () => {
    fc.assert(
      fc.property(numbers, numbers, numbers, (one, more, both) => {
        const [left, right] = [[...new Set([...one, ...both])], [...new Set([...more, ...both])]];
        const [united, kept, rest] = [RowSet.of(left), RowSet.of(left), RowSet.of(left)];
        const other = RowSet.of(right);
        united.addAll(other);
        kept.keepOnly(other);
        rest.removeAll(other);
        assert.deepEqual(sortNumbers(united), ascending([...new Set([...left, ...right])]));
        assert.deepEqual(sortNumbers(kept), ascending(left.filter((n) => right.includes(n))));
        assert.deepEqual(sortNumbers(rest), ascending(left.filter((n) => !right.includes(n))));
        assert.equal(kept.size + rest.size, left.length);
      }),
    );
  });
});
