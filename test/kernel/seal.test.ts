import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { seal, unseal } from "../../src/kernel/seal.js";

const key = Buffer.alloc(32, 7);
const plain = Buffer.from("a secret");

test("what is sealed opens with the same key and context", () => {
  assert.deepEqual(unseal(key, seal(key, plain, "page token"), "page token"), plain);
});

test("the same thing sealed twice looks different", () => {
  assert.notDeepEqual(seal(key, plain, "c"), seal(key, plain, "c"));
});

test("nothing sealed shows in the clear", () => {
  assert.ok(!seal(key, plain, "c").includes(plain));
});

const sealed = seal(key, plain, "page token");
const refused: readonly { key: Buffer; sealed: Buffer; context: string; reason: string }[] = [
  { key: randomBytes(32), sealed, context: "page token", reason: "another key" },
  { key, sealed, context: "page tokens", reason: "another context" },
  { key, sealed, context: "", reason: "no context" },
  { key, sealed: Buffer.alloc(0), context: "page token", reason: "nothing" },
  { key, sealed: sealed.subarray(0, 27), context: "page token", reason: "shorter than nonce and tag" },
  { key, sealed: sealed.subarray(0, -1), context: "page token", reason: "the last byte cut off" },
  { key, sealed: sealed.subarray(1), context: "page token", reason: "the first byte cut off" },
  { key, sealed: Buffer.concat([sealed, Buffer.alloc(1)]), context: "page token", reason: "a byte more" },
];

for (const { reason, ...given } of refused) {
  test(`unseal: ${reason} opens nothing`, () => {
    assert.equal(unseal(given.key, given.sealed, given.context), undefined);
  });
}

test("no bit of what is sealed can be changed", () => {
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const changed = Buffer.from(sealed);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    assert.equal(unseal(key, changed, "page token"), undefined, `bit ${bit}`);
  }
});

test("property: round trip of any bytes under any key and context", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.uint8Array({ maxLength: 300 }),
      fc.string(),
      (secret, bytes, context) => {
        const opened = unseal(Buffer.from(secret), seal(Buffer.from(secret), Buffer.from(bytes), context), context);
        assert.deepEqual(opened, Buffer.from(bytes));
      },
    ),
  );
});
