import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ApiError } from "../../src/kernel/errors.js";
import { requiredFieldsOf } from "../../src/pipeline/required-fields.js";
import { declareMethod } from "./declare.js";

const { input } = declareMethod(
  {
    fields: {
      group_uid: { required: true },
      name: {},
      count: { type: "int32", required: true },
      tags: { repeated: true, required: true },
      group: { type: "message Group", required: true },
    },
  },
  { Group: { name: { required: true } } },
);
const all = { groupUid: "a", count: 1, tags: ["t"] };

const cases: readonly { request: Record<string, unknown>; missing: readonly string[]; reason: string }[] = [
  { request: all, missing: [], reason: "everything is there; messages are left to the resource" },
  { request: { ...all, group: {} }, missing: [], reason: "what is inside messages is left to the resource" },
  { request: { ...all, groupUid: "" }, missing: ["groupUid"], reason: "an empty string is none" },
  { request: { ...all, count: 0 }, missing: ["count"], reason: "zero is none" },
  { request: { ...all, tags: [] }, missing: ["tags"], reason: "an empty list is none" },
  { request: { name: "n" }, missing: ["groupUid", "count", "tags"], reason: "all that is missing, in order" },
];

for (const { request, missing, reason } of cases) {
  test(`required fields: ${reason}`, () => {
    const check = () => requiredFieldsOf(input)(create(input, request));
    if (missing.length === 0) return check();
    assert.throws(check, (error) => {
      assert.ok(error instanceof ApiError);
      const text = missing.map((field) => `${field}: ${field} is required`).join("; ");
      assert.equal(error.message, `Invalid argument: ${text}`);
      return true;
    });
  });
}
