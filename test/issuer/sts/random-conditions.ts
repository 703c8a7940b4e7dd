// Random claims, as the JSON of a token, and conditions on them, which agree often enough to tell evaluators apart.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Condition, ConditionSchema, type ValueSchema } from "#gen/arbor/trust/v1/trust_pb.js";
import type { Random } from "../../support/openapi/random.js";

type ValueInit = MessageInitShape<typeof ValueSchema>;
type TestInit = NonNullable<MessageInitShape<typeof ConditionSchema>["test"]>;

const KEYS = ["a", "b", "a.b", "constructor", "toString", "length", "0", "hasOwnProperty"];
const TEXTS = ["", "a", "ab", "abc", "1", "true", "null", "é", "a\nb", "x".repeat(1_030)];
const NUMBERS = [
  ...["0", "-0", "0.0", "1", "-1", "1.0", "1e0", "10e-1", "0.99999999999999999999", "1.5", "1e-400", "100", "1e2"],
  ...["9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740991", "9007199254740990.6", "1e300"],
  ...["123456789012345678901234567890", "5e-324", "0.1e1", "1.00000000000000000001"],
];
const INTS = [0n, 1n, -1n, 100n, 2n ** 53n - 1n, -(2n ** 53n - 1n), 2n ** 53n - 2n];
const PATTERNS = ["a.*", "a|ab", "[a-c]+", "(ab)?c?", ".", "[^b]*", "1", ""];

/** A JSON value of a few levels. */
export function randomJson(random: Random, depth = 0): string {
  const kind = random.int(depth > 3 ? 5 : 9);
  if (kind === 0) return random.pick(["true", "false"]);
  if (kind === 1) return "null";
  if (kind <= 2) return JSON.stringify(random.pick(TEXTS));
  if (kind <= 4) return random.chance(0.5) ? random.pick(NUMBERS) : JSON.stringify(random.pick(TEXTS));
  const values = Array.from({ length: random.int(4) }, () => randomJson(random, depth + 1));
  return kind <= 6 ? `[${values.join(",")}]` : randomObject(random, depth + 1);
}

/** A JSON object. */
export function randomObject(random: Random, depth = 0): string {
  const keys = KEYS.filter(() => random.chance(0.5));
  return `{${keys.map((key) => `${JSON.stringify(key)}:${randomJson(random, depth + 1)}`).join(",")}}`;
}

function randomValue(random: Random, kind = random.int(3)): ValueInit {
  if (kind === 0) return { kind: { case: "stringValue", value: random.pick(TEXTS) } };
  if (kind === 1) return { kind: { case: "intValue", value: random.pick(INTS) } };
  return { kind: { case: "boolValue", value: random.chance(0.5) } };
}

function randomTest(random: Random): TestInit {
  const kind = random.int(3);
  const values = Array.from({ length: 1 + random.int(3) }, () => randomValue(random, kind));
  return random.pick<TestInit>([
    { case: "equals", value: randomValue(random) },
    { case: "equals", value: randomValue(random, 1) },
    { case: "oneOf", value: { values } },
    { case: "prefix", value: random.pick(TEXTS) },
    { case: "pattern", value: random.pick(PATTERNS) },
    { case: "contains", value: randomValue(random) },
    { case: "exists", value: true },
  ]);
}

/** A condition. */
export function randomCondition(random: Random): Condition {
  const path = Array.from({ length: 1 + random.int(2) }, () => random.pick(KEYS));
  return create(ConditionSchema, { path, negated: random.chance(0.4), test: randomTest(random) });
}
