import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { bitsOf, hasBit, toCapabilitySet } from "../../src/kernel/capability-set.js";

const sets: readonly { bits: readonly number[]; set: string; reason: string }[] = [
  { bits: [], set: "0".repeat(64), reason: "nothing" },
  { bits: [0], set: `1${"0".repeat(63)}`, reason: "the first bit is in the first digit" },
  { bits: [3], set: `8${"0".repeat(63)}`, reason: "the last bit of the first digit" },
  { bits: [4], set: `01${"0".repeat(62)}`, reason: "the first bit of the second digit" },
  { bits: [255], set: `${"0".repeat(63)}8`, reason: "the last bit there is" },
  { bits: [1, 1, 1], set: `2${"0".repeat(63)}`, reason: "a bit named thrice" },
  { bits: [0, 1, 2, 3], set: `f${"0".repeat(63)}`, reason: "digits beyond nine" },
];

for (const { bits, set, reason } of sets) {
  test(`capabilitySetOf: ${reason}`, () => assert.equal(toCapabilitySet(bits), set));
}

for (const bit of [-1, 256, 1_000_000]) {
  test(`toCapabilitySet rejects bit ${bit}`, () => {
    assert.throws(() => toCapabilitySet([bit]), new TypeError(`capability bit ${bit} is out of range`));
  });
}

const malformed: readonly { set: string; bit: number; reason: string }[] = [
  { set: "", bit: 0, reason: "an empty set" },
  { set: "f", bit: 4, reason: "beyond the end of a short set" },
  { set: "F".repeat(64), bit: 0, reason: "upper case" },
  { set: "z".repeat(64), bit: 0, reason: "letters that are no digits" },
  { set: "g".repeat(64), bit: 0, reason: "the letter after f" },
  { set: "`".repeat(64), bit: 0, reason: "the character before a" },
  { set: "/:".repeat(32), bit: 0, reason: "the characters around the digits" },
  { set: "f".repeat(64), bit: -1, reason: "a negative bit" },
  { set: "f".repeat(64), bit: 256, reason: "a bit beyond the last" },
];

for (const { set, bit, reason } of malformed) {
  test(`holdsBit: ${reason} holds nothing`, () => assert.equal(hasBit(set, bit), false));
}

const bitSets = fc.uniqueArray(fc.integer({ min: 0, max: 255 }), { maxLength: 256 });

test("property: a set holds the bits it was made of and no others", () => {
  fc.assert(
    fc.property(bitSets, (bits) => {
      const set = toCapabilitySet(bits);
      assert.match(set, /^[0-9a-f]{64}$/);
      assert.deepEqual(
        bitsOf(set),
        [...bits].sort((a, b) => a - b),
      );
      for (let bit = 0; bit < 256; bit++) assert.equal(hasBit(set, bit), bits.includes(bit));
    }),
  );
});
