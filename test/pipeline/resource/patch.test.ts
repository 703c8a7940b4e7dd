import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { GroupSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitySchema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.js";
import { groups } from "../../../src/iam/groups/group.js";
import { identities } from "../../../src/iam/identities/identity.js";
import { ApiError, connectErrorFrom } from "../../../src/kernel/errors.js";
import { buildPatch, buildValues } from "../../../src/pipeline/resource/patch.js";
import { measureLeastProcessorMs } from "../../support/stopwatch.js";

type Body = MessageInitShape<typeof GroupSchema>;
const groupOf = (body: Body | undefined) => body && create(GroupSchema, body);
const maskOf = (paths: readonly string[] | undefined) => paths && create(FieldMaskSchema, { paths: [...paths] });

const before = create(GroupSchema, { uid: "0".repeat(40), name: "before", description: "of before", verified: true });
const buildFrom = (body: Body | undefined, mask: readonly string[] | undefined) =>
  buildPatch(groups, groupOf(body), maskOf(mask), before);

// The error names each field and the command of the operator.
function isDeniedFor(...fields: readonly string[]) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.code, Code.PermissionDenied);
    const named = error.message.replace(/^Permission denied: /, "").split("; ");
    for (const text of named) assert.match(text, /^(\w+): \1 is set by the operator alone, with `arbor admin /);
    assert.deepEqual(
      named.map((text) => text.split(":")[0]),
      fields,
    );
    return true;
  };
}

test("a new resource takes nothing that the service sets", () => {
  const body = groupOf({ uid: "0".repeat(40), name: "core", verified: false, kind: 0, resourceLimits: { idps: 9 } });
  assert.deepEqual(buildValues(groups, body), { name: "core", description: "" });
});

test("a new resource rejects what only the operator sets, before any rule", () => {
  const build = (body: Body) => () => buildValues(groups, groupOf(body));
  assert.throws(build({ name: "core", verified: true }), isDeniedFor("verified"));
  assert.throws(build({ name: "NO", verified: true, kind: 2 }), isDeniedFor("verified", "kind"));
});

interface PatchCase {
  readonly body: Body | undefined;
  readonly mask?: readonly string[];
  readonly patch: Readonly<Record<string, unknown>>;
  readonly reason: string;
}

const full: Body = { name: "core", description: "d" };
const patches: readonly PatchCase[] = [
  { body: full, mask: [], patch: full, reason: "an empty mask is no mask" },
  { body: full, mask: ["name", "name"], patch: { name: "core" }, reason: "a path twice" },
  { body: full, mask: ["description", "name"], patch: full, reason: "paths in any order" },
  { body: { name: "core" }, mask: ["*"], patch: { name: "core", description: "" }, reason: "* clears what is absent" },
  { body: full, mask: ["uid"], patch: {}, reason: "an output-only field is ignored" },
  { body: full, mask: ["name", "create_time", "createTime"], patch: { name: "core" }, reason: "and so next to others" },
  { body: { ...full, verified: true }, mask: ["verified"], patch: {}, reason: "the operator's field as it is stored" },
  { body: { ...full, verified: true }, patch: full, reason: "and so without a mask" },
  { body: { ...full, verified: true }, mask: ["*"], patch: full, reason: "and so with *" },
  { body: { ...full, verified: false }, patch: full, reason: "zero without a mask is absent" },
  { body: { ...full, verified: false }, mask: ["*"], patch: full, reason: "and so with *" },
  { body: { ...full, kind: 2 }, mask: ["name"], patch: { name: "core" }, reason: "outside the mask nothing counts" },
  { body: full, mask: ["resource_limits"], patch: {}, reason: "a map callers cannot change" },
  { body: full, mask: ["resourceLimits.idps"], patch: {}, reason: "a key of it" },
  { body: full, mask: ["create_time.seconds"], patch: {}, reason: "a part of an output-only message" },
];

const denials: readonly { body: Body; mask?: readonly string[]; fields: readonly string[]; reason: string }[] = [
  { body: { kind: 2 }, fields: ["kind"], reason: "in the body, without a mask" },
  { body: { ...full, kind: 2 }, fields: ["kind"], reason: "beside what may change" },
  { body: { kind: 2 }, mask: ["kind"], fields: ["kind"], reason: "in the mask" },
  { body: { kind: 2 }, mask: ["name", "kind"], fields: ["kind"], reason: "in the mask, before the rule of the name" },
  { body: { ...full, kind: 2 }, mask: ["*"], fields: ["kind"], reason: "with *" },
  { body: {}, mask: ["verified"], fields: ["verified"], reason: "cleared by the mask" },
  { body: { verified: false, kind: 2 }, mask: ["verified", "kind"], fields: ["verified", "kind"], reason: "both" },
];

for (const { body, mask, fields, reason } of denials) {
  test(`another value than the stored one of the operator's field is rejected: ${reason}`, () => {
    assert.throws(() => buildFrom(body, mask), isDeniedFor(...fields));
  });
}

for (const { body, mask, patch, reason } of patches) {
  test(`patch: ${reason}`, () => assert.deepEqual(buildFrom(body, mask), patch));
}

const badMasks: readonly { mask: readonly string[]; rule: string; reason: string }[] = [
  { mask: ["nosuch"], rule: "updateMask: nosuch is not a field of a group", reason: "no such field" },
  { mask: ["name", "nosuch"], rule: "updateMask: nosuch is not a field of a group", reason: "one bad among good" },
  { mask: ["Name"], rule: "updateMask: Name is not a field of a group", reason: "another case" },
  { mask: [""], rule: "updateMask:  is not a field of a group", reason: "an empty path" },
  { mask: [" name"], rule: "updateMask:  name is not a field of a group", reason: "a blank in front" },
  { mask: ["name,description"], rule: "updateMask: name,description is not a field of a group", reason: "two in one" },
  { mask: ["name.x"], rule: "updateMask: name.x is not a field of a group", reason: "into a scalar" },
  { mask: ["uid.x"], rule: "updateMask: uid.x is not a field of a group", reason: "into an output-only scalar" },
  { mask: ["labels[0]"], rule: "updateMask: labels[0] is not a field of a group", reason: "an index" },
  { mask: ["group.name"], rule: "updateMask: group.name is not a field of a group", reason: "from the request's root" },
  { mask: ["__proto__"], rule: "updateMask: __proto__ is not a field of a group", reason: "a name every object has" },
  {
    mask: ["constructor.prototype"],
    rule: "updateMask: constructor.prototype is not a field of a group",
    reason: "another such name",
  },
  { mask: ["*", "name"], rule: "updateMask: * must stand alone", reason: "* and a path" },
  { mask: ["*", "*"], rule: "updateMask: * must stand alone", reason: "* twice" },
  { mask: ["*.name"], rule: "updateMask: *.name is not a field of a group", reason: "* with a path behind" },
  {
    mask: ["a".repeat(5_000)],
    rule: `updateMask: ${"a".repeat(100)} is not a field of a group`,
    reason: "a path of 5,000 characters is not repeated in full",
  },
];

for (const { mask, rule, reason } of badMasks) {
  test(`mask rejected: ${reason}`, () => {
    assertRejects(() => buildFrom(full, mask), [{ field: "updateMask", description: rule }]);
  });
}

function assertQuick(run: () => void): void {
  const ms = measureLeastProcessorMs(run, 5);
  assert.ok(ms < 250, `${ms} ms`);
}

test("a mask of 10,000 paths is answered at once", () => {
  const mask = Array.from({ length: 10_000 }, () => "name");
  assertQuick(() => assert.deepEqual(buildFrom(full, mask), { name: "core" }));
});

test("a mask that names each key of a large map is answered at once", () => {
  const keys = Array.from({ length: 5_000 }, (_, i) => `k${i}`);
  const claims = Object.fromEntries(keys.map((key) => [key, "v"]));
  const of = (claims: Record<string, string>) => {
    const value = {
      iss: { case: "issuer", value: "https://issuer.example" },
      sub: { case: "subject", value: "s" },
      claims,
    } as const;
    return create(IdentitySchema, { relationship: { case: "claimMatch", value } });
  };
  const mask = maskOf(keys.map((key) => `claim_match.claims.${key}`));
  assertQuick(() => assert.throws(() => buildPatch(identities, of(claims), mask, of({})), /claims must be at most 32/));
});

test("what was there before is not changed by the patch", () => {
  const copy = structuredClone(before);
  buildFrom(full, ["*"]);
  assert.deepEqual(before, copy);
});

function assertRejects(work: () => unknown, violations: readonly { field: string; description: string }[]): void {
  assert.throws(work, (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.code, Code.InvalidArgument);
    const text = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
    assert.equal(error.message, `Invalid argument: ${text}`);
    const [detail] = connectErrorFrom(error, "d").findDetails(BadRequestSchema);
    assert.deepEqual(
      detail?.fieldViolations.map(({ field, description }) => ({ field, description })),
      violations,
    );
    return true;
  });
}
