import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Message,
  ScalarType,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { findWellKnownName, isWrapper, setField } from "../../src/codec/fields.js";
import { createJsonWriters } from "../../src/codec/json-writer.js";
import { createBodyReader } from "../../src/transport/rest/decode.js";
import { featureMessage, featureRegistry } from "../support/feature/feature.js";

const { IMPLICIT } = FeatureSet_FieldPresence;
const writers = createJsonWriters(featureRegistry);
const thing = featureMessage("Thing");
const kinds = featureMessage("Kinds");

// Any value of a field in the form protobuf-es keeps it in, small enough to be read when it fails.
function anyValue(field: DescField, depth: number): fc.Arbitrary<unknown> | undefined {
  if (field.message !== undefined) return messageValue(field, field.message, depth);
  if (field.enum !== undefined) return fc.constantFrom(0, 1, 2);
  switch (field.scalar) {
    case ScalarType.STRING:
      return fc.string({ unit: "grapheme", maxLength: 8 }).filter((s) => !s.includes("\0"));
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 8 });
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.DOUBLE:
      return fc.double();
    case ScalarType.FLOAT:
      return fc.float();
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return fc.nat({ max: 4294967295 });
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return fc.integer();
    default: {
      const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
      return field.fieldKind === "scalar" && field.longAsString ? long.map(String) : long;
    }
  }
}

function messageValue(field: DescField, desc: DescMessage, depth: number): fc.Arbitrary<unknown> | undefined {
  const json = fc
    .jsonValue({ maxDepth: 2 })
    .map((value) => JSON.stringify(value))
    .filter((text) => !text.includes("\\u") && !text.includes("__proto__"))
    .map((text) => JSON.parse(text) as unknown);
  switch (findWellKnownName(desc)) {
    case "Timestamp":
      return fc
        .record({ s: fc.integer({ min: -1e9, max: 4e9 }), ms: fc.integer({ min: 1, max: 999 }) })
        .map(({ s, ms }) => create(desc, { seconds: BigInt(s), nanos: ms * 1_000_000 }));
    case "Duration":
      return fc
        .record({ s: fc.nat(), n: fc.nat({ max: 999_999_999 }) })
        .map(({ s, n }) => create(desc, { seconds: BigInt(s), nanos: n }));
    case "FieldMask":
      return fc.array(fc.constantFrom("a", "b_c", "d.e_f"), { maxLength: 3 }).map((paths) => create(desc, { paths }));
    case "Struct":
      return fc.dictionary(fc.constantFrom("a", "b"), json);
    case "Value":
    case "ListValue":
    case "Any":
      return undefined;
    default: {
      const [value] = desc.fields;
      if (isWrapper(desc) && value !== undefined) {
        const bare = anyValue(value, depth);
        if (field.fieldKind === "message" && field.oneof === undefined) return bare;
        return bare?.map((v) => create(desc, { [value.localName]: v }));
      }
      return depth > 2 ? fc.constant(create(desc)) : anyMessage(desc, depth + 1);
    }
  }
}

function fieldValue(field: DescField, depth: number): fc.Arbitrary<unknown> | undefined {
  const one = anyValue(field, depth);
  if (one === undefined) return undefined;
  if (field.fieldKind === "list") return fc.array(one, { maxLength: 3 });
  if (field.fieldKind !== "map") return one;
  const keys =
    field.mapKey === ScalarType.STRING ? ["", "a", "b.c"] : field.mapKey === ScalarType.BOOL ? ["true"] : ["-1", "7"];
  return fc.dictionary(fc.constantFrom(...keys), one, { maxKeys: 3 });
}

function anyMessage(desc: DescMessage, depth = 0): fc.Arbitrary<Message> {
  const fields = desc.fields.flatMap((field) => {
    const value = fieldValue(field, depth);
    return value === undefined || field.name === "secret" ? [] : [{ field, value }];
  });
  const some = fc.subarray(fields, { maxLength: Math.min(fields.length, depth === 0 ? 12 : 3) });
  return some.chain((chosen) =>
    fc.tuple(...chosen.map(({ value }) => value)).map((values) => {
      const message = create(desc);
      for (const [i, { field }] of chosen.entries()) setField(message, field, values[i]);
      return message;
    }),
  );
}

for (const desc of [kinds, thing, featureMessage("ListThingsResponse")]) {
  const read = createBodyReader(desc, "all", featureRegistry, true);

  test(`whatever ${desc.name} is written is read back the same`, () => {
    fc.assert(
      fc.property(anyMessage(desc), (message) => {
        for (const write of [writers.details.writerOf(desc), writers.answer(desc)]) {
          const text = write(message);
          assert.deepEqual(toBinary(desc, read(text).message), toBinary(desc, message), text);
        }
      }),
      { numRuns: 300 },
    );
  });

  test(`${desc.name} is written as protobuf-es writes it, and an answer with its empties at every depth`, () => {
    fc.assert(
      fc.property(anyMessage(desc), (message) => {
        const sparse = toJson(desc, message, { registry: featureRegistry });
        assert.deepEqual(plain(JSON.parse(writers.details.writerOf(desc)(message))), plain(sparse));
        const full = toJson(desc, message, { registry: featureRegistry, alwaysEmitImplicit: true });
        assert.deepEqual(plain(JSON.parse(writers.answer(desc)(message))), plain(asResponse(desc, full)));
      }),
      { numRuns: 300 },
    );
  });
}

// Without minus zero, which JSON.stringify cannot write.
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

// What protobuf-es prints with all that is empty, without what a response leaves out.
function asResponse(desc: DescMessage, json: JsonValue): JsonValue {
  if (findWellKnownName(desc) !== undefined || typeof json !== "object" || json === null) return json;
  const response = json as JsonObject;
  for (const field of desc.fields) {
    const { jsonName, message } = field;
    const value = response[jsonName];
    if (value === undefined) continue;
    const isUnspecified = field.fieldKind === "enum" && value === field.enum.values[0]?.name;
    const isNoToken = field.name === "next_page_token" && value === "";
    if ((isUnspecified && field.presence === IMPLICIT) || isNoToken || field.name === "secret")
      delete response[jsonName];
    else if (message !== undefined) {
      const within = field.fieldKind === "message" ? [value] : Object.values(value as JsonObject);
      for (const one of within) asResponse(message, one);
    }
  }
  return response;
}
