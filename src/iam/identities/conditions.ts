// The conditions on claims that an identity or an issuer guard has: their rules, and how they are stored. What they mean is in
// issuer/sts/conditions.ts.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { type Condition, ConditionSchema } from "#gen/arbor/trust/v1/trust_pb.js";
import { formatCondition } from "../../kernel/claim-condition.js";
import { type BrokenRule, breakRule, failedPrecondition } from "../../kernel/errors.js";
import { findConditionListFault } from "../../kernel/trust-rules.js";
import type { IdentityRow } from "../../store/iam/identities.js";
import { relationTypes } from "./relationship.js";

const MAX_BYTES = 8 * 1024;

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
  return (
    findConditionListFault(conditions, field) ??
    (Buffer.byteLength(JSON.stringify(conditionsToJson(conditions))) > MAX_BYTES
      ? breakRule(field, "must be at most 8 KiB in all")
      : undefined)
  );
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
