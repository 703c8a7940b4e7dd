import assert from "node:assert/strict";
import { test } from "node:test";
import { buildBindings } from "../../src/transport/http/http-binding.js";
import { createDecode } from "../../src/transport/rest/decode.js";
import { decoded } from "../support/feature/decoded.js";
import { entryOf, featureMethod, featureRegistry } from "../support/feature/feature.js";

const masks: readonly { body: string; query?: string; mask: string | undefined; reason: string }[] = [
  { body: '{"displayName":"x"}', mask: "displayName", reason: "a key that is present" },
  { body: '{"display_name":"x"}', mask: "displayName", reason: "by the name of the proto" },
  { body: '{"displayName":""}', mask: "displayName", reason: "an empty string clears" },
  { body: '{"displayName":null}', mask: "displayName", reason: "so does null" },
  { body: '{"count":0,"enabled":false}', mask: "count,enabled", reason: "zero and false, sorted" },
  { body: '{"uid":"u","count":1}', mask: "count", reason: "not what the path sets" },
  { body: '{"detail":{"title":"t"}}', mask: "detail.title", reason: "the leaf of a message" },
  {
    body: '{"detail":{"title":"t","inner":{"level":1}}}',
    mask: "detail.inner.level,detail.title",
    reason: "deep leaves",
  },
  { body: '{"detail":{}}', mask: "detail", reason: "an empty message is a leaf" },
  { body: '{"detail":null}', mask: "detail", reason: "so is null" },
  { body: '{"detail":{"nope":1}}', mask: undefined, reason: "but not one of unknown fields" },
  { body: '{"tags":[]}', mask: "tags", reason: "a list is a leaf" },
  { body: '{"parts":[{"title":"x"}]}', mask: "parts", reason: "a list of messages too" },
  { body: '{"labels":{"a":"b"}}', mask: "labels", reason: "a map is a leaf" },
  { body: '{"createTime":"2026-01-31T09:30:00Z"}', mask: "createTime", reason: "a well-known type is a leaf" },
  { body: '{"extra":{"a":{"b":1}}}', mask: "extra", reason: "free JSON is a leaf" },
  { body: '{"nope":1,"count":1}', mask: "count", reason: "unknown fields are none" },
  { body: "{}", mask: undefined, reason: "nothing is present" },
  { body: '{"count":1}', query: "updateMask=displayName", mask: "displayName", reason: "a mask that is given wins" },
  { body: '{"count":1}', query: "update_mask=display_name", mask: "displayName", reason: "in either spelling" },
  { body: '{"count":1}', query: "updateMask=*", mask: "*", reason: "everything" },
  { body: '{"count":1}', query: "updateMask=", mask: "count", reason: "an empty mask is none" },
  { body: '{"count":1}', query: "updateMask=%20count%20,tags", mask: "count,tags", reason: "trimmed" },
  { body: "", query: "", mask: undefined, reason: "neither bytes nor a mask" },
  { body: "", query: "updateMask=count", mask: "count", reason: "no bytes, but a mask" },
];

for (const { body, query = "", mask, reason } of masks) {
  test(`PATCH ?${query} ${body}: ${reason}`, () => {
    const { updateMask } = decoded("UpdateThing", ["u"], query, body) as { updateMask?: string };
    assert.equal(updateMask, mask);
  });
}

test("masks reach handlers as the proto spells them, whatever case conversion would make of it", () => {
  const [binding] = buildBindings(entryOf(featureMethod("UpdateThing")));
  assert.ok(binding);
  const decode = createDecode(binding, { registry: featureRegistry, strictBody: false, ignoreUnknownQuery: false });
  const pathsOf = (query: string, body: string) => {
    const read = { bytes: Buffer.from(body), contentType: undefined };
    return (decode(["u"], query, read) as unknown as { updateMask: { paths: string[] } }).updateMask.paths;
  };
  assert.deepEqual(pathsOf("", '{"line1":"x","legacyName":"y","createTime":null}'), [
    "create_time",
    "legacy",
    "line_1",
  ]);
  assert.deepEqual(pathsOf("updateMask=line1,legacyName,legacy_name,line_1,createTime,nope.atAll", "{}"), [
    "line_1",
    "legacy",
    "legacy",
    "line_1",
    "create_time",
    "nope.at_all",
  ]);
});
