// A oneof that two parts of a request set: path, query and body in all pairs. Each would win over the other somewhere.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HttpRuleSchema } from "#gen/google/api/http_pb.js";
import { buildBindings } from "../../../src/transport/http/http-binding.js";
import { decodeRequestOf } from "../../support/feature/decoded.js";
import { entryOf, methodWithRule } from "../../support/feature/feature.js";

type Rule = Exclude<MessageInitShape<typeof HttpRuleSchema>, { $typeName: string }>;
const post = (path: string, body = ""): Rule => ({ pattern: { case: "post", value: path }, body });

interface Request {
  readonly rule: Rule;
  readonly captures?: readonly string[];
  readonly query?: string;
  readonly body?: string;
}

const rejected: readonly (Request & { readonly field: string; readonly rest: string; readonly reason: string })[] = [
  {
    rule: post("/v1/{choice_string}", "*"),
    captures: ["a"],
    body: '{"choiceInt32":1}',
    field: "choiceInt32",
    rest: "choiceString, which the path sets",
    reason: "path and body",
  },
  {
    rule: post("/v1/{choice_string}", "*"),
    captures: ["a"],
    body: '{"choice_int32":0}',
    field: "choiceInt32",
    rest: "choiceString, which the path sets",
    reason: "path and body, at zero",
  },
  {
    rule: post("/v1/{choice_string}", "*"),
    captures: ["a"],
    body: '{"choiceDetail":{"title":"t"}}',
    field: "choiceDetail",
    rest: "choiceString, which the path sets",
    reason: "path and a message of the body",
  },
  {
    rule: post("/v1/{choice_detail.title}", "*"),
    captures: ["a"],
    body: '{"choiceString":"b"}',
    field: "choiceString",
    rest: "choiceDetail.title, which the path sets",
    reason: "a path into a message and body",
  },
  {
    rule: post("/v1/{detail.word}", "*"),
    captures: ["a"],
    body: '{"detail":{"number":"1"}}',
    field: "detail.number",
    rest: "detail.word, which the path sets",
    reason: "path and body, below a message",
  },
  {
    rule: post("/v1/{detail.inner.word}", "detail"),
    captures: ["a"],
    body: '{"inner":{"number":"1"}}',
    field: "inner.number",
    rest: "inner.word, which the path sets",
    reason: "path and a body that is one field",
  },
  {
    rule: post("/v1/{choice_string}"),
    captures: ["a"],
    query: "choiceInt32=1",
    field: "choiceInt32",
    rest: "choiceString",
    reason: "path and query",
  },
  {
    rule: post("/v1/{choice_string}"),
    captures: ["a"],
    query: "choice_detail.title=t",
    field: "choiceDetail.title",
    rest: "choiceString",
    reason: "path and query, below a message",
  },
  {
    rule: post("/v1/{detail.word}"),
    captures: ["a"],
    query: "detail.number=1",
    field: "detail.number",
    rest: "detail.word",
    reason: "path and query, both below a message",
  },
  {
    rule: post("/v1", "choice_detail"),
    query: "choiceString=a",
    body: '{"title":"t"}',
    field: "choiceString",
    rest: "choiceDetail",
    reason: "query and a body that is a member",
  },
  {
    rule: post("/v1", "choice_int32"),
    query: "choiceWrapper=a",
    body: "0",
    field: "choiceWrapper",
    rest: "choiceInt32",
    reason: "query and a body that is a scalar",
  },
  {
    rule: post("/v1"),
    query: "choiceDetail.word=a&choiceDetail.number=1",
    field: "choiceDetail.number",
    rest: "choiceDetail.word",
    reason: "query and query",
  },
  {
    rule: post("/v1"),
    query: "choiceWrapper=a&choiceColor=COLOR_RED",
    field: "choiceColor",
    rest: "choiceWrapper",
    reason: "query and query, not scalars",
  },
];

for (const { rule, captures = [], query = "", body, field, rest, reason } of rejected) {
  test(`rejects a oneof given twice: ${reason}`, () => {
    assert.throws(() => decodeRequestOf(methodWithRule(rule), captures, query, body), {
      name: "ApiError",
      message: `Invalid argument: ${field}: ${field} cannot be given together with ${rest}`,
    });
  });
}

const taken: readonly (Request & { readonly json: unknown; readonly reason: string })[] = [
  {
    rule: post("/v1/{choice_string}", "*"),
    captures: ["a"],
    body: '{"choiceString":"a"}',
    json: { choiceString: "a" },
    reason: "the same member with the same value",
  },
  {
    rule: post("/v1/{choice_string}"),
    captures: ["a"],
    query: "choice_string=a",
    json: { choiceString: "a" },
    reason: "so in path and query",
  },
  {
    rule: post("/v1/{choice_detail.title}", "*"),
    captures: ["a"],
    body: '{"choiceDetail":{"level":1}}',
    json: { choiceDetail: { title: "a", level: 1 } },
    reason: "the same member, another field of it",
  },
  {
    rule: post("/v1/{choice_detail.title}"),
    captures: ["a"],
    query: "choiceDetail.level=1",
    json: { choiceDetail: { title: "a", level: 1 } },
    reason: "so in path and query",
  },
  {
    rule: post("/v1/{detail.word}", "*"),
    captures: ["a"],
    body: '{"choiceDetail":{"number":"1"}}',
    json: { detail: { word: "a" }, choiceDetail: { number: "1" } },
    reason: "the oneof of another message",
  },
];

for (const { rule, captures = [], query = "", body, json, reason } of taken) {
  test(`takes ${reason}`, () => assert.deepEqual(decodeRequestOf(methodWithRule(rule), captures, query, body), json));
}

const boot: readonly { readonly rule: Rule; readonly members: string; readonly reason: string }[] = [
  {
    rule: post("/v1/{choice_string}/{choice_int32}"),
    members: "choice_string and choice_int32 are members of one oneof, choice",
    reason: "two variables",
  },
  {
    rule: post("/v1/{detail.inner.word}/{detail.inner.number}"),
    members: "word and number are members of one oneof, detail.inner.choice",
    reason: "two variables below a message",
  },
  {
    rule: post("/v1/{choice_string}/{choice_detail.title}"),
    members: "choice_string and choice_detail are members of one oneof, choice",
    reason: "a member and a field of another",
  },
  {
    rule: post("/v1/{choice_string}", "choice_detail"),
    members: "choice_string and choice_detail are members of one oneof, choice",
    reason: "a variable and the body",
  },
];

for (const { rule, members, reason } of boot) {
  test(`rejects at boot a rule that sets a oneof twice: ${reason}`, () => {
    const bad = () => buildBindings(entryOf(methodWithRule(rule)));
    assert.throws(bad, { name: "TypeError", message: `bad.proto: bad.Service.Do: ${members}` });
  });
}

test("two fields of one member of a oneof may be variables", () => {
  const rule = post("/v1/{choice_detail.title}/{choice_detail.level}/{detail.word}");
  assert.equal(buildBindings(entryOf(methodWithRule(rule))).length, 1);
});
