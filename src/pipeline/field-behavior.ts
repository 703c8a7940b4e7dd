import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { type FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.js";

/** Whether the proto declares a behaviour of a field (google.api.field_behavior, AIP-203). */
export function hasBehavior(field: DescField, behavior: FieldBehavior): boolean {
  return hasOption(field, field_behavior) && getOption(field, field_behavior).includes(behavior);
}
