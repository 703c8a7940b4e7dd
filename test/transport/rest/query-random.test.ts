// Random requests written as query strings: what is read is what protobuf-es makes of the same values as JSON.
// `npm run campaign -- long tests` runs 100,000.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  fromJson,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { createQueryBinder } from "../../../src/transport/rest/query.js";
import { featureMessage, featureRegistry } from "../../support/feature/feature.js";
import { chooseScale } from "../../support/scale.js";

const SEED = 16;
const RUNS = chooseScale(100_000, 1_000);
const kinds = featureMessage("Kinds");

// Lists and maps of all well-known types that are written as text.
const TEXTS: Readonly<Record<string, fc.Arbitrary<string>>> = {
  StringValue: fc.string({ unit: "grapheme", maxLength: 5 }).filter((text) => !text.includes("\0")),
  BytesValue: fc.uint8Array({ maxLength: 5 }).map((bytes) => Buffer.from(bytes).toString("base64")),
  BoolValue: fc.constantFrom("true", "false"),
  Int32Value: fc.integer().map(String),
  UInt32Value: fc.nat(4294967295).map(String),
  Int64Value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
  UInt64Value: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String),
  DoubleValue: fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.constantFrom("NaN", "-Infinity"),
  ),
  FloatValue: fc.float({ noNaN: true, noDefaultInfinity: true }).map(String),
  Timestamp: fc
    .date({ min: new Date("0001-01-01T00:00:00Z"), max: new Date("9999-12-31T00:00:00Z"), noInvalidDate: true })
    .map((date) => date.toISOString()),
  Duration: fc.integer().map((seconds) => `${seconds}.5s`),
  FieldMask: fc.constantFrom("a", "a,bC", "a.bC.d"),
  Struct: fc
    .dictionary(fc.string({ maxLength: 3 }), fc.oneof(fc.constant(null), fc.boolean()))
    .map((value) => JSON.stringify(value)),
  Value: fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
  ListValue: fc.array(fc.boolean()).map((value) => JSON.stringify(value)),
};
const names = Object.keys(TEXTS);
const KEYS: readonly (readonly [FieldDescriptorProto_Type, fc.Arbitrary<string>])[] = [
  [
    FieldDescriptorProto_Type.STRING,
    fc.string({ unit: "grapheme-ascii", maxLength: 4 }).filter((key) => key !== "__proto__"),
  ],
  [FieldDescriptorProto_Type.BOOL, fc.constantFrom("true", "false")],
  [FieldDescriptorProto_Type.INT64, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)],
];

const wrapped = buildMessage();

function buildMessage(): DescMessage {
  const entries: DescriptorProto[] = [];
  const message = create(DescriptorProtoSchema, { name: "Wrapped" });
  names.forEach((name, i) => {
    const value = { type: FieldDescriptorProto_Type.MESSAGE, typeName: `.google.protobuf.${name}` };
    const repeated = { label: FieldDescriptorProto_Label.REPEATED };
    const lower = name.toLowerCase();
    message.field.push({ ...field(`${lower}_list`, i * 2 + 1), ...value, ...repeated });
    const [type] = KEYS[i % KEYS.length] ?? [FieldDescriptorProto_Type.STRING];
    const entry = create(DescriptorProtoSchema, { name: `${name}Entry`, options: { mapEntry: true } });
    const optional = { label: FieldDescriptorProto_Label.OPTIONAL };
    entry.field.push({ ...field("key", 1), type, ...optional }, { ...field("value", 2), ...value, ...optional });
    entries.push(entry);
    const typeName = `.w.Wrapped.${name}Entry`;
    message.field.push({
      ...field(`${lower}_map`, i * 2 + 2),
      ...repeated,
      type: FieldDescriptorProto_Type.MESSAGE,
      typeName,
    });
  });
  message.nestedType.push(...entries);
  const dependency = ["wrappers", "timestamp", "duration", "field_mask", "struct"].map(
    (file) => `google/protobuf/${file}.proto`,
  );
  const file = create(FileDescriptorProtoSchema, {
    name: "w.proto",
    package: "w",
    syntax: "proto3",
    dependency,
    messageType: [message],
  });
  const files = [...featureRegistry.files].map((desc) => desc.proto);
  const set = create(FileDescriptorSetSchema, { file: [...files, file] });
  const desc = createFileRegistry(
    fromBinary(FileDescriptorSetSchema, toBinary(FileDescriptorSetSchema, set)),
  ).getMessage("w.Wrapped");
  assert.ok(desc);
  return desc;
}

function field(name: string, number: number) {
  const jsonName = name.replace(/_([a-z])/, (_, letter: string) => letter.toUpperCase());
  const [one] = create(DescriptorProtoSchema, { field: [{ name, number, jsonName }] }).field;
  assert.ok(one);
  return one;
}

function bindQuery(input: DescMessage, query: string): unknown {
  const message = create(input);
  createQueryBinder({ input, body: "none", inPath: new Set(), ignoreUnknown: false })(message, query);
  return toJson(input, message, { registry: featureRegistry });
}

const part = (text: string) => encodeURIComponent(text).replaceAll("%20", "+");
// What the text of a well-known type is in JSON.
const jsonOf = (name: string, text: string) => {
  if (name === "BoolValue") return text === "true";
  return name === "Struct" || name === "Value" || name === "ListValue" ? JSON.parse(text) : text;
};
const read = (desc: DescMessage, json: object) => toJson(desc, fromJson(desc, JSON.parse(JSON.stringify(json))));

for (const [i, name] of names.entries()) {
  const text = TEXTS[name] as fc.Arbitrary<string>;
  const keys = (KEYS[i % KEYS.length] ?? KEYS[0])?.[1] as fc.Arbitrary<string>;
  const lower = name.toLowerCase();
  const options = { seed: SEED, numRuns: Math.ceil(RUNS / names.length / 2) };

  test(`lists of ${name}: seed ${SEED}, ${options.numRuns} runs`, () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 4 }), (texts) => {
        const query = texts.map((one) => `${lower}_list=${part(one)}`).join("&");
        assert.deepEqual(
          bindQuery(wrapped, query),
          read(wrapped, { [`${lower}List`]: texts.map((one) => jsonOf(name, one)) }),
        );
      }),
      options,
    );
  });

  test(`maps of ${name}: seed ${SEED}, ${options.numRuns} runs`, () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(keys, text), { minLength: 1, maxLength: 3, selector: ([key]) => key }),
        (pairs) => {
          const query = pairs.map(([key, one]) => `${lower}Map${part(`[${key}]`)}=${part(one)}`).join("&");
          const json = Object.fromEntries(pairs.map(([key, one]) => [key, jsonOf(name, one)]));
          assert.deepEqual(bindQuery(wrapped, query), read(wrapped, { [`${lower}Map`]: json }));
        },
      ),
      options,
    );
  });
}

function merge(into: Record<string, unknown>, from: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(from)) {
    const before = into[name];
    if (before === undefined) into[name] = value;
    else merge(before as Record<string, unknown>, value as Record<string, unknown>);
  }
}

// The fields of Kinds by kind of value, in both spellings.
const scalar = fc.record(
  {
    stringValue: TEXTS.StringValue as fc.Arbitrary<string>,
    bytesValue: TEXTS.BytesValue as fc.Arbitrary<string>,
    boolValue: fc.boolean(),
    int32Value: fc.integer(),
    int64Value: TEXTS.Int64Value as fc.Arbitrary<string>,
    uint64Value: TEXTS.UInt64Value as fc.Arbitrary<string>,
    stringLong: TEXTS.Int64Value as fc.Arbitrary<string>,
    doubleValue: fc.double({ noNaN: true, noDefaultInfinity: true }),
    floatValue: fc.float({ noNaN: true, noDefaultInfinity: true }),
    colorValue: fc.constantFrom("COLOR_RED", "COLOR_BLUE"),
    optionalInt32: fc.constantFrom(0, 1),
    optionalString: fc.constantFrom("", "a"),
    timestamp: TEXTS.Timestamp as fc.Arbitrary<string>,
    duration: TEXTS.Duration as fc.Arbitrary<string>,
    int64Wrapper: TEXTS.Int64Value as fc.Arbitrary<string>,
    strings: fc.array(fc.string(), { minLength: 1, maxLength: 3 }).filter((all) => !all.join("").includes("\0")),
    longs: fc.array(TEXTS.Int64Value as fc.Arbitrary<string>, { minLength: 1, maxLength: 3 }),
    stringWrappers: fc.array(fc.constantFrom("", "a", "ä"), { minLength: 1 }),
    timestamps: fc.array(TEXTS.Timestamp as fc.Arbitrary<string>, { minLength: 1, maxLength: 2 }),
    "detail.title": fc.constantFrom("a", "ä&="),
    "detail.inner.lines": fc.array(fc.constantFrom("", "x"), { minLength: 1 }),
    choiceWrapper: fc.constantFrom("", "a"),
  },
  { requiredKeys: [] },
);

test(`requests of many parameters: seed ${SEED}, ${RUNS} runs`, () => {
  fc.assert(
    fc.property(scalar, fc.boolean(), (values, isSnakeCase) => {
      const parameters = Object.entries(values).flatMap(([name, value]) => {
        const spelt = isSnakeCase ? name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`) : name;
        return [value].flat().map((one) => `${spelt}=${part(String(one))}`);
      });
      const json: Record<string, unknown> = {};
      for (const [name, value] of Object.entries(values)) {
        const nested = name.split(".").reduceRight<unknown>((inner, one) => ({ [one]: inner }), value);
        merge(json, nested as Record<string, unknown>);
      }
      assert.deepEqual(bindQuery(kinds, parameters.join("&")), read(kinds, json));
    }),
    { seed: SEED, numRuns: RUNS },
  );
});
