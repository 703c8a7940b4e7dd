// Examples for the OpenAPI document: valid values, chosen by the names of fields. Requests have required fields and
// those that people usually set; booleans keep their defaults.
import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import {
  findRequiredOneofs,
  isDocumentedRequired,
  isDocumentedUnused,
  isUid,
  isUrl,
} from "../../codec/field-behavior.js";
import { findWellKnownName } from "../../codec/fields.js";
import { isPrintedEmpty } from "../../codec/json-writer.js";
import type { Comments } from "../../codec/proto-comments.js";
import { isLong } from "../../codec/value-rules.js";
import { builtinRoleUid } from "../../kernel/ids.js";
import { isUidp } from "../../kernel/uidp.js";
import { isIncluded, pathsBelow } from "./schema.js";
import type { Json, Schema } from "./value-schema.js";

const ROOT = "5051d1338b19609a91b9fd331958cdba3a89951b";
const CHILD = `${ROOT}/c6b411737c51aede`;
// A built-in role, so that examples which name it work in every installation.
const ROLE = builtinRoleUid("viewer");
const MAX_DEPTH = 4;

/** Whether an example is for a request body or a response. */
export type ExampleOf = "body" | "answer";

/** What an example depends on. */
export interface ExampleContext {
  readonly side: ExampleOf;
  readonly comments: Comments;
}

/**
 * Builds an example of a message in JSON.
 *
 * @param inPath the field paths from `desc` that the path of the request sets, in the names of the proto
 */
export function buildExample(desc: DescMessage, context: ExampleContext, inPath: readonly string[] = []): Json {
  return buildMessageExample(desc, context, inPath, 0) ?? {};
}

/** Builds an example of a field that is a whole body or response; undefined where none helps. */
export function buildFieldExample(field: DescField, context: ExampleContext): Json | undefined {
  return buildFieldValue(field, context, [], 0, true);
}

/**
 * Builds an example of a value in a path or a query.
 *
 * @param isDeep whether it may contain slashes
 */
export function buildTextExample(field: DescField, comments: Comments, isDeep: boolean): Json {
  const text = textFor(field, comments);
  if (field.scalar === ScalarType.STRING) return isDeep ? text : (text.split("/")[0] ?? "");
  return buildFieldValue(field, { side: "body", comments }, [], 0, true) ?? text;
}

// Undefined where no example can be built: a body that requires a map.
function buildMessageExample(
  desc: DescMessage,
  context: ExampleContext,
  inPath: readonly string[],
  depth: number,
): Json | undefined {
  const { side, comments } = context;
  const isBody = side === "body";
  // The times that requests require are in the future.
  if (isBody && desc.typeName === "google.protobuf.Timestamp") return "2999-01-31T12:00:00.000Z";
  const wellKnown = wellKnownExamples[desc.typeName];
  if (wellKnown !== undefined) return wellKnown;
  const seenOneofs = new Set<string>();
  const example: Schema = {};
  const fields = desc.fields.filter(
    (field) =>
      isIncluded(field, side) && !inPath.includes(field.name) && !(isBody && isDocumentedUnused(field, comments)),
  );
  // The only field of a request is what it is about.
  const isAlone = isBody && depth === 0 && fields.length === 1;
  const requiredOneofs = isBody ? findRequiredOneofs(desc, comments) : [];
  for (const field of fields) {
    if (field.oneof && seenOneofs.has(field.oneof.name)) continue;
    const isNeeded = isBody && isDocumentedRequired(field, comments);
    const isChoice = field.oneof !== undefined && requiredOneofs.includes(field.oneof);
    const isShown = !isBody || isNeeded || isChoice || isAlone;
    const value = buildFieldValue(field, context, pathsBelow(inPath, field), depth, isShown);
    if (value === undefined && isNeeded) return depth === 0 ? example : undefined;
    if (value === undefined) continue;
    if (field.oneof) seenOneofs.add(field.oneof.name);
    example[field.jsonName] = value;
  }
  return example;
}

function buildFieldValue(
  field: DescField,
  context: ExampleContext,
  inPath: readonly string[],
  depth: number,
  isNeeded: boolean,
): Json | undefined {
  if (field.fieldKind === "map") return context.side === "answer" ? {} : undefined;
  if (field.fieldKind !== "list") return buildSingleValue(field, context, inPath, depth, isNeeded);
  // A list of enum values describes a resource, so it is included.
  if (!isNeeded && field.enum === undefined && !Object.hasOwn(textByName, field.name)) return undefined;
  const one = buildSingleValue(field, context, inPath, depth, true);
  return one === undefined ? [] : [one];
}

function buildSingleValue(
  field: DescField,
  context: ExampleContext,
  inPath: readonly string[],
  depth: number,
  isNeeded: boolean,
): Json | undefined {
  if (field.message) {
    const wellKnown = findWellKnownName(field.message) ?? "";
    // A mask would have to match the other fields, and a time is soon in the past.
    if (!isNeeded && ["FieldMask", "Timestamp"].includes(wellKnown)) return undefined;
    if (depth >= MAX_DEPTH) return undefined;
    const message = buildMessageExample(field.message, context, inPath, depth + 1);
    return message !== undefined && (isNeeded || !isEmpty(message)) ? message : undefined;
  }
  if (field.scalar === ScalarType.STRING && (isNeeded || !OPERATORS.has(field.name))) {
    return textFor(field, context.comments) || undefined;
  }
  if (!isNeeded) return undefined;
  // A required field must differ from its default, which means absent.
  const mustCount = context.side === "body" && field.fieldKind !== "list";
  if (field.enum) {
    const isShown = mustCount || field.fieldKind === "list" || isPrintedEmpty(field);
    return isShown ? findEnumExample(field.enum) : undefined;
  }
  switch (field.scalar) {
    case ScalarType.BOOL:
      return mustCount;
    case ScalarType.BYTES:
      return "YXJib3I=";
    default:
      return field.scalar !== undefined && isLong(field.scalar) ? "1" : mustCount ? 1 : 0;
  }
}

// Internal values are left out.
function findEnumExample({ values }: DescEnum): string | undefined {
  return values.find(({ number, name }) => number !== 0 && !name.includes("INTERNAL"))?.name;
}

function isEmpty(value: Json): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function textFor(field: DescField, comments: Comments): string {
  const { name, parent } = field;
  if (isUrl(field, comments)) return `https://${name.replaceAll("_", "-")}.example.org`;
  const known = textByName[name];
  if (known !== undefined && (isUidp(known) || !isUid(field, comments))) return known;
  if (name === "uid" || name === "id") return parent.name.endsWith("Role") ? ROLE : CHILD;
  if (isUid(field, comments)) return CHILD;
  if (name === "name") return nameFor(parent.name);
  // A page token comes from the previous response.
  return name.endsWith("page_token") ? "" : name.replaceAll("_", "-");
}

// `IdentityProvider` becomes "identity provider"; messages about a group get the name of the group.
function nameFor(message: string): string {
  if (message.endsWith("Group")) return "team";
  return message.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
}

// Fields that only operators may set, in resources that others may change.
const OPERATORS: ReadonlySet<string> = new Set(["readme"]);

const textByName: Readonly<Record<string, string>> = {
  parent: ROOT,
  parent_id: ROOT,
  group: ROOT,
  group_id: ROOT,
  group_uid: ROOT,
  registry_id: ROOT,
  scope: ROOT,
  role: ROLE,
  role_uid: ROLE,
  role_uidp: ROLE,
  default_role: ROLE,
  identity: CHILD,
  identity_id: CHILD,
  identity_provider_id: CHILD,
  repo_id: CHILD,
  source: CHILD,
  ids: CHILD,
  names: CHILD,
  capabilities: "groups.list",
  actions: "groups.list",
  aud: "https://api.example.org",
  query: "platform",
  prefix: "plat",
  overlay: CHILD,
  packages: "curl",
  tags: "latest",
  digest: `sha256:${"1f".repeat(32)}`,
  legacyAdvisoryID: "CVE-2026-0001",
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
