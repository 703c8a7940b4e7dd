import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseTraceparent } from "../../src/kernel/trace.js";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

test("well-formed fields name the operation of the caller", () => {
  const parent = (isSampled: boolean) => ({ traceId: TRACE, spanId: SPAN, isSampled });
  assert.deepEqual(parseTraceparent(`00-${TRACE}-${SPAN}-01`), parent(true));
  assert.deepEqual(parseTraceparent(`00-${TRACE}-${SPAN}-00`), parent(false));
  // Other flags are of later versions.
  assert.deepEqual(parseTraceparent(`00-${TRACE}-${SPAN}-fe`), parent(false));
  // A later version may have more fields.
  assert.deepEqual(parseTraceparent(`01-${TRACE}-${SPAN}-01-what-comes`), parent(true));
  assert.deepEqual(parseTraceparent(`cc-${TRACE}-${SPAN}-01`), parent(true));
});

const malformed: readonly (readonly [name: string, field: string | undefined])[] = [
  ["absent", undefined],
  ["empty", ""],
  ["upper case", `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ["the version that is invalid", `ff-${TRACE}-${SPAN}-01`],
  ["more fields in version 00", `00-${TRACE}-${SPAN}-01-00`],
  ["more characters", `00-${TRACE}-${SPAN}-010`],
  ["more characters in a later version", `01-${TRACE}-${SPAN}-010`],
  ["a trace of zeros", `00-${"0".repeat(32)}-${SPAN}-01`],
  ["a span of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
  ["a short trace", `00-${TRACE.slice(1)}-${SPAN}-01`],
  ["a short span", `00-${TRACE}-${SPAN.slice(1)}-01`],
  ["no flags", `00-${TRACE}-${SPAN}`],
  ["a blank before", ` 00-${TRACE}-${SPAN}-01`],
  ["a line break after", `00-${TRACE}-${SPAN}-01\n`],
  ["two fields", `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ["two fields of a later version", `01-${TRACE}-${SPAN}-01-x, 00-${TRACE}-${SPAN}-01`],
  ["a field without an end", `01-${TRACE}-${SPAN}-01-${"x".repeat(300)}`],
];
for (const [name, field] of malformed) {
  test(`malformed: ${name}`, () => assert.equal(parseTraceparent(field), undefined));
}

test("whatever is parsed has ids of lower-case hexadecimal digits", () => {
  const nearly = fc
    .tuple(fc.string(), fc.constantFrom("", `00-${TRACE}-${SPAN}-01`), fc.string())
    .map((all) => all.join(""));
  fc.assert(
    fc.property(fc.oneof(fc.string(), nearly), (field) => {
      const parsed = parseTraceparent(field);
      return parsed === undefined || (/^[0-9a-f]{32}$/.test(parsed.traceId) && /^[0-9a-f]{16}$/.test(parsed.spanId));
    }),
  );
});
