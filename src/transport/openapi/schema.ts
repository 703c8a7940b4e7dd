// JSON Schemas of messages. A message has several: a response has fields that requests need not or must not have, and
// the detail of an error has only the fields that are set.
//
// A request may have null for any optional field, which means absent in proto3 JSON, and numbers instead of names of
// enum values.
//
// Responses have no `additionalProperties: false`: the API may add fields within a version, and clients that validate
// by an older document must not fail. The tests of this project add it.
import { type DescEnum, type DescField, type DescMessage, type DescOneof, ScalarType } from "@bufbuild/protobuf";
import {
  findRequiredOneofs,
  isAssigned,
  isInputOnly,
  isOutputOnly,
  isRequiredInput,
  isSetForBatch,
  isUid,
} from "../../codec/field-behavior.js";
import { isPrintedEmpty } from "../../codec/json-writer.js";
import type { Comments } from "../../codec/proto-comments.js";
import {
  buildDescription,
  buildEnumSchema,
  buildMapSchema,
  buildNullableSchema,
  buildScalarSchema,
  buildUidSchema,
  buildWellKnownSchema,
  type Schema,
} from "./value-schema.js";

/**
 * The use of a message: in a response (`answer`) or in the `detail` of an error, at any depth; as the `body` of a
 * request with its required fields, as one request of a `batch`, or as a `patch`, whose fields are all optional.
 */
export type Form = "answer" | "detail" | "body" | "batch" | "patch";

/** The schemas of a document by name, built when they are first referred to. */
export interface Schemas {
  /** A reference to the schema of a message, or the schema of a well-known type. */
  refTo(desc: DescMessage, form: Form): Schema;

  /** The schema of a field's value. */
  ofField(field: DescField, form: Form): Schema;

  /**
   * The schema of a body without the fields that the path sets.
   *
   * @param inPath their paths from `desc`, in the names of the proto
   */
  ofBody(desc: DescMessage, form: "body" | "patch", inPath: readonly string[]): Schema;

  /** All schemas referred to so far. */
  components(): Record<string, Schema>;
}

/** Creates an empty collection of schemas whose descriptions come from `comments`. */
export function createSchemas(comments: Comments): Schemas {
  const made = new Map<string, Schema>();

  function refTo(desc: DescMessage, form: Form): Schema {
    const wellKnown = buildWellKnownSchema(desc, isIncoming(form) ? "in" : "out");
    if (wellKnown) return wellKnown;
    const name = componentName(desc, form);
    if (!made.has(name)) {
      // Added before its fields are, because messages may be recursive.
      const schema: Schema = {};
      made.set(name, schema);
      Object.assign(schema, buildMessageSchema(desc, form, []));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  function buildMessageSchema(desc: DescMessage, form: Form, inPath: readonly string[]): Schema {
    const fields = desc.fields.filter((field) => isIncluded(field, form) && !inPath.includes(field.name));
    const required = fields.filter((field) => isAlwaysThere(field, form)).map(({ jsonName }) => jsonName);
    const oneofs = isWholeRequest(form) ? findOpenOneofs(desc, inPath, comments) : [];
    const properties = fields.map((field) => {
      const schema = buildFieldSchema(field, form, pathsBelow(inPath, field));
      const isNullable = isIncoming(form) && !isNeeded(field, form);
      return [field.jsonName, { ...(isNullable ? buildNullableSchema(schema) : schema), ...notesOf(field, form) }];
    });
    return {
      type: "object",
      ...buildDescription(comments(desc.typeName)),
      ...(required.length > 0 && { required }),
      properties: Object.fromEntries(properties),
      ...(oneofs.length > 0 && { not: { anyOf: oneofs.map(buildUnsetSchema) } }),
    };
  }

  function notesOf(field: DescField, form: Form): Schema {
    const otherMembers = (field.oneof?.fields ?? [])
      .filter((one) => isIncluded(one, form))
      .map((one) => `\`${one.jsonName}\``);
    const notes = [
      comments(`${field.parent.typeName}.${field.name}`),
      otherMembers.length > 1
        ? `${isNeededOneof(field, form) ? "Exactly" : "At most"} one is set of ${otherMembers.join(", ")}.`
        : "",
    ];
    return {
      // Without a title, generators name the type after message and field, which may be the name of another message.
      ...(field.fieldKind === "map" && { title: `${field.jsonName}Map` }),
      ...buildDescription(notes.filter((note) => note !== "").join(" ")),
      ...(field.deprecated && { deprecated: true }),
      ...(!isIncoming(form) && field.name === "next_page_token" && { minLength: 1 }),
    };
  }

  function buildFieldSchema(field: DescField, form: Form, inPath: readonly string[]): Schema {
    if (field.fieldKind === "list") {
      const items = single(field, isBatch(field, form) ? "batch" : form);
      return { type: "array", items, ...(isNotEmpty(field, form) && { minItems: 1 }) };
    }
    if (field.fieldKind === "map") return buildMapSchema(field.mapKey, single(field, form));
    if (field.message && inPath.length > 0 && isIncoming(form)) return buildMessageSchema(field.message, form, inPath);
    return single(field, form);
  }

  function single(field: DescField, form: Form): Schema {
    if (field.message) return refTo(field.message, form);
    if (isUid(field, comments)) return isSet(field, form) ? buildUidSchema() : buildUidSchema("");
    const isFull = field.fieldKind !== "list" && isNotEmpty(field, form);
    if (!field.enum) {
      const schema = buildScalarSchema(field.scalar ?? ScalarType.STRING, isIncoming(form) ? "in" : "out");
      return isFull && schema.type === "string" ? { ...schema, minLength: 1 } : schema;
    }
    if (field.enum.typeName === "google.protobuf.NullValue") return { type: "null" };
    const schema = enumOrNumber(field.enum);
    return isFull ? { ...schema, not: { enum: [field.enum.values[0]?.name ?? "", 0] } } : schema;
  }

  // Of a required field, an empty value is as good as none.
  function isNotEmpty(field: DescField, form: Form): boolean {
    return isIncoming(form) && isNeeded(field, form);
  }

  // Requests may have numbers, and responses have the number of a value that this version does not know. It is a
  // component, so that generators make one type of all its uses.
  function enumOrNumber(desc: DescEnum): Schema {
    const { typeName } = desc;
    const name = `${typeName}-or-number`;
    if (!made.has(typeName)) {
      const names = { $ref: `#/components/schemas/${typeName}` };
      made.set(typeName, buildEnumSchema(desc, comments));
      made.set(name, { anyOf: [names, { type: "integer", format: "int32" }] });
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  // Whether a field is always present and never empty.
  function isSet(field: DescField, form: Form): boolean {
    if (field.fieldKind === "list") return true;
    return isIncoming(form) ? isNeeded(field, form) : isAssigned(field, comments);
  }

  // Whether the service rejects requests in which the field is empty.
  function isNeeded(field: DescField, form: Form): boolean {
    return isRequiredInput(field, comments) && !(form === "batch" && isSetForBatch(field, comments));
  }

  function isNeededOneof({ oneof, parent }: DescField, form: Form): boolean {
    return oneof !== undefined && isWholeRequest(form) && findRequiredOneofs(parent, comments).includes(oneof);
  }

  function isAlwaysThere(field: DescField, form: Form): boolean {
    if (isWholeRequest(form)) return isNeeded(field, form);
    return form === "answer" && isPrintedEmpty(field);
  }

  return {
    refTo,
    ofField: (field, form) => buildFieldSchema(field, form, []),
    ofBody(desc, form, inPath) {
      const shown = inPath.filter((path) => leadsToShown(desc, path.split("."), form));
      return shown.length === 0 || buildWellKnownSchema(desc, "in")
        ? refTo(desc, form)
        : buildMessageSchema(desc, form, shown);
    },
    components: () => Object.fromEntries(made),
  };
}

/** The rest of each path in `inPath` that begins with `field`. */
export function pathsBelow(inPath: readonly string[], field: DescField): string[] {
  const prefix = `${field.name}.`;
  return inPath.filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length));
}

/**
 * The oneofs of which a body must have a member: those that are required and that the path does not set.
 *
 * @param inPath the paths of fields that the path sets, in the names of the proto
 */
export function findOpenOneofs(desc: DescMessage, inPath: readonly string[], comments: Comments): readonly DescOneof[] {
  return findRequiredOneofs(desc, comments).filter(({ fields }) => !fields.some(({ name }) => inPath.includes(name)));
}

// Objects without any member of a oneof. Its negation says that one is there. `anyOf` with `required` would say so as
// well, but generators make types of alternatives.
function buildUnsetSchema({ fields }: DescOneof): Schema {
  return { properties: Object.fromEntries(fields.map((field) => [field.jsonName, buildEmptySchema(field)])) };
}

// What is as good as no value.
function buildEmptySchema({ enum: values, scalar }: DescField): Schema {
  if (values !== undefined) return { enum: [values.values[0]?.name ?? "", 0, null] };
  return scalar === ScalarType.STRING ? { type: ["string", "null"], maxLength: 0 } : { type: "null" };
}

/** Whether the field is part of the message in this use. */
export function isIncluded(field: DescField, form: Form): boolean {
  return isIncoming(form) ? !isOutputOnly(field) : !isInputOnly(field);
}

function leadsToShown(desc: DescMessage, [name, ...rest]: readonly string[], form: Form): boolean {
  const field = desc.fields.find((one) => one.name === name);
  if (field === undefined || !isIncluded(field, form)) return false;
  return rest.length === 0 || field.message === undefined || leadsToShown(field.message, rest, form);
}

function isIncoming(form: Form): boolean {
  return isWholeRequest(form) || form === "patch";
}

// Whether the form has all fields of a request that are required.
function isWholeRequest(form: Form): boolean {
  return form === "body" || form === "batch";
}

// Whether the elements of a list are requests, as in the batches of AIP-231 and AIP-233.
function isBatch({ message }: DescField, form: Form): boolean {
  return form === "body" && message?.name.endsWith("Request") === true;
}

// No name in a proto has a hyphen, so names with a suffix are unique.
function componentName(desc: DescMessage, form: Form): string {
  const { typeName } = desc;
  return form === "answer" ? typeName : `${typeName}-${form}`;
}
