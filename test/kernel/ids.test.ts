import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeBase32 } from "../../src/kernel/ids.js";

// RFC 4648, section 10, without the padding.
const vectors: readonly (readonly [text: string, encoded: string])[] = [
  ["", ""],
  ["f", "MY"],
  ["fo", "MZXQ"],
  ["foo", "MZXW6"],
  ["foob", "MZXW6YQ"],
  ["fooba", "MZXW6YTB"],
  ["foobar", "MZXW6YTBOI"],
];
for (const [text, encoded] of vectors) {
  test(`base32 of "${text}"`, () => assert.equal(encodeBase32(Buffer.from(text)), encoded));
}
