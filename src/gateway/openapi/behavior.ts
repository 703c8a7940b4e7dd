import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.js";

/** Whether a request cannot do without the field (google.api.field_behavior, AIP-203). */
export function isRequired(field: DescField): boolean {
  return hasBehavior(field, FieldBehavior.REQUIRED);
}

/** Whether only the service sets the field: in requests it is passed over. */
export function isOutputOnly(field: DescField): boolean {
  return hasBehavior(field, FieldBehavior.OUTPUT_ONLY);
}

/** Whether the field is never part of an answer. */
export function isInputOnly(field: DescField): boolean {
  return hasBehavior(field, FieldBehavior.INPUT_ONLY);
}

function hasBehavior(field: DescField, behavior: FieldBehavior): boolean {
  return hasOption(field, field_behavior) && getOption(field, field_behavior).includes(behavior);
}
