// JSON Schemas (2020-12, as OpenAPI 3.1 uses them) of messages, in the JSON
// that the gateway writes and reads.
import { type DescEnum, type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.js";
import type { Comments } from "./proto-comments.js";

/** A JSON value of a document. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
/** A JSON Schema. */
export type Schema = { [key: string]: Json };

/** Schemas by name, made as they are referred to. */
export interface Schemas {
  /** A reference to the schema of `desc`, or the schema itself where the type is well known. */
  refTo(desc: DescMessage): Schema;
  /** The schema of a field's value. */
  ofField(field: DescField): Schema;
  /** All schemas referred to so far. */
  components(): Record<string, Schema>;
}

/** Creates an empty collection of schemas whose descriptions come from `comments`. */
export function createSchemas(comments: Comments): Schemas {
  const made = new Map<string, Schema>();

  function refTo(desc: DescMessage): Schema {
    const wellKnown = wellKnownSchemas[desc.typeName];
    if (wellKnown) return structuredClone(wellKnown);
    if (!made.has(desc.typeName)) {
      // Entered before its fields are looked at, as a message may hold itself.
      const schema: Schema = { type: "object" };
      made.set(desc.typeName, schema);
      Object.assign(schema, described(comments(desc.typeName)), { properties: propertiesOf(desc) });
    }
    return { $ref: `#/components/schemas/${desc.typeName}` };
  }

  function propertiesOf(desc: DescMessage): Schema {
    return Object.fromEntries(
      desc.fields.map((field) => {
        const behaviors = hasOption(field, field_behavior) ? getOption(field, field_behavior) : [];
        const notes = {
          ...described(comments(`${desc.typeName}.${field.name}`)),
          ...(behaviors.includes(FieldBehavior.OUTPUT_ONLY) && { readOnly: true }),
          ...(behaviors.includes(FieldBehavior.INPUT_ONLY) && { writeOnly: true }),
        };
        return [field.jsonName, { ...ofField(field), ...notes }];
      }),
    );
  }

  function ofField(field: DescField): Schema {
    switch (field.fieldKind) {
      case "list":
        return { type: "array", items: single(field) };
      case "map":
        return { type: "object", additionalProperties: single(field) };
      default:
        return single(field);
    }
  }

  function single(field: DescField): Schema {
    if (field.message) return refTo(field.message);
    if (field.enum) return enumSchema(field.enum);
    return scalarSchema(field.scalar ?? ScalarType.STRING);
  }

  function enumSchema(desc: DescEnum): Schema {
    if (desc.typeName === "google.protobuf.NullValue") return { type: "null" };
    if (!made.has(desc.typeName)) {
      const values = desc.values.map(({ name }) => `- \`${name}\`: ${comments(`${desc.typeName}.${name}`)}`);
      const description = [comments(desc.typeName), values.join("\n")].filter(Boolean).join("\n\n");
      // A value that only a newer version knows is written as its number.
      const names = { type: "string", enum: desc.values.map(({ name }) => name) };
      made.set(desc.typeName, { ...described(description), anyOf: [names, { type: "integer" }] });
    }
    return { $ref: `#/components/schemas/${desc.typeName}` };
  }

  return {
    refTo,
    ofField,
    components: () => Object.fromEntries([...made].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** A description, if there is anything to say. */
export function described(description: string): Schema {
  return description === "" ? {} : { description };
}

function scalarSchema(type: ScalarType): Schema {
  switch (type) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return { anyOf: [{ type: "number" }, { type: "string", enum: ["NaN", "Infinity", "-Infinity"] }] };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: "integer", format: "int32" };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: "integer", minimum: 0, maximum: 4294967295 };
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { type: "string", pattern: "^[0-9]+$", format: "uint64" };
    default:
      return { type: "string", pattern: "^-?[0-9]+$", format: "int64" };
  }
}

// What a wrapper holds, or nothing.
const wrapped = (type: ScalarType): Schema => ({ anyOf: [scalarSchema(type), { type: "null" }] });

const wellKnownSchemas: Readonly<Record<string, Schema>> = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": { type: "string", pattern: "^-?[0-9]+(\\.[0-9]{1,9})?s$" },
  "google.protobuf.FieldMask": { type: "string" },
  "google.protobuf.Empty": { type: "object", maxProperties: 0 },
  "google.protobuf.Struct": { type: "object" },
  "google.protobuf.ListValue": { type: "array" },
  "google.protobuf.Value": {},
  "google.protobuf.Any": { type: "object", required: ["@type"], properties: { "@type": { type: "string" } } },
  "google.protobuf.StringValue": wrapped(ScalarType.STRING),
  "google.protobuf.BoolValue": wrapped(ScalarType.BOOL),
  "google.protobuf.BytesValue": wrapped(ScalarType.BYTES),
  "google.protobuf.DoubleValue": wrapped(ScalarType.DOUBLE),
  "google.protobuf.FloatValue": wrapped(ScalarType.FLOAT),
  "google.protobuf.Int32Value": wrapped(ScalarType.INT32),
  "google.protobuf.UInt32Value": wrapped(ScalarType.UINT32),
  "google.protobuf.Int64Value": wrapped(ScalarType.INT64),
  "google.protobuf.UInt64Value": wrapped(ScalarType.UINT64),
};
