import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.js";

/** Whether a request cannot do without the field (google.api.field_behavior). */
export function isRequired(field: DescField): boolean {
  return hasOption(field, field_behavior) && getOption(field, field_behavior).includes(FieldBehavior.REQUIRED);
}
