// JSON bodies as messages, by the rule of google.api.http: the whole request,
// or one field of it.
import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  type Registry,
} from "@bufbuild/protobuf";
import {
  fieldWithoutUnknown,
  isObject,
  unsafeIntegerIn,
  unsafeIntegerInField,
  violationIn,
  violationInField,
  withoutUnknown,
} from "../../codec/body-check.js";
import { toJsonMaskPath } from "../../codec/field-mask.js";
import { wellKnownName } from "../../codec/fields.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import { parseStrictJson } from "../../kernel/strict-json.js";

/** A request made of a body, and the JSON it was made of. */
export interface BodyMessage {
  readonly message: Message;
  readonly json: JsonValue;
}

/** How to read the bodies of one HTTP rule. */
export type BodyMessageReader = (text: string) => BodyMessage;

/**
 * Makes the reader of the bodies of one HTTP rule.
 *
 * Unknown fields are passed over, as published clients expect, unless `strict`; an unknown name of
 * an enum is always refused. The reader throws ApiError INVALID_ARGUMENT naming the field by its
 * path within the body.
 */
export function createBodyReader(
  input: DescMessage,
  body: "all" | DescField,
  registry: Registry,
  strict: boolean,
): BodyMessageReader {
  const masks = body === "all" ? input.fields.filter(isFieldMask) : [];
  const form = body === "all" ? wholeForm(input, registry) : fieldForm(body, registry);
  const options = { registry };

  return (text) => {
    const { value: json, hasUnsafeInteger } = parseStrictJson(text, "body");
    if (!form.accepts(json)) throw refuse(form.violation(json));
    if (hasUnsafeInteger) {
      const field = form.unsafeInteger(json);
      if (field !== undefined) {
        throw refuse({ field, description: `${field} must be a string of digits, as it is beyond 2^53` });
      }
    }
    for (const mask of masks) camelCaseMask(mask, json);
    try {
      return { message: fromJson(input, form.wrap(json), options), json };
    } catch {
      return again(json);
    }
  };

  // The first attempt is strict. When it fails for unknown fields alone, the second succeeds.
  function again(json: JsonValue): BodyMessage {
    const known = strict ? json : form.withoutUnknown(json);
    try {
      if (!strict) return { message: fromJson(input, form.wrap(known), options), json };
    } catch {
      // Told apart below.
    }
    throw refuse(form.violation(known));
  }
}

interface BodyForm {
  accepts(json: JsonValue): boolean;
  wrap(json: JsonValue): JsonValue;
  withoutUnknown(json: JsonValue): JsonValue;
  unsafeInteger(json: JsonValue): string | undefined;
  violation(json: JsonValue): FieldViolation;
}

function wholeForm(input: DescMessage, registry: Registry): BodyForm {
  return {
    accepts: (json) => wellKnownName(input) !== undefined || isObject(json),
    wrap: (json) => json,
    withoutUnknown: (json) => withoutUnknown(input, json),
    unsafeInteger: (json) => unsafeIntegerIn(input, json, ""),
    violation: (json) => violationIn(input, json, "", registry),
  };
}

// A message as the body stands for itself: errors name its fields as its own JSON does. Any other
// field is named.
function fieldForm(field: DescField, registry: Registry): BodyForm {
  const plain = field.fieldKind === "message" && wellKnownName(field.message) === undefined;
  const path = field.fieldKind === "message" ? "" : field.jsonName;
  return {
    accepts: (json) => (plain ? isObject(json) : json !== null || field.message !== undefined),
    wrap: (json) => ({ [field.jsonName]: json }),
    withoutUnknown: (json) => fieldWithoutUnknown(field, json),
    unsafeInteger: (json) => unsafeIntegerInField(field, json, path),
    violation: (json) => violationInField(field, json, path, registry),
  };
}

function isFieldMask(field: DescField): boolean {
  return field.fieldKind === "message" && wellKnownName(field.message) === "FieldMask";
}

// The JSON form of a field mask knows camelCase alone; callers may use either (docs/api-rules.md#masks).
function camelCaseMask(field: DescField, json: JsonValue): void {
  if (!isObject(json)) return;
  for (const name of [field.name, field.jsonName]) {
    const value = json[name];
    if (typeof value === "string") json[name] = value.split(",").map(toJsonMaskPath).join(",");
  }
}

function refuse(violation: FieldViolation): Error {
  return invalidArgument(violation);
}
