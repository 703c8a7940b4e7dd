// Examples for documents: values of the right form, told by the names of fields,
// so that what a reader copies looks like what the service speaks. A request
// holds what it must and what people write; switches stay at their defaults.
import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { builtinRoleUid } from "../../kernel/ids.js";
import { wellKnownName } from "../fields.js";
import { isLong } from "../value-rules.js";
import { isRequired } from "./behavior.js";
import type { Json, Schema } from "./json.js";
import { below, isShown } from "./schema.js";

const ROOT = "5051d1338b19609a91b9fd331958cdba3a89951b";
const CHILD = `${ROOT}/c6b411737c51aede`;
// It exists everywhere, so that examples which name it work as they are.
const ROLE = builtinRoleUid("viewer");
const MAX_DEPTH = 4;

/** Which side of a message an example is for. */
export type ExampleOf = "body" | "answer";

/**
 * An example of a message in JSON.
 *
 * @param inPath what the path of the request sets, in the names of the proto from `desc` on.
 */
export function exampleOf(desc: DescMessage, side: ExampleOf, inPath: readonly string[] = []): Json {
  return messageExample(desc, side, inPath, 0) ?? {};
}

/** An example of a field that is a whole body or answer; undefined where none helps. */
export function fieldExample(field: DescField, side: ExampleOf, inPath: readonly string[] = []): Json | undefined {
  return fieldValue(field, side, inPath, 0, true);
}

/** An example of a value that stands in a path or in a query; `isDeep` if slashes are welcome. */
export function textExample(field: DescField, isDeep: boolean): Json {
  if (field.scalar === ScalarType.STRING) return isDeep ? textFor(field) : (textFor(field).split("/")[0] ?? "");
  return fieldValue(field, "body", [], 0, true) ?? textFor(field);
}

// Undefined for what cannot be made up: part of a body that must hold a map.
function messageExample(
  desc: DescMessage,
  side: ExampleOf,
  inPath: readonly string[],
  depth: number,
): Json | undefined {
  const wellKnown = wellKnownExamples[desc.typeName];
  if (wellKnown !== undefined) return wellKnown;
  const seenOneofs = new Set<string>();
  const example: Schema = {};
  for (const field of desc.fields) {
    if (!isShown(field, side) || inPath.includes(field.name)) continue;
    if (field.oneof && seenOneofs.has(field.oneof.name)) continue;
    const value = fieldValue(field, side, below(inPath, field), depth, side === "answer" || isRequired(field));
    if (value === undefined && side === "body" && isRequired(field)) return depth === 0 ? example : undefined;
    if (value === undefined) continue;
    if (field.oneof) seenOneofs.add(field.oneof.name);
    example[field.jsonName] = value;
  }
  return example;
}

function fieldValue(
  field: DescField,
  side: ExampleOf,
  inPath: readonly string[],
  depth: number,
  isNeeded: boolean,
): Json | undefined {
  if (field.fieldKind === "map") return side === "answer" ? {} : undefined;
  if (field.fieldKind !== "list") return single(field, side, inPath, depth, isNeeded);
  // A list of names says what a thing is, so it is no switch.
  if (!isNeeded && field.enum === undefined) return undefined;
  const one = single(field, side, inPath, depth, true);
  return one === undefined ? [] : [one];
}

function single(
  field: DescField,
  side: ExampleOf,
  inPath: readonly string[],
  depth: number,
  isNeeded: boolean,
): Json | undefined {
  if (field.message) {
    const wellKnown = wellKnownName(field.message) ?? "";
    // A mask would have to fit what it masks, and a moment is soon too long ago.
    if (!isNeeded && ["FieldMask", "Timestamp"].includes(wellKnown)) return undefined;
    if (depth >= MAX_DEPTH) return undefined;
    const message = messageExample(field.message, side, inPath, depth + 1);
    return message !== undefined && (isNeeded || !isEmpty(message)) ? message : undefined;
  }
  if (field.scalar === ScalarType.STRING) return textFor(field) || undefined;
  if (!isNeeded) return undefined;
  // What is required must differ from what an absent field reads as.
  const mustCount = side === "body" && field.fieldKind !== "list";
  if (field.enum) return mustCount || field.fieldKind === "list" ? enumExample(field.enum) : undefined;
  switch (field.scalar) {
    case ScalarType.BOOL:
      return mustCount;
    case ScalarType.BYTES:
      return "YXJib3I=";
    default:
      return field.scalar !== undefined && isLong(field.scalar) ? "1" : mustCount ? 1 : 0;
  }
}

// What is internal is nothing for readers to copy.
function enumExample({ values }: DescEnum): string | undefined {
  return values.find(({ number, name }) => number !== 0 && !name.includes("INTERNAL"))?.name;
}

function isEmpty(value: Json): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function textFor({ name, parent }: DescField): string {
  const known = textByName[name];
  if (known !== undefined) return known;
  if (name === "uid") return parent.name.endsWith("Role") ? ROLE : CHILD;
  if (name.endsWith("_uid")) return CHILD;
  if (name === "name") return nameFor(parent.name);
  // It comes from the answer before.
  return name.endsWith("page_token") ? "" : name.replaceAll("_", "-");
}

// `IdentityProvider` is called "identity provider", and what tells of a group as the group.
function nameFor(message: string): string {
  if (message.endsWith("Group")) return "team";
  return message.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
}

const textByName: Readonly<Record<string, string>> = {
  parent: ROOT,
  group_uid: ROOT,
  role_uid: ROLE,
  default_role: ROLE,
  group: ROOT,
  scope: ROOT,
  names: CHILD,
  description: "What it is for",
  email: "ann@example.org",
  issuer: "https://issuer.example.org",
  account: "123456789012",
  project_id: "example-project",
  project_number: "123456789012",
  groups_claim: "groups",
  subject: "repo:example/app:ref:refs/heads/main",
};

const wellKnownExamples: Readonly<Record<string, Json>> = {
  "google.protobuf.Timestamp": "2026-01-31T12:00:00.000Z",
  "google.protobuf.Duration": "3600s",
  "google.protobuf.FieldMask": "name,description",
  "google.protobuf.Struct": {},
  "google.protobuf.ListValue": [],
  "google.protobuf.Value": "value",
  "google.protobuf.Any": { "@type": "type.googleapis.com/google.protobuf.Duration", value: "3600s" },
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
