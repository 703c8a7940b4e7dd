// What REST prints of a response in which every message is set and nothing else, for every method that is served, in
// every version. Both the response and what must be printed follow from the descriptors.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { isInputOnly } from "../../src/codec/field-behavior.js";
import { findWellKnownName, isWrapper } from "../../src/codec/fields.js";
import { createJsonWriters } from "../../src/codec/json-writer.js";
import { createTypeRegistry } from "../../src/codec/type-registry.js";
import { buildBindings } from "../../src/transport/http/http-binding.js";
import { createEncoder } from "../../src/transport/rest/encode.js";
import { entryOf } from "../support/feature/feature.js";
import { services } from "./iam-methods.js";

type Plain = Record<string, unknown>;

const methods = [...services.map(({ desc }) => desc), SecurityTokenService, Auth].flatMap(({ methods }) => methods);
const writers = createJsonWriters(createTypeRegistry(methods.map((desc) => ({ desc }))));
/** Of a oneof with as many members as this, each is set in one of the responses. */
const MAX_MEMBERS = 4;

// A message whose messages are all set, down to the first that holds itself. What has presence is set to zero.
function fillMessage(desc: DescMessage, choice: number, above: readonly DescMessage[] = []): Plain | undefined {
  if (above.includes(desc)) return undefined;
  if (findWellKnownName(desc) !== undefined) return {};
  const message: Plain = {};
  const within = [...above, desc];
  for (const field of desc.fields) {
    const value = emptyValueOf(field, choice, within);
    if (value === undefined) continue;
    const members = field.oneof?.fields;
    if (members === undefined) message[field.localName] = value;
    else if (members[choice % members.length] === field)
      message[field.oneof?.localName ?? ""] = { case: field.localName, value };
  }
  return message;
}

function emptyValueOf(field: DescField, choice: number, within: readonly DescMessage[]): unknown {
  if (field.message !== undefined) {
    // Wrappers are kept as the bare value.
    if (isWrapper(field.message)) return undefined;
    const message = fillMessage(field.message, choice, within);
    if (message === undefined || field.fieldKind === "message") return message;
    return field.fieldKind === "list" ? [message] : { 1: message };
  }
  if (field.presence === FeatureSet_FieldPresence.IMPLICIT) return undefined;
  switch (field.scalar) {
    case ScalarType.STRING:
      return "";
    case ScalarType.BOOL:
      return false;
    case ScalarType.BYTES:
      return new Uint8Array();
    default:
      return 0;
  }
}

// What the tables of groups, identities, roles and role bindings in the specification do not show.
const ABSENT_WHEN_EMPTY: ReadonlySet<string> = new Set(
  [
    ...[
      "Identity.email",
      "Identity.email_unverified",
      "Identity.company",
      "RoleBindingIdentity.email",
      "RoleBinding.managed_by_uidp",
    ],
    ...["Identity.ClaimMatch.claims", "Identity.ClaimMatch.claim_patterns", "Role.capabilities"],
    ...["issuer", "subject", "issuer_keys", "audiences"].map((name) => `Identity.StaticKeys.${name}`),
    "Identity.AWSIdentity.aws_account",
    // Version 2 has the messages of the beta.
  ].map((name) => `chainguard.platform.iam.v2beta1.${name}`),
);
const absent = new Set<string>();

// The paths that are printed of such a message, in JSON.
function pathsToPrint(desc: DescMessage, message: Plain, at = ""): string[] {
  if (findWellKnownName(desc) !== undefined) return [];
  return desc.fields.flatMap((field) => {
    const path = at === "" ? field.jsonName : `${at}.${field.jsonName}`;
    const member = field.oneof && (message[field.oneof.localName] as { case?: string; value?: unknown } | undefined);
    const value = field.oneof === undefined ? message[field.localName] : undefined;
    const set = member?.case === field.localName ? member.value : value;
    if (isInputOnly(field) || field.name === "next_page_token") return [];
    if (set === undefined) {
      if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) return [];
      const name = `${desc.typeName}.${field.name}`;
      if (ABSENT_WHEN_EMPTY.has(name)) {
        absent.add(name);
        return [];
      }
      const zero = field.fieldKind === "enum" ? field.enum.values[0]?.name.toUpperCase().split("_").at(-1) : undefined;
      return zero === "UNSPECIFIED" || zero === "UNKNOWN" ? [] : [path];
    }
    if (field.message === undefined) return [path];
    const inner = field.fieldKind === "message" ? [["", set]] : Object.entries(set as object);
    return [
      path,
      ...inner.flatMap(([key, one]) =>
        pathsToPrint(field.message as DescMessage, one as Plain, key === "" ? path : `${path}.${key}`),
      ),
    ];
  });
}

// The paths that a response has. Of lists and maps without elements and of values of well-known types it is their own.
function pathsOf(desc: DescMessage, json: Plain, at = ""): string[] {
  return Object.entries(json).flatMap(([key, value]) => {
    const path = at === "" ? key : `${at}.${key}`;
    const field = desc.fields.find(({ jsonName }) => jsonName === key);
    assert.ok(field, path);
    if (field.message === undefined || findWellKnownName(field.message) !== undefined) return [path];
    const inner = field.fieldKind === "message" ? [["", value]] : Object.entries(value as object);
    return [
      path,
      ...inner.flatMap(([key, one]) =>
        pathsOf(field.message as DescMessage, one as Plain, key === "" ? path : `${path}.${key}`),
      ),
    ];
  });
}

const nested = new Set<string>();
let routes = 0;

for (const desc of methods) {
  for (const binding of buildBindings(entryOf(desc))) {
    routes++;
    if (binding.responseBody !== undefined || desc.output.typeName === "google.api.HttpBody") continue;
    const encode = createEncoder(binding, writers);
    test(`${binding.method} ${binding.name}`, () => {
      for (let choice = 0; choice < MAX_MEMBERS; choice++) {
        const response = fillMessage(desc.output, choice) ?? {};
        const { body } = encode(response);
        if (body === "") continue;
        const expected = pathsToPrint(desc.output, response).sort();
        const printed = pathsOf(desc.output, JSON.parse(String(body)) as Plain).sort();
        assert.deepEqual(printed, expected);
        for (const path of printed) if (path.includes(".")) nested.add(`${desc.output.name}.${path}`);
      }
    });
  }
}

test("the paths within messages are many, and those that clients iterate over are among them", () => {
  assert.ok(routes > 200, `${routes} routes`);
  assert.ok(nested.size > 500, `${nested.size} paths`);
  // Identity.claimMatch.claims is of version 1.
  for (const path of ["Identity.claimMatch.claims", "GroupInvite.role.capabilities", "IdentityProvider.scim.enabled"])
    assert.ok(nested.has(path), path);
});

test("every field that no table of the specification shows is left out of a response, and of version 1 none is", () => {
  assert.deepEqual([...absent].sort(), [...ABSENT_WHEN_EMPTY].sort());
  assert.ok(nested.has("Identity.claimMatch.claimPatterns"));
});
