// Conditions on the claims of a token (proto/arbor/trust/v1): those of an identity, and those of an issuer guard. Values are
// compared by type, and nothing is converted. What cannot be decided, such as a pattern on a text that is too long, is not
// satisfied, also where the condition is negated.
import type { Condition, Value } from "#gen/arbor/trust/v1/trust_pb.js";
import type { NotedCondition } from "../../kernel/asserted-bearer.js";
import { formatClaimPath, nameTest } from "../../kernel/claim-condition.js";
import { isJsonObject, isRounded } from "../../kernel/strict-json.js";
import type { TokenClaims } from "../upstream/token.js";
import { type StepBudget, testPattern } from "./claim-pattern.js";

type Claims = TokenClaims["claims"];

/** Whether the claims of a token satisfy a condition. */
export function holds({ path, negated, test }: Condition, claims: Claims, budget: StepBudget): boolean {
  const claim = findClaim(claims, path);
  if (claim === undefined) return test.case === "exists" && negated;
  if (claim === null) return false;
  const result = evaluate(test, claim, budget);
  return result !== undefined && result !== negated;
}

// Undefined for a claim of another type, and for a test that this version does not know.
function evaluate(test: Condition["test"], claim: unknown, budget: StepBudget): boolean | undefined {
  switch (test.case) {
    case "exists":
      return true;
    case "equals":
      return equalsValue(claim, test.value);
    case "oneOf": {
      const results = test.value.values.map((value) => equalsValue(claim, value));
      return results.includes(undefined) ? undefined : results.includes(true);
    }
    case "prefix":
      return typeof claim === "string" ? claim.startsWith(test.value) : undefined;
    case "pattern":
      return typeof claim === "string" ? testPattern(test.value, claim, budget) : undefined;
    case "contains":
      return Array.isArray(claim) ? claim.some((_, i) => equalsValue(read(claim, i), test.value) === true) : undefined;
    default:
      return undefined;
  }
}

function equalsValue(claim: unknown, { kind }: Value): boolean | undefined {
  switch (kind.case) {
    case "stringValue":
      return typeof claim === "string" ? claim === kind.value : undefined;
    case "intValue":
      return Number.isSafeInteger(claim) ? BigInt(claim as number) === kind.value : undefined;
    case "boolValue":
      return typeof claim === "boolean" ? claim === kind.value : undefined;
    default:
      return undefined;
  }
}

/** Finds the claim at a path; undefined where it is missing. */
export function findClaim(claims: Claims, path: readonly string[]): unknown {
  let claim: unknown = claims;
  for (const key of path) {
    // Own members only: claims that are tested may have a prototype.
    if (!isJsonObject(claim) || !Object.hasOwn(claim, key)) return undefined;
    claim = read(claim, key);
  }
  return claim;
}

// A number that reading has rounded to a whole one is none of the whole numbers.
function read(container: object, key: string | number): unknown {
  return isRounded(container, key) ? Number.NaN : (container as Record<string | number, unknown>)[key];
}

/** The cause of an error about a condition that the claims of a token do not satisfy. */
export class ConditionMismatch extends Error {
  readonly condition: Condition;
  /** Whether it is one of the issuer guard, and not of the identity. */
  readonly ofGuard: boolean;

  constructor(condition: Condition, ofGuard: boolean) {
    super("a condition on the claims is not satisfied");
    this.name = "ConditionMismatch";
    this.condition = condition;
    this.ofGuard = ofGuard;
  }
}

/** Describes for logs why a condition is not satisfied. */
export function noteCondition({ path, negated, test }: Condition, claims: Claims): NotedCondition {
  return {
    condition: `${formatClaimPath(path)} ${nameTest({ negated, test })}`,
    wanted: findWantedType({ negated, test }),
    found: typeOfClaim(findClaim(claims, path)),
  };
}

function findWantedType({ negated, test }: Pick<Condition, "negated" | "test">): string {
  switch (test.case) {
    case "exists":
      return negated ? "missing" : "any";
    case "equals":
      return typeOfValue(test.value);
    case "oneOf":
      return test.value.values.map(typeOfValue)[0] ?? "unknown";
    case "contains":
      return "array";
    case "prefix":
    case "pattern":
      return "string";
    default:
      return "unknown";
  }
}

function typeOfValue({ kind }: Value): string {
  const types = { stringValue: "string", intValue: "integer", boolValue: "boolean" } as const;
  return kind.case === undefined ? "unknown" : types[kind.case];
}

/** The type of a claim, as conditions tell types apart. */
export function typeOfClaim(claim: unknown): string {
  if (claim === undefined) return "missing";
  if (claim === null) return "null";
  if (Array.isArray(claim)) return "array";
  if (typeof claim === "number") return Number.isSafeInteger(claim) ? "integer" : "number";
  return typeof claim;
}
