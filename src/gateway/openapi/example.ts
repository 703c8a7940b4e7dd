// Examples for documents: values of the right form, told by the names of
// fields, so that what a reader copies looks like what the service speaks.
import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.js";
import type { Json } from "./schema.js";

const ROOT = "5051d1338b19609a91b9fd331958cdba3a89951b";
const CHILD = `${ROOT}/c6b411737c51aede`;
const MAX_DEPTH = 4;

/** Which side of a message an example is for. */
export type ExampleOf = "request" | "response";

/** An example of a message in JSON; in requests without what only the service sets. */
export function exampleOf(desc: DescMessage, side: ExampleOf, depth = 0): Json {
  const wellKnown = wellKnownExamples[desc.typeName];
  if (wellKnown !== undefined) return wellKnown;
  const unused: FieldBehavior = side === "request" ? FieldBehavior.OUTPUT_ONLY : FieldBehavior.INPUT_ONLY;
  const seenOneofs = new Set<string>();
  const example: Record<string, Json> = {};
  for (const field of desc.fields) {
    if (hasOption(field, field_behavior) && getOption(field, field_behavior).includes(unused)) continue;
    if (field.oneof) {
      if (seenOneofs.has(field.oneof.name)) continue;
      seenOneofs.add(field.oneof.name);
    }
    const value = exampleOfField(field, side, depth);
    if (value !== undefined) example[field.jsonName] = value;
  }
  return example;
}

/** An example of a field's value; undefined where none helps, such as an enum at its default. */
export function exampleOfField(field: DescField, side: ExampleOf, depth: number): Json | undefined {
  if (field.fieldKind === "map") return {};
  const one = single(field, side, depth);
  if (field.fieldKind !== "list") return one;
  return one === undefined ? [] : [one];
}

function single(field: DescField, side: ExampleOf, depth: number): Json | undefined {
  if (field.message) return depth >= MAX_DEPTH ? undefined : exampleOf(field.message, side, depth + 1);
  if (field.enum) return field.fieldKind === "list" ? field.enum.values[1]?.name : undefined;
  switch (field.scalar) {
    case ScalarType.STRING:
      return textFor(field);
    case ScalarType.BOOL:
      return false;
    case ScalarType.BYTES:
      return "YXJib3I=";
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return "1";
    default:
      return 0;
  }
}

function textFor({ name, parent }: DescField): string {
  if (name === "parent" || name === "group_uid") return ROOT;
  if (name === "uid" || name.endsWith("_uid")) return CHILD;
  if (name === "name") return parent.name.toLowerCase();
  if (name === "description") return "What it is for";
  if (name.includes("token")) return "";
  return name.replaceAll("_", "-");
}

const wellKnownExamples: Readonly<Record<string, Json>> = {
  "google.protobuf.Timestamp": "2026-01-31T12:00:00.000Z",
  "google.protobuf.Duration": "3600s",
  "google.protobuf.FieldMask": "name,description",
  "google.protobuf.Empty": {},
  "google.protobuf.Struct": {},
  "google.protobuf.ListValue": [],
  "google.protobuf.Value": "value",
  "google.protobuf.Any": { "@type": "type.googleapis.com/google.protobuf.Empty", value: {} },
  "google.protobuf.StringValue": "text",
  "google.protobuf.BoolValue": true,
  "google.protobuf.BytesValue": "YXJib3I=",
  "google.protobuf.DoubleValue": 1.5,
  "google.protobuf.FloatValue": 1.5,
  "google.protobuf.Int32Value": 1,
  "google.protobuf.UInt32Value": 1,
  "google.protobuf.Int64Value": "1",
  "google.protobuf.UInt64Value": "1",
};
