import { type DescEnumValue, type DescField, type DescMessage, type DescOneof, ScalarType } from "@bufbuild/protobuf";
import { FieldBehavior } from "#gen/google/api/field_behavior_pb.js";
import { hasBehavior, isEmptyValid, isRequired } from "./fields.js";
import type { Comments } from "./proto-comments.js";

// The published messages have few google.api.field_behavior options, those of version 1 none, and options must not be
// added to them. Their comments say the rest in fixed phrases. A test omits every field of every request, so that wrong
// phrases fail.
const REQUIRED = /\bRequired(?: on create)?[.;,]|: at least one\b/;
const SET_FOR_BATCH = /\bunless a batch has one for all\b/;
const UID = /^The uids? |\b(?:of|with) (?:this|these) uids?\b/;
const OR_ROOT = /A single `\/`/;
const URL_TEXT = /^The (?:https )?URL\b/;
const NOT_OFFERED = /\bNot offered\b/;
const ASSIGNED = /\bAssigned by the service\b/;
const SET_BY_SERVICE = /\b(?:Assigned|Set) by the service\b/;

/** Whether only the service sets the field, so that requests with it are accepted and it is ignored. */
export function isOutputOnly(field: DescField): boolean {
  return hasBehavior(field, FieldBehavior.OUTPUT_ONLY);
}

/** Whether the field is never part of a response. */
export function isInputOnly(field: DescField): boolean {
  return hasBehavior(field, FieldBehavior.INPUT_ONLY);
}

/** Whether a request must have the field, by its options or by its comment. */
export function isDocumentedRequired(field: DescField, comments: Comments): boolean {
  return isRequired(field) || REQUIRED.test(commentOf(field, comments));
}

/**
 * Whether the service rejects a request without the field, by its options or by its comment; see
 * {@link isEmptyValid}.
 */
export function isRequiredInput(field: DescField, comments: Comments): boolean {
  return isDocumentedRequired(field, comments) && !isEmptyValid(field);
}

/**
 * The oneofs of a message of which the service rejects a request without any member: those whose members are all
 * REQUIRED, or whose comment says so. A oneof of one member is none: that member is required by itself.
 */
export function findRequiredOneofs(desc: DescMessage, comments: Comments): readonly DescOneof[] {
  return desc.oneofs.filter(
    (oneof) =>
      oneof.fields.length > 1 &&
      (oneof.fields.every((field) => hasBehavior(field, FieldBehavior.REQUIRED)) ||
        REQUIRED.test(commentOf(oneof, comments))),
  );
}

/** Whether a request of a batch may omit the field, because the batch has it for all of its requests (AIP-233). */
export function isSetForBatch(field: DescField, comments: Comments): boolean {
  return SET_FOR_BATCH.test(commentOf(field, comments));
}

/** Whether the values of the field are uids, by its comment. */
export function isUid(field: DescField, comments: Comments): boolean {
  return field.scalar === ScalarType.STRING && UID.test(commentOf(field, comments));
}

/** Whether the uid may also be `/`, the parent of all root groups, by the comment of the field. */
export function isUidOrRoot(field: DescField, comments: Comments): boolean {
  return OR_ROOT.test(commentOf(field, comments));
}

/** Whether the value of the field is a URL, by its comment. */
export function isUrl(field: DescField, comments: Comments): boolean {
  return URL_TEXT.test(commentOf(field, comments));
}

/** Whether the service always chooses the value itself, by the comment of the field. */
export function isAssigned(field: DescField, comments: Comments): boolean {
  return ASSIGNED.test(commentOf(field, comments));
}

/** Whether requests should omit the field: only the service sets it, or it is no longer used. */
export function isDocumentedUnused(field: DescField, comments: Comments): boolean {
  return isOutputOnly(field) || field.deprecated || SET_BY_SERVICE.test(commentOf(field, comments));
}

/** Whether requests may have a value of an enum, by its comment. */
export function isOffered({ name, parent }: DescEnumValue, comments: Comments): boolean {
  return !NOT_OFFERED.test(comments(`${parent.typeName}.${name}`));
}

/** The comment of a field or oneof; empty if it has none. */
export function commentOf({ parent, name }: DescField | DescOneof, comments: Comments): string {
  return comments(`${parent.typeName}.${name}`);
}
