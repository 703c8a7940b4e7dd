// The conditions on claims that an identity or an issuer guard has: their rules, and how they are stored. What they mean is in
// issuer/sts/conditions.ts.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { type Condition, ConditionSchema, type Value } from "#gen/arbor/trust/v1/trust_pb.js";
import { formatCondition } from "../../kernel/claim-condition.js";
import { type BrokenRule, breakRule, failedPrecondition } from "../../kernel/errors.js";
import { isPrintable } from "../../pipeline/resource/rules.js";
import type { IdentityRow } from "../../store/iam/identities.js";
import { findPatternFault, findTextFault, MAX_PROGRAMS, measureProgram, relationTypes } from "./relationship.js";

const MAX_CONDITIONS = 32;
const MAX_VALUES = 64;
const MAX_BYTES = 8 * 1024;
const MAX_KEYS = 10;
const MAX_KEY = 255;

/** Converts conditions to what is stored: the JSON of their messages. */
export function conditionsToJson(conditions: readonly Condition[]): readonly object[] {
  return conditions.map((condition) => toJson(ConditionSchema, create(ConditionSchema, condition)) as JsonObject);
}

/** Reads stored conditions. No claim satisfies one with a test that only a newer version knows. */
export function conditionsFromJson(json: readonly object[]): Condition[] {
  return json.map((one) => fromJson(ConditionSchema, one as JsonObject, { ignoreUnknownFields: true }));
}

/** Finds the rule that conditions break; undefined for valid ones. */
export function findConditionsFault(conditions: readonly Condition[], field: string): BrokenRule | undefined {
  if (conditions.length > MAX_CONDITIONS) return breakRule(field, `must be at most ${MAX_CONDITIONS}`);
  for (const [i, condition] of conditions.entries()) {
    const broken = findConditionFault(condition, `${field}[${i}]`);
    if (broken !== undefined) return broken;
  }
  const values = conditions.reduce((sum, condition) => sum + valuesOf(condition).length, 0);
  if (values > MAX_VALUES) return breakRule(field, `must have at most ${MAX_VALUES} values in all`);
  const texts = conditions.map((condition) => formatCondition(condition));
  if (new Set(texts).size < texts.length) return breakRule(field, "must not repeat a condition");
  if (Buffer.byteLength(JSON.stringify(conditionsToJson(conditions))) > MAX_BYTES)
    return breakRule(field, "must be at most 8 KiB in all");
  return findProgramsFault(conditions, field);
}

/** Finds whether the patterns of conditions are too large together. */
export function findProgramsFault(conditions: readonly Condition[], field: string): BrokenRule | undefined {
  const patterns = conditions.flatMap(({ test }) => (test.case === "pattern" ? [test.value] : []));
  const size = patterns.reduce((sum, pattern) => sum + measureProgram(pattern), 0);
  return size > MAX_PROGRAMS
    ? breakRule(field, `must have smaller regular expressions: at most ${MAX_PROGRAMS} steps of RE2 in all`)
    : undefined;
}

function findConditionFault(condition: Condition, field: string): BrokenRule | undefined {
  const { path, test } = condition;
  if (path.length === 0 || path.length > MAX_KEYS) return breakRule(`${field}.path`, `must be 1 to ${MAX_KEYS} keys`);
  for (const key of path) {
    if (key === "" || key.length > MAX_KEY || !isPrintable(key))
      return breakRule(`${field}.path`, `must have keys of 1 to ${MAX_KEY} characters without control characters`);
  }
  switch (test.case) {
    case undefined:
      return breakRule(field, "must have one of {}", "equals, oneOf, prefix, pattern, contains, exists");
    case "exists":
      return test.value ? undefined : breakRule(`${field}.exists`, "must be true: use negated for a missing claim");
    case "prefix":
      return findTextFault(test.value, `${field}.prefix`);
    case "pattern":
      return findPatternFault(test.value, `${field}.pattern`);
    default:
      return findValuesFault(valuesOf(condition), `${field}.${test.case}`);
  }
}

function findValuesFault(values: readonly Value[], field: string): BrokenRule | undefined {
  if (values.length === 0) return breakRule(field, "must have a value");
  if (new Set(values.map(({ kind }) => kind.case)).size > 1) return breakRule(field, "must have values of one type");
  for (const { kind } of values) {
    const broken = findValueFault(kind, field);
    if (broken !== undefined) return broken;
  }
  return undefined;
}

function findValueFault(kind: Value["kind"], field: string): BrokenRule | undefined {
  if (kind.case === undefined) return breakRule(field, "must be a text, a whole number or a boolean");
  if (kind.case === "stringValue" && kind.value !== "") return findTextFault(kind.value, field);
  if (kind.case === "intValue" && !Number.isSafeInteger(Number(kind.value)))
    return breakRule(field, "must be a whole number from -(2^53 - 1) to 2^53 - 1");
  return undefined;
}

function valuesOf({ test }: Condition): readonly Value[] {
  switch (test.case) {
    case "equals":
    case "contains":
      return [test.value];
    case "oneOf":
      return test.value.values;
    default:
      return [];
  }
}

const conditional = [relationTypes.claimMatch, relationTypes.staticKeys];

/**
 * Requires that conditions apply to how an identity is assumed.
 *
 * @throws ApiError FAILED_PRECONDITION that names the conditions
 */
export function requireConditionsApply({ relation, conditions }: Pick<IdentityRow, "relation" | "conditions">): void {
  if (conditions.length === 0 || conditional.includes(relation)) return;
  const [first = "", ...more] = conditionsFromJson(conditions).map(formatCondition);
  const named = more.length === 0 ? first : `${first}, and ${more.length} more`;
  const rule = `conditions apply to claim matches and static keys alone, and the identity has conditions: ${named}`;
  throw failedPrecondition("IDENTITY_CONDITIONS", rule);
}
