import assert from "node:assert/strict";
import { test } from "node:test";
import {
  confirmationCode,
  grouped,
  isUserCode,
  newUserCode,
  typedCode,
} from "../../../src/issuer/oauth/short-codes.js";

test("codes of devices are eight of twenty consonants, and not the same", () => {
  const codes = Array.from({ length: 2_000 }, newUserCode);
  for (const code of codes) assert.match(code, /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/);
  assert.equal(new Set(codes).size, codes.length);
  assert.equal(new Set(codes.join("")).size, 20);
  assert.ok(codes.every(isUserCode));
});

// SHA-256 of 32 zero bytes is 66687aadf862bd77…, whose first five bytes are MZUHVLPY in base32.
test("the code of a terminal is the beginning of the hash of its key, in base32", () => {
  assert.equal(confirmationCode(Buffer.alloc(32)), "MZUHVLPY");
  assert.equal(grouped("MZUHVLPY"), "MZUH-VLPY");
});

const typed: readonly (readonly [string, string])[] = [
  ["bcdf-ghjk", "BCDFGHJK"],
  [" BCDF GHJK ", "BCDFGHJK"],
  ["b c d f.g_h-j k", "BCDFGHJK"],
  ["BCDFGHJK", "BCDFGHJK"],
  ["", ""],
];

for (const [text, code] of typed) {
  test(`"${text}" is read as "${code}"`, () => {
    assert.equal(typedCode(text), code);
  });
}

for (const code of ["", "BCDFGHJ", "BCDFGHJKL", "ABCDFGHJ", "BCDFGHJ1", "bcdfghjk"]) {
  test(`"${code}" is no code of a device`, () => {
    assert.equal(isUserCode(code), false);
  });
}
