import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MAX_JSON_DEPTH, parseStrictJson } from "../../src/kernel/strict-json.js";
import { measureLeastProcessorMs } from "../support/stopwatch.js";

const bad: readonly { text: string; message: string; reason: string }[] = [
  { text: "", message: "body is not valid JSON at its end", reason: "nothing" },
  { text: " \n", message: "body is not valid JSON at its end", reason: "white space" },
  { text: "{", message: "body is not valid JSON at its end", reason: "unclosed object" },
  { text: "[1", message: "body is not valid JSON at its end", reason: "unclosed array" },
  { text: '"a', message: "body is not valid JSON at its end", reason: "unclosed string" },
  { text: '"a\\', message: "body is not valid JSON at its end", reason: "unclosed escape" },
  { text: "{}{}", message: "body is not valid JSON at position 3", reason: "two documents" },
  { text: "{} x", message: "body is not valid JSON at position 4", reason: "trailing text" },
  { text: "{,}", message: "body is not valid JSON at position 2", reason: "a comma alone" },
  { text: '{"a":1,}', message: "body is not valid JSON at position 8", reason: "trailing comma" },
  { text: "[1,]", message: "body is not valid JSON at position 4", reason: "trailing comma in an array" },
  { text: "{a:1}", message: "body is not valid JSON at position 2", reason: "bare key" },
  { text: "{'a':1}", message: "body is not valid JSON at position 2", reason: "single quotes" },
  { text: '{"a" 1}', message: "body is not valid JSON at position 6", reason: "no colon" },
  { text: '{"a":}', message: "body is not valid JSON at position 6", reason: "no value" },
  { text: "// x\n1", message: "body is not valid JSON at position 1", reason: "comment" },
  { text: "01", message: "body is not valid JSON at position 2", reason: "leading zero" },
  { text: "+1", message: "body is not valid JSON at position 1", reason: "plus" },
  { text: ".5", message: "body is not valid JSON at position 1", reason: "no digit before the point" },
  { text: "1.", message: "body is not valid JSON at position 2", reason: "no digit after the point" },
  { text: "0x10", message: "body is not valid JSON at position 2", reason: "hexadecimal" },
  { text: "1e", message: "body is not valid JSON at position 2", reason: "no exponent" },
  { text: "NaN", message: "body is not valid JSON at position 1", reason: "NaN" },
  { text: "Infinity", message: "body is not valid JSON at position 1", reason: "Infinity" },
  { text: "undefined", message: "body is not valid JSON at position 1", reason: "undefined" },
  { text: "nul", message: "body is not valid JSON at position 1", reason: "half a word" },
  { text: '"a\nb"', message: "body is not valid JSON at position 3", reason: "raw newline in a string" },
  { text: '"\\x41"', message: "body is not valid JSON at its end", reason: "escape of another language" },
  { text: '"\\u12"', message: "body is not valid JSON at its end", reason: "short escape" },
  { text: "\ufeff{}", message: "body must not begin with a byte order mark", reason: "BOM" },
  { text: "1e999", message: "body must be a number that a double can hold", reason: "beyond a double" },
  { text: "9".repeat(400), message: "body must be a number that a double can hold", reason: "400 digits" },
  { text: '{"a":-1e400}', message: "a must be a number that a double can hold", reason: "beyond a double, below" },
  { text: '{"name":"a","name":"b"}', message: "name is given twice", reason: "duplicate key" },
  { text: '{"a":{"b":1,"\\u0062":2}}', message: "a.b is given twice", reason: "duplicate key by escape" },
  { text: '{"a":[{"b":1,"b":1}]}', message: "a[0].b is given twice", reason: "duplicate key in a list" },
  { text: '{"__proto__":{}}', message: "__proto__ is not allowed as a name", reason: "prototype" },
  { text: '{"a":"\\u0000"}', message: "a must not hold U+0000", reason: "NUL" },
  { text: '{"a":"\\ud800"}', message: "a must not hold half a surrogate pair", reason: "lone high surrogate" },
  { text: '{"a":"\\udc00x"}', message: "a must not hold half a surrogate pair", reason: "lone low surrogate" },
  { text: '{"\\ud800":1}', message: "body must not hold half a surrogate pair", reason: "lone surrogate in a key" },
  { text: "[".repeat(65), message: "body must not nest deeper than 64 levels", reason: "65 arrays" },
  { text: '{"a":'.repeat(65), message: "body must not nest deeper than 64 levels", reason: "65 objects" },
  { text: "[".repeat(1_000_000), message: "body must not nest deeper than 64 levels", reason: "a million arrays" },
];

for (const { text, message, reason } of bad) {
  test(`rejects ${JSON.stringify(text.slice(0, 30))}: ${reason}`, () => {
    assert.throws(
      () => parseStrictJson(text, "body"),
      (error: Error) => {
        const field = message.slice(0, message.indexOf(" "));
        assert.equal(error.message, `Invalid argument: ${field}: ${message}`);
        return true;
      },
    );
  });
}

const good: readonly string[] = [
  "null",
  " [ ] ",
  "{}",
  '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\ud83d\\ude00"',
  "-0",
  "1E+2",
  "0.5e-7",
  '{"a":[1,{"b":[]},"c",true,false,null]}',
  '{"constructor":1,"toString":2,"hasOwnProperty":3,"prototype":{}}',
  "[".repeat(MAX_JSON_DEPTH) + "]".repeat(MAX_JSON_DEPTH),
  '{"\u2028":"ä😀"}',
];

for (const text of good) {
  test(`reads ${text.slice(0, 60)} as JSON.parse does`, () => {
    assert.equal(JSON.stringify(parseStrictJson(text, "body")), JSON.stringify(JSON.parse(text)));
  });
}

test("objects have no prototype and pollute none", () => {
  const value = parseStrictJson('{"constructor":{"prototype":{"polluted":true}}}', "body");
  assert.equal(Object.getPrototypeOf(value), null);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test("2,000 keys take less than 50 ms", () => {
  const text = JSON.stringify(Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`k${i * 65_536}`, i])));
  const least = measureLeastProcessorMs(() => parseStrictJson(text, "body"));
  assert.ok(least < 50, `${least} ms`);
});

test("whatever JSON.stringify writes is read back the same", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const text = JSON.stringify(value);
      fc.pre(!text.includes("\\u0000") && !/\\ud[89a-f]/.test(text) && !text.includes("__proto__"));
      assert.equal(JSON.stringify(parseStrictJson(text, "body")), text);
    }),
  );
});

test("whatever is accepted, JSON.parse accepts and understands the same", () => {
  const scrap = fc.constantFrom("{", "}", "[", "]", ",", ":", '"a"', '"b"', "1", "-", "e5", "null", " ", '"\\u0061"');
  fc.assert(
    fc.property(fc.array(scrap, { maxLength: 12 }), (parts) => {
      const text = parts.join("");
      let value: unknown;
      try {
        value = parseStrictJson(text, "body");
      } catch {
        return;
      }
      assert.equal(JSON.stringify(value), JSON.stringify(JSON.parse(text)));
    }),
    { numRuns: 2000 },
  );
});
