import { type DescEnumValue, type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.js";
import type { Comments } from "./proto-comments.js";

// The messages of version 1 were published without google.api.field_behavior: their comments say
// the same in set words.
const REQUIRED = /\bRequired[.;]|: at least one\b/;
const NOT_OFFERED = /\bNot offered\b/;
const SET_BY_SERVICE = /\b(?:Assigned|Set) by the service\b/;

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

/** Whether a request cannot do without the field, by its options or by its comment. */
export function isDocumentedRequired(field: DescField, comments: Comments): boolean {
  return isRequired(field) || REQUIRED.test(commentOf(field, comments));
}

/** Whether requests are better sent without the field: only the service sets it, or it is not used any more. */
export function isDocumentedUnused(field: DescField, comments: Comments): boolean {
  return isOutputOnly(field) || field.deprecated || SET_BY_SERVICE.test(commentOf(field, comments));
}

/** Whether requests may hold a value of an enum, by its comment. */
export function isOffered({ name, parent }: DescEnumValue, comments: Comments): boolean {
  return !NOT_OFFERED.test(comments(`${parent.typeName}.${name}`));
}

/** The comment of a field; empty if it has none. */
export function commentOf(field: DescField, comments: Comments): string {
  return comments(`${field.parent.typeName}.${field.name}`);
}

function hasBehavior(field: DescField, behavior: FieldBehavior): boolean {
  return hasOption(field, field_behavior) && getOption(field, field_behavior).includes(behavior);
}
