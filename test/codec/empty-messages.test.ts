// Empty messages and times are created without protobuf-es, and must be what it creates.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMessage } from "@bufbuild/protobuf";
import { StructSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  CreateGroupRequestSchema,
  GetGroupRequestSchema,
  ListGroupsRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitySchema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { BatchCreateRoleBindingsRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { emptyOf } from "../../src/codec/fields.js";
import { timestampOf } from "../../src/kernel/time.js";

const types: readonly DescMessage[] = [
  GetGroupRequestSchema,
  ListGroupsRequestSchema,
  CreateGroupRequestSchema,
  BatchCreateRoleBindingsRequestSchema,
  IdentitySchema,
  StructSchema,
];

for (const desc of types) {
  test(`an empty ${desc.name} is that of protobuf-es, and shares nothing with the next one`, () => {
    const createEmpty = emptyOf(desc);
    const one = createEmpty();
    assert.deepEqual(one, create(desc));
    assert.deepEqual(Object.keys(one), Object.keys(create(desc)));
    const other = createEmpty();
    assert.notEqual(one, other);
    for (const [name, value] of Object.entries(one)) {
      if (typeof value === "object") assert.notEqual(value, (other as unknown as Record<string, unknown>)[name], name);
    }
  });
}

test("a time is that of protobuf-es", () => {
  for (const ms of [0, 1, 999, 1_000, 1_795_000_123_456, -1, -1_001, 253_402_300_799_999])
    assert.deepEqual(timestampOf(ms), timestampFromMs(ms), `${ms} ms`);
});
