// What a PATCH over HTTP changes: the mask that is made of its keys, and the masks that callers give.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { decodeMessage, decodeRequest, decodeRequestOf } from "../../support/feature/decoded.js";
import { featureMethod, methodWithRule } from "../../support/feature/feature.js";

const decodeUpdate = (body: string, query = "") => decodeRequest("UpdateThing", ["u"], query, body);
const maskOf = (body: string, query = "") => {
  const message = decodeMessage(featureMethod("UpdateThing"), ["u"], query, body);
  return (message as { updateMask?: FieldMask }).updateMask?.paths.join(",");
};

const masks: readonly { readonly body: string; readonly mask: string | undefined; readonly reason: string }[] = [
  { body: '{"displayName":""}', mask: "display_name", reason: "an empty text is named" },
  { body: '{"note":null,"tags":[],"labels":{}}', mask: "labels,note,tags", reason: "so is what is cleared" },
  { body: '{"uid":"u"}', mask: undefined, reason: "the path's own field is not" },
  { body: "", mask: undefined, reason: "nothing is sent" },
  { body: "{}", mask: undefined, reason: "nothing is named" },
  { body: '{"count":1,"nope":2}', mask: "count", reason: "an unknown field beside a known one" },
  { body: '{"detail":{"title":"t","inner":{}}}', mask: "detail.inner,detail.title", reason: "messages are walked" },
  { body: '{"parts":[{"title":"t"}],"labels":{"a":"b"}}', mask: "labels,parts", reason: "lists and maps are whole" },
  { body: '{"extra":{"a":1,"b":{"c":[{"d":1}]}}}', mask: "extra.a,extra.b.c", reason: "a Struct is walked" },
  { body: '{"extra":{}}', mask: "extra", reason: "an empty Struct" },
  { body: '{"extra":null}', mask: "extra", reason: "no Struct" },
  { body: '{"extra":{"a":{},"b":null}}', mask: "extra.a,extra.b", reason: "leaves of a Struct" },
];

for (const { body, mask, reason } of masks) {
  test(`PATCH ${body}: ${reason}`, () => assert.equal(maskOf(body), mask));
}

const given: readonly { readonly mask: string; readonly names: string; readonly reason: string }[] = [
  { mask: "displayName,line1,legacyName", names: "display_name,line_1,legacy", reason: "names of JSON" },
  { mask: "display_name,line_1,legacy", names: "display_name,line_1,legacy", reason: "names of the proto" },
  { mask: "extra.aB,extra.a_b.c", names: "extra.aB,extra.a_b.c", reason: "keys of a Struct stay as they are" },
  { mask: "extra.%60a.b,c%60.d,count", names: "extra.`a.b,c`.d,count", reason: "a key in backticks" },
  { mask: "labels.aB", names: "labels.aB", reason: "a key of a map" },
];

for (const { mask, names, reason } of given) {
  test(`?updateMask=${mask}: ${reason}`, () => assert.equal(maskOf('{"count":1}', `updateMask=${mask}`), names));
}

test("?updateMask=: an empty mask is as none", () => assert.equal(maskOf('{"count":1}', "updateMask="), "count"));

const all = { pattern: { case: "patch", value: "/v1/{thing.uid=**}" }, body: "*" } as const;
const wholeBody = methodWithRule(all, "UpdateThingRequest");

const unknownOnly: readonly { readonly body: string; readonly query?: string; readonly field: string }[] = [
  { body: '{"nope":1}', field: "nope" },
  { body: '{"dsplayName":"x","cuont":1}', field: "dsplayName" },
  { body: '{"uid":"u","nope":1}', field: "nope" },
  { body: '{"detail":{"nope":1}}', field: "detail.nope" },
  { body: '{"detail":{"inner":{"nope":null}}}', field: "detail.inner.nope" },
  { body: '{"nope":1}', query: "updateMask=displayName", field: "nope" },
  { body: '{"constructor":1}', field: "constructor" },
];

for (const { body, query = "", field } of unknownOnly) {
  const message = (name: string) =>
    `Invalid argument: ${name}: ${name} is not a field of this request, which has no other`;
  test(`rejects PATCH ?${query} ${body}: it would change nothing`, () => {
    assert.throws(() => decodeUpdate(body, query), { name: "ApiError", message: message(field) });
  });
  if (query !== "") continue;
  test(`rejects PATCH {"thing":${body}} of the whole request`, () => {
    const whole = () => decodeRequestOf(wholeBody, ["u"], "", `{"thing":${body}}`);
    assert.throws(whole, { name: "ApiError", message: message(`thing.${field}`) });
  });
}

test("only a PATCH is rejected for that", () => {
  assert.deepEqual(decodeRequest("ReplaceThing", ["u"], "", '{"nope":1}'), { thing: { uid: "u" } });
  assert.deepEqual(decodeRequest("CreateThing", ["p"], "", '{"nope":1}'), { parent: "p", thing: {} });
});

test("a Struct with more keys than a mask can hold is named whole by the caller", () => {
  const keys = Array.from({ length: 10_000 }, (_, i) => `"key${i}":1`).join(",");
  const body = `{"extra":{${keys}}}`;
  assert.throws(() => decodeUpdate(body), {
    message: "Invalid argument: extra: extra has too many keys to change one by one, updateMask may name it as a whole",
  });
  assert.equal(maskOf(body, "updateMask=extra"), "extra");
  const long = JSON.stringify({
    extra: { ["k".repeat(100_000)]: Object.fromEntries([...keys].map((_, i) => [i, 1])) },
  });
  assert.throws(() => decodeUpdate(long), /has too many keys/);
});
