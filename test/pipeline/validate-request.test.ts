import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { CreateIdentityRequestSchema as Request } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { ApiError } from "../../src/kernel/errors.js";
import { assertNoNul, assertRequiredFields } from "../../src/pipeline/validate-request.js";
import { declareMethod } from "./declare.js";

const { input } = declareMethod(
  {
    fields: {
      group_uid: { required: true },
      name: {},
      count: { type: "int32", required: true },
      tags: { repeated: true, required: true },
      group: { type: "message Group", required: true },
      by_name: { required: true, oneof: "choice" },
      by_tag: { required: true, oneof: "choice" },
      only: { required: true, oneof: "single" },
    },
  },
  { Group: { name: { required: true } } },
);
const all = { groupUid: "a", count: 1, tags: ["t"], single: { case: "only", value: "o" } };

const cases: readonly { request: Record<string, unknown>; missing: readonly string[]; reason: string }[] = [
  { request: all, missing: [], reason: "everything is there; messages are left to the resource" },
  { request: { ...all, group: {} }, missing: [], reason: "what is inside messages is left to the resource" },
  { request: { ...all, groupUid: "" }, missing: ["groupUid"], reason: "an empty string is none" },
  { request: { ...all, count: 0 }, missing: ["count"], reason: "zero is none" },
  { request: { ...all, tags: [] }, missing: ["tags"], reason: "an empty list is none" },
  { request: { name: "n" }, missing: ["groupUid", "count", "tags", "only"], reason: "all that is missing, in order" },
  {
    request: { ...all, choice: { case: "byTag", value: "t" } },
    missing: [],
    reason: "a oneof has one of its members",
  },
];

for (const { request, missing, reason } of cases) {
  test(`required fields: ${reason}`, () => {
    const check = () => assertRequiredFields(input, create(input, request));
    if (missing.length === 0) return check();
    assert.throws(check, (error) => {
      assert.ok(error instanceof ApiError);
      const text = missing.map((field) => `${field}: ${field} is required`).join("; ");
      assert.equal(error.message, `Invalid argument: ${text}`);
      return true;
    });
  });
}

type Claims = Readonly<Record<string, string>>;

const nul = "a\0b";
const iss = { case: "issuer", value: "https://i.example" } as const;
const sub = (value: string) => ({ case: "subject", value }) as const;
const claimMatch = (claims: Claims, subject = "s") => ({
  relationship: { case: "claimMatch", value: { iss, sub: sub(subject), claims } } as const,
});
const staticKeys = (audiences: string[]) => ({
  relationship: { case: "staticKeys", value: { issuer: "i", subject: "s", issuerKeys: "{}", audiences } } as const,
});

const textCases: readonly {
  location: string;
  request: Parameters<typeof create<typeof Request>>[1];
  field?: string;
}[] = [
  { location: "nowhere, in an empty request", request: {} },
  { location: "nowhere", request: { parent: "p", identity: { name: "a", ...claimMatch({ k: "v" }) } } },
  { location: "a field", request: { parent: nul }, field: "parent" },
  { location: "a field of a message", request: { identity: { description: nul } }, field: "identity.description" },
  {
    location: "a oneof within a oneof",
    request: { identity: claimMatch({}, nul) },
    field: "identity.claimMatch.subject",
  },
  {
    location: "a value of a map",
    request: { identity: claimMatch({ k: nul }) },
    field: "identity.claimMatch.claims.k",
  },
  {
    location: "a key of a map",
    request: { identity: claimMatch({ [nul]: "v" }) },
    field: "identity.claimMatch.claims",
  },
  {
    location: "an element of a list",
    request: { identity: staticKeys(["a", nul]) },
    field: "identity.staticKeys.audiences[1]",
  },
];

for (const { location, request, field } of textCases) {
  test(`U+0000 in ${location}`, () => {
    const check = () => assertNoNul(Request, create(Request, request));
    if (field === undefined) return check();
    assert.throws(check, (error) => {
      assert.ok(error instanceof ApiError);
      assert.equal(error.message, `Invalid argument: ${field}: ${field} must not hold U+0000`);
      return true;
    });
  });
}
