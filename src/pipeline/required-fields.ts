import { type DescMessage, getOption, hasOption, isFieldSet, type Message, ScalarType } from "@bufbuild/protobuf";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.js";
import { type FieldViolation, invalidArgument } from "../kernel/errors.js";

type Check = (request: Message) => void;

const checks = new WeakMap<DescMessage, Check>();

/**
 * Checks the request's own REQUIRED fields (google.api.field_behavior). What a resource inside the
 * request requires depends on the operation and is checked by the resource kit.
 *
 * A required resource that is absent is left to the kit as well: an empty body of a create must
 * name the resource's field, not the body (spec section 7).
 *
 * @throws ApiError INVALID_ARGUMENT naming each missing field.
 */
export function requiredFieldsOf(message: DescMessage): Check {
  let check = checks.get(message);
  if (check === undefined) {
    check = compile(message);
    checks.set(message, check);
  }
  return check;
}

function compile(message: DescMessage): Check {
  const required = message.fields.filter(
    (field) =>
      hasOption(field, field_behavior) &&
      getOption(field, field_behavior).includes(FieldBehavior.REQUIRED) &&
      field.fieldKind !== "message" &&
      // Where false cannot be told from absent, both are an answer.
      field.scalar !== ScalarType.BOOL,
  );
  return (request) => {
    let violations: FieldViolation[] | undefined;
    for (const field of required) {
      if (isFieldSet(request, field)) continue;
      violations ??= [];
      violations.push({ field: field.jsonName, description: `${field.jsonName} is required` });
    }
    if (violations) throw invalidArgument(...violations);
  };
}
