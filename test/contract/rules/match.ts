// Whether a response looks as a row of the table says.
import assert from "node:assert/strict";
import { Absent, Each, type Pattern } from "./rule.js";

/**
 * Asserts that a value has a pattern.
 *
 * @param path where the value lies, for the text of the failure
 * @throws AssertionError with the path of the first difference
 */
export function assertMatch(value: unknown, pattern: Pattern, path: string): void {
  if (pattern instanceof RegExp) {
    assert.match(String(value), pattern, `${path} is ${JSON.stringify(value)}, not ${pattern}`);
  } else if (pattern instanceof Absent) {
    assert.equal(value, undefined, `${path} is there: ${JSON.stringify(value)}`);
  } else if (pattern instanceof Each) {
    const list = asArray(value, path);
    if (pattern.length === undefined) assert.ok(list.length > 0, `${path} is empty`);
    else assert.equal(list.length, pattern.length, `${path} has ${list.length} elements`);
    for (const [i, one] of list.entries()) assertMatch(one, pattern.pattern, `${path}[${i}]`);
  } else if (Array.isArray(pattern)) {
    const list = asArray(value, path);
    assert.equal(list.length, pattern.length, `${path} is ${JSON.stringify(value)}, not ${JSON.stringify(pattern)}`);
    for (const [i, one] of pattern.entries()) assertMatch(list[i], one, `${path}[${i}]`);
  } else if (typeof pattern === "object" && pattern !== null) {
    assert.ok(typeof value === "object" && value !== null, `${path} is ${JSON.stringify(value)}, not an object`);
    const keys = value as Readonly<Record<string, unknown>>;
    for (const [key, one] of Object.entries(pattern)) assertMatch(keys[key], one, `${path}.${key}`);
    // An empty object is one without keys: `{}` would otherwise say nothing.
    if (Object.keys(pattern).length === 0) assert.deepEqual(value, {}, `${path} is ${JSON.stringify(value)}, not {}`);
  } else {
    assert.deepEqual(value, pattern, `${path} is ${JSON.stringify(value)}, not ${JSON.stringify(pattern)}`);
  }
}

function asArray(value: unknown, path: string): readonly unknown[] {
  assert.ok(Array.isArray(value), `${path} is ${JSON.stringify(value)}, not a list`);
  return value;
}

/** A copy with every string, also in the source of patterns, changed by `fill`. */
export function fillPattern<T>(value: T, fill: (text: string) => string): T {
  if (typeof value === "string") return fill(value) as T;
  if (value instanceof RegExp) return new RegExp(fill(value.source), value.flags) as T;
  if (value instanceof Each) return new Each(fillPattern(value.pattern, fill), value.length) as T;
  if (Array.isArray(value)) return value.map((one) => fillPattern(one, fill)) as T;
  if (typeof value !== "object" || value === null || value instanceof Absent) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [fill(key), fillPattern(one, fill)])) as T;
}
