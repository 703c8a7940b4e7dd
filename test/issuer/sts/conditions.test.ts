// Conditions on claims: a table, a comparison with a plain model on random claims, and hostile input.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { create, fromJson, type JsonObject } from "@bufbuild/protobuf";
import { type Condition, ConditionSchema } from "#gen/arbor/trust/v1/trust_pb.js";
import { conditionsFromJson, conditionsToJson, findConditionsFault } from "../../../src/iam/identities/conditions.js";
import { createIdentityBudget } from "../../../src/issuer/sts/claim-pattern.js";
import { holds, noteCondition } from "../../../src/issuer/sts/conditions.js";
import { formatCondition } from "../../../src/kernel/claim-condition.js";
import { parseJsonObject } from "../../../src/kernel/strict-json.js";
import { createRandom } from "../../support/openapi/random.js";
import { type Mistakes, modelHolds } from "./condition-model.js";
import { randomCondition, randomObject } from "./random-conditions.js";

const PAIRS = Number(process.env.TEST_ARBOR_CONDITIONS ?? 5_000);
const SEED = Number(process.env.TEST_ARBOR_SEED ?? 20_261_128);

const parse = (json: string) => parseJsonObject(Buffer.from(json)) ?? {};
const condition = (json: object) => fromJson(ConditionSchema, json as JsonObject);
const evaluate = (one: Condition, json: string) => holds(one, parse(json), createIdentityBudget());

const text = (stringValue: string) => ({ stringValue });
const int = (intValue: number | string) => ({ intValue });
const claims = JSON.stringify({
  ...{ text: "abc", empty: "", whole: 123, fraction: 1.5, yes: true, no: false, nothing: null },
  ...{ list: ["a", 1, true, null, ["b"]], none: [], "kubernetes.io": { namespace: "prod", pod: { uid: "7" } } },
  long: "a".repeat(1_025),
});

// What holds, and what its negation does.
const rows: readonly (readonly [name: string, condition: object, holds: boolean, negated: boolean])[] = [
  ["a text", { path: ["text"], equals: text("abc") }, true, false],
  ["another text", { path: ["text"], equals: text("ab") }, false, true],
  ["a text in other letters", { path: ["text"], equals: text("ABC") }, false, true],
  ["an empty text", { path: ["empty"], equals: text("") }, true, false],
  ["a number as text", { path: ["whole"], equals: text("123") }, false, false],
  ["a text as number", { path: ["text"], equals: int(0) }, false, false],
  ["a number", { path: ["whole"], equals: int(123) }, true, false],
  ["another number", { path: ["whole"], equals: int(124) }, false, true],
  ["a fraction", { path: ["fraction"], equals: int(1) }, false, false],
  ["a boolean", { path: ["yes"], equals: { boolValue: true } }, true, false],
  ["the other boolean", { path: ["no"], equals: { boolValue: true } }, false, true],
  ["a boolean as text", { path: ["yes"], equals: text("true") }, false, false],
  ["false and a missing claim", { path: ["missing"], equals: { boolValue: false } }, false, false],
  ["the empty text and a missing claim", { path: ["missing"], equals: text("") }, false, false],
  ["null", { path: ["nothing"], equals: text("") }, false, false],
  ["one of texts", { path: ["text"], oneOf: { values: [text("x"), text("abc")] } }, true, false],
  ["none of texts", { path: ["text"], oneOf: { values: [text("x"), text("y")] } }, false, true],
  ["one of numbers, of a text", { path: ["text"], oneOf: { values: [int(1)] } }, false, false],
  ["a prefix", { path: ["text"], prefix: "ab" }, true, false],
  ["another prefix", { path: ["text"], prefix: "b" }, false, true],
  ["a prefix of a number", { path: ["whole"], prefix: "1" }, false, false],
  ["a pattern", { path: ["text"], pattern: "a.c" }, true, false],
  ["a pattern for a part", { path: ["text"], pattern: "b" }, false, true],
  ["a pattern on a text that is too long", { path: ["long"], pattern: "a*" }, false, false],
  ["a pattern on a number", { path: ["whole"], pattern: ".*" }, false, false],
  ["an element", { path: ["list"], contains: text("a") }, true, false],
  ["an element that is a number", { path: ["list"], contains: int(1) }, true, false],
  ["a number that is no element", { path: ["list"], contains: text("1") }, false, true],
  ["an element of an element", { path: ["list"], contains: text("b") }, false, true],
  ["an element of an empty array", { path: ["none"], contains: text("a") }, false, true],
  ["an element of a text", { path: ["text"], contains: text("a") }, false, false],
  ["an array as text", { path: ["list"], equals: text("a") }, false, false],
  ["what is there", { path: ["text"], exists: true }, true, false],
  ["an empty text is there", { path: ["empty"], exists: true }, true, false],
  ["an object is there", { path: ["kubernetes.io"], exists: true }, true, false],
  ["what is missing", { path: ["missing"], exists: true }, false, true],
  ["null is neither there nor missing", { path: ["nothing"], exists: true }, false, false],
  ["a nested claim", { path: ["kubernetes.io", "namespace"], equals: text("prod") }, true, false],
  ["a key with a dot is one key", { path: ["kubernetes", "io", "namespace"], exists: true }, false, true],
  ["what is below a text", { path: ["text", "length"], exists: true }, false, true],
  ["what is below an array", { path: ["list", "0"], exists: true }, false, true],
  ["what every object inherits", { path: ["constructor"], exists: true }, false, true],
  ["a prototype", { path: ["__proto__"], exists: true }, false, true],
];

describe("a condition", () => {
  for (const [name, one, positive, negative] of rows) {
    it(`${name}: ${positive ? "holds" : "does not hold"}`, () => {
      assert.equal(evaluate(condition(one), claims), positive);
      assert.equal(evaluate(condition({ ...one, negated: true }), claims), negative, "negated");
    });
  }

  it("inherited members of claims that have a prototype are missing", () => {
    const inherited = JSON.parse('{"__proto__":{"role":"admin"}}') as Record<string, unknown>;
    const derived = Object.create({ role: "admin" }) as Record<string, unknown>;
    for (const given of [derived, { ...inherited, constructor: undefined }]) {
      const one = condition({ path: ["role"], equals: text("admin") });
      assert.equal(holds(one, given, createIdentityBudget()), false);
    }
  });

  it("a test that this version does not know holds for no claim", () => {
    const [stored] = conditionsFromJson([{ path: ["text"], endsWith: "c" }]);
    assert.ok(stored);
    assert.equal(evaluate(stored, claims), false);
    assert.equal(evaluate({ ...stored, negated: true }, claims), false);
  });

  it("patterns beyond the budget match nothing, negated or not", () => {
    const budget = { left: 500 };
    const one = { path: ["text"], pattern: "(a|b|c)*(a|b|c)*(a|b|c)*x" };
    assert.equal(holds(condition({ ...one, negated: true }), { text: "abc".repeat(300) }, budget), false);
    assert.equal(holds(condition({ path: ["text"], pattern: "abc" }), { text: "abc" }, budget), false);
  });
});

describe("numbers are compared exactly", () => {
  const numbers: readonly (readonly [literal: string, value: string, holds: boolean])[] = [
    ["1.0", "1", true],
    ["1e2", "100", true],
    ["10e-1", "1", true],
    ["-0", "0", true],
    ["0.99999999999999999999", "1", false],
    ["1.00000000000000000001", "1", false],
    ["1e-400", "0", false],
    ["9007199254740991", "9007199254740991", true],
    ["9007199254740990.6", "9007199254740991", false],
    ["-9007199254740991", "-9007199254740991", true],
    [`1.${"0".repeat(5_000)}1`, "1", false],
  ];
  for (const [literal, value, expected] of numbers) {
    it(`${literal.slice(0, 30)} ${expected ? "equals" : "does not equal"} ${value}`, () => {
      for (const [path, json, test] of [
        [["n"], `{"n":${literal}}`, { equals: int(value) }],
        [["o", "n"], `{"o":{"x":1,"n":${literal},"y":2}}`, { equals: int(value) }],
        [["n"], `{"n":["x",${literal}]}`, { contains: int(value) }],
      ] as const) {
        assert.equal(evaluate(condition({ path, ...test }), json), expected, json.slice(0, 50));
        const isDecided = "contains" in test || (expected as boolean);
        if (!isDecided) assert.equal(evaluate(condition({ path, ...test, negated: true }), json), false, "negated");
      }
    });
  }

  it("numbers beyond 2^53 - 1 equal none", () => {
    const json = '{"n":9007199254740993,"m":[9007199254740992]}';
    for (const value of ["9007199254740991", "-9007199254740991", "0"]) {
      for (const negated of [false, true]) {
        assert.equal(evaluate(condition({ path: ["n"], equals: int(value), negated }), json), false);
      }
      assert.equal(evaluate(condition({ path: ["m"], contains: int(value) }), json), false);
    }
  });
});

/** Counts on how many random pairs the model differs. */
function countDifferences(pairs: number, mistakes: Mistakes = {}) {
  const random = createRandom(SEED);
  const counts = { differences: 0, held: 0 };
  for (let i = 0; i < pairs; i++) {
    const json = randomObject(random);
    const one = randomCondition(random);
    const result = evaluate(one, json);
    if (result) counts.held++;
    if (result !== modelHolds(one, json, mistakes)) counts.differences++;
  }
  return counts;
}

describe(`the model on ${PAIRS} random pairs, seed ${SEED}`, () => {
  it("says the same", () => {
    const { differences, held } = countDifferences(PAIRS);
    assert.equal(differences, 0);
    assert.ok(held > PAIRS / 20, `${held} held`);
  });

  for (const mistake of ["missingIsEmpty", "floats"] as const) {
    it(`differs with the mistake ${mistake}`, () => {
      assert.ok(countDifferences(5_000, { [mistake]: true }).differences > 0);
    });
  }
});

describe("stored conditions", () => {
  it("are read as they were", () => {
    const random = createRandom(SEED);
    for (let i = 0; i < 500; i++) {
      const one = randomCondition(random);
      const [stored] = conditionsFromJson(JSON.parse(JSON.stringify(conditionsToJson([one]))) as object[]);
      assert.deepEqual(stored, one);
    }
  });

  const faults: readonly (readonly [name: string, conditions: readonly object[], fault: RegExp])[] = [
    ["33 of them", Array.from({ length: 33 }, (_, i) => ({ path: [`c${i}`], exists: true })), /at most 32/],
    ["no path", [{ exists: true }], /1 to 10 keys/],
    ["a long path", [{ path: Array(11).fill("a"), exists: true }], /1 to 10 keys/],
    ["an empty key", [{ path: [""], exists: true }], /keys of 1 to 255/],
    ["no test", [{ path: ["a"] }], /must have one of/],
    ["exists: false", [{ path: ["a"], exists: false }], /must be true/],
    ["a value without a type", [{ path: ["a"], equals: {} }], /a text, a whole number or a boolean/],
    ["no values", [{ path: ["a"], oneOf: {} }], /must have a value/],
    ["values of two types", [{ path: ["a"], oneOf: { values: [text("1"), int(1)] } }], /of one type/],
    ["2^53", [{ path: ["a"], equals: int("9007199254740992") }], /2\^53 - 1/],
    ["an empty prefix", [{ path: ["a"], prefix: "" }], /1 to 1024 characters/],
    ["a pattern that is none", [{ path: ["a"], pattern: "(" }], /RE2 syntax/],
    ["a large pattern", [{ path: ["a"], pattern: "(x{1,30}){1,30}" }], /smaller regular expression/],
    ["a repetition", [1, 2].map(() => ({ path: ["a"], exists: true })), /must not repeat/],
    ["65 values", [{ path: ["a"], oneOf: { values: Array.from({ length: 65 }, (_, i) => int(i)) } }], /64 values/],
    [
      "8 KiB",
      Array.from({ length: 9 }, (_, i) => ({ path: [`c${i}`], equals: text("x".repeat(1_000)) })),
      /at most 8 KiB/,
    ],
    [
      "large patterns together",
      ["a", "b", "c"].map((key) => ({ path: [key], pattern: "[ab]{1,400}" })),
      /smaller regular expressions: at most 2000/,
    ],
  ];
  for (const [name, given, fault] of faults) {
    it(`${name} is refused`, () => {
      const broken = findConditionsFault(
        given.map((one) => condition(one)),
        "conditions",
      );
      assert.match(`${broken?.subject} ${broken?.rule}`, fault);
    });
  }
});

it("a condition in words, and what the log has of it", () => {
  const words: readonly (readonly [object, string, string])[] = [
    [{ path: ["repository_id"], equals: int(123) }, "repository_id equals 123", "repository_id equals"],
    [{ path: ["a"], equals: text("1"), negated: true }, 'a does not equal "1"', "a not equals"],
    [
      { path: ["kubernetes.io", "namespace"], oneOf: { values: [text("a"), text("b")] } },
      '"kubernetes.io".namespace is one of "a", "b"',
      '"kubernetes.io".namespace oneOf',
    ],
    [{ path: ["ref"], prefix: "refs/tags/" }, 'ref begins with "refs/tags/"', "ref prefix"],
    [{ path: ["ref"], pattern: "v.*" }, 'ref matches "v.*"', "ref pattern"],
    [{ path: ["groups"], contains: text("admins") }, 'groups contains "admins"', "groups contains"],
    [{ path: ["actor"], exists: true, negated: true }, "actor is missing", "actor not exists"],
  ];
  for (const [given, sentence, noted] of words) {
    const one = condition(given);
    assert.equal(formatCondition(one), sentence);
    assert.equal(noteCondition(one, { a: "secret" }).condition, noted);
  }
});

describe("hostile claims", () => {
  it("nested 64 levels deep are found by no longer path, and take no time", () => {
    const json = `${'{"a":'.repeat(63)}1${"}".repeat(63)}`;
    assert.equal(evaluate(condition({ path: Array(10).fill("a"), exists: true }), json), true);
  });

  it("a repeated name, or __proto__, makes the token malformed", () => {
    for (const json of [
      '{"a":1,"a":2}',
      '{"__proto__":{"a":1}}',
      `${"[".repeat(65)}${"]".repeat(65)}`,
      '{"a":1e999}',
    ]) {
      assert.equal(parseJsonObject(Buffer.from(json)), undefined);
    }
  });

  it("32 conditions on 16 KiB cost little", () => {
    const list = JSON.stringify({ list: Array.from({ length: 8_000 }, () => 1) });
    const many = Array.from({ length: 32 }, (_, i) => condition({ path: ["list"], contains: int(i + 2) }));
    const parsed = parse(list);
    const before = process.cpuUsage();
    for (const one of many) assert.equal(holds(one, parsed, createIdentityBudget()), false);
    const { user } = process.cpuUsage(before);
    assert.ok(user < 500_000, `${user} µs`);
  });

  it("fractions of 16 KiB are read in linear time", () => {
    const json = `{"n":[${Array.from({ length: 8 }, () => `1.${"0".repeat(2_000)}1`).join()}]}`;
    const before = process.cpuUsage();
    parse(json);
    assert.ok(process.cpuUsage(before).user < 500_000);
  });
});

it("a condition without fields is none that holds", () => {
  assert.equal(evaluate(create(ConditionSchema), "{}"), false);
});
