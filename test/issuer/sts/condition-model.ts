// What conditions mean, written again as plainly as possible, on the text of the claims: numbers are compared as they are
// written. Slow, and without a bound.
import type { Condition, Value } from "#gen/arbor/trust/v1/trust_pb.js";

/** Ways to get it wrong, which a comparison must notice. */
export interface Mistakes {
  /** A missing claim is the empty text. */
  readonly missingIsEmpty?: boolean;
  /** Numbers are compared as doubles. */
  readonly floats?: boolean;
}

class JsonNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Whether claims, as the JSON of a token, satisfy a condition. */
export function modelHolds(condition: Condition, json: string, mistakes: Mistakes = {}): boolean {
  let claim: unknown = readJson(json);
  for (const key of condition.path) {
    const isObject = claim instanceof Map;
    claim = isObject ? (claim as Map<string, unknown>).get(key) : undefined;
  }
  if (claim === undefined && mistakes.missingIsEmpty) claim = "";
  const { test, negated } = condition;
  if (claim === undefined) return test.case === "exists" && negated;
  if (claim === null) return false;
  if (test.case === "exists") return !negated;
  if (test.case === "prefix" || test.case === "pattern") {
    if (typeof claim !== "string") return false;
    if (test.case === "prefix") return (claim.slice(0, test.value.length) === test.value) !== negated;
    if (claim.length > 1_024) return false;
    return new RegExp(`^(?:${test.value})$`, "u").test(claim) !== negated;
  }
  if (test.case === "contains") {
    if (!Array.isArray(claim)) return false;
    return claim.some((one) => isOfType(one, test.value, mistakes) && isEqual(one, test.value, mistakes)) !== negated;
  }
  const values = test.case === "equals" ? [test.value] : test.case === "oneOf" ? test.value.values : [];
  const first = values[0];
  if (first === undefined || !isOfType(claim, first, mistakes)) return false;
  return values.some((value) => isEqual(claim, value, mistakes)) !== negated;
}

function isOfType(claim: unknown, { kind }: Value, mistakes: Mistakes): boolean {
  if (kind.case === "stringValue") return typeof claim === "string";
  if (kind.case === "boolValue") return typeof claim === "boolean";
  if (!(claim instanceof JsonNumber)) return false;
  if (mistakes.floats) return true;
  const whole = toWhole(claim.text);
  return whole !== undefined && whole <= 2n ** 53n - 1n && whole >= -(2n ** 53n - 1n);
}

function isEqual(claim: unknown, { kind }: Value, mistakes: Mistakes): boolean {
  if (!(claim instanceof JsonNumber)) return claim === kind.value;
  return mistakes.floats ? Number(claim.text) === Number(kind.value) : toWhole(claim.text) === kind.value;
}

// The whole number that a literal is, exactly; undefined where it is none.
function toWhole(literal: string): bigint | undefined {
  const [mantissa = "", exponent = "0"] = literal.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const digits = BigInt(`${whole}${fraction}`.replace("-", ""));
  const sign = literal.startsWith("-") ? -1n : 1n;
  const shift = BigInt(exponent) - BigInt(fraction.length);
  if (digits === 0n) return 0n;
  if (shift >= 0n) return shift > 400n ? undefined : sign * digits * 10n ** shift;
  const divisor = 10n ** -shift;
  return digits % divisor === 0n ? (sign * digits) / divisor : undefined;
}

// Objects become maps, and numbers keep their text.
function readJson(json: string): unknown {
  const marked = json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (one) => (one[0] === '"' ? one : `{"#":"${one}"}`));
  const convert = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(convert);
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value);
    if (entries[0]?.[0] === "#") return new JsonNumber(String(entries[0][1]));
    return new Map(entries.map(([key, one]) => [key, convert(one)]));
  };
  return convert(JSON.parse(marked));
}
