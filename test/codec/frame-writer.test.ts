import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, createFileRegistry, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProtoSchema,
  type FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  TimestampSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { encodeFrame } from "../../src/codec/frame-writer.js";
import { featureMessage } from "../support/feature/feature.js";

type Field = MessageInitShape<typeof FieldDescriptorProtoSchema>;

const int32 = fc.integer();
const uint32 = fc.nat({ max: 0xffffffff });
const int64 = fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.bigInt({ min: -300n, max: 300n }));
const uint64 = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.bigInt({ min: 0n, max: 2n ** 33n }));
const text = fc.oneof(fc.string({ unit: "grapheme", maxLength: 20 }), fc.string({ minLength: 150, maxLength: 400 }));

/** Every scalar type with values of it. */
const scalars: readonly (readonly [Type, fc.Arbitrary<unknown>])[] = [
  [Type.DOUBLE, fc.double()],
  [Type.FLOAT, fc.float()],
  [Type.INT64, int64],
  [Type.UINT64, uint64],
  [Type.INT32, int32],
  [Type.FIXED64, uint64],
  [Type.FIXED32, uint32],
  [Type.BOOL, fc.boolean()],
  [Type.STRING, text],
  [Type.BYTES, fc.uint8Array({ maxLength: 200 })],
  [Type.UINT32, uint32],
  [Type.SFIXED32, int32],
  [Type.SFIXED64, int64],
  [Type.SINT32, int32],
  [Type.SINT64, int64],
];
const keys: Partial<Record<Type, readonly string[]>> = {
  [Type.STRING]: ["", "a", "ö"],
  [Type.BOOL]: ["true", "false"],
  [Type.UINT64]: ["0", "18446744073709551615"],
  [Type.INT32]: ["-1", "7"],
  [Type.SINT64]: ["-9223372036854775808", "1"],
};

const fields: Field[] = [];
const values: Record<string, fc.Arbitrary<unknown>> = {};
const entries: MessageInitShape<typeof DescriptorProtoSchema>[] = [];
for (const [type, value] of scalars) {
  const name = Type[type].toLowerCase();
  const add = (label: string, shape: Field, of: fc.Arbitrary<unknown>) => {
    fields.push({ type, label: Label.OPTIONAL, ...shape, name: `${label}${name}`, number: fields.length * 7 + 1 });
    values[`${label}${name}`] = of;
  };
  add("one", {}, value);
  add("member", { oneofIndex: 0 }, value);
  add("many", { label: Label.REPEATED }, fc.array(value, { maxLength: 5 }));
  if (type !== Type.STRING && type !== Type.BYTES) {
    add("loose", { label: Label.REPEATED, options: { packed: false } }, fc.array(value, { maxLength: 3 }));
  }
  for (const [keyType, texts] of Object.entries(keys)) {
    const entry = `By${keyType}${name}Entry`;
    const part = (part: string, number: number, of: Type) => ({ name: part, number, type: of, label: Label.OPTIONAL });
    const field = [part("key", 1, Number(keyType)), part("value", 2, type)];
    entries.push({ name: entry, options: { mapEntry: true }, field });
    const map = { label: Label.REPEATED, type: Type.MESSAGE, typeName: `.t.All.${entry}` };
    add(`by${keyType}`, map, fc.dictionary(fc.constantFrom(...texts), value, { maxKeys: 3, noNullPrototype: true }));
  }
}
const registry = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: "all.proto",
    package: "t",
    syntax: "proto3",
    messageType: [{ name: "All", field: fields, nestedType: entries, oneofDecl: [{ name: "group" }] }],
  }),
  () => undefined,
);
const all = registry.getMessage("t.All") as DescMessage;

// A frame is its prefix and what protobuf-es makes of the same message.
function assertSame(desc: DescMessage, init: object): void {
  const message = create(desc, init as MessageInitShape<DescMessage>);
  const expected = Buffer.from(toBinary(desc, message));
  for (const response of [init, message]) {
    const frame = encodeFrame(desc, response);
    assert.deepEqual([frame[0], frame.readUInt32BE(1)], [0, expected.length]);
    assert.deepEqual(frame.subarray(5), expected);
  }
}

describe("frames of answers", () => {
  for (const field of all.fields) {
    test(`${field.name} is written as protobuf-es writes it`, () => {
      const value = values[field.name] ?? fc.constant(undefined);
      fc.assert(
        fc.property(value, (v) => {
          const init = field.oneof ? { group: { case: field.localName, value: v } } : { [field.localName]: v };
          assertSame(all, init);
        }),
        { numRuns: 30 },
      );
    });
  }

  test("fields are written in the order of their numbers", () => {
    assertSame(all, { onestring: "a", onebool: true, oneint32: 5, manyint32: [1, -2, 300], byfloat: {} });
  });

  const detail = { title: "t", level: -1, lines: ["a", "", "ö"], inner: { inner: { level: 7 } } };
  const wrappers = {
    stringWrapper: "",
    boolWrapper: true,
    stringWrappers: [{ value: "a" }, { value: "" }],
    choice: { case: "choiceWrapper", value: { value: "b" } },
  };
  const cases: readonly { name: string; desc: string; init: object }[] = [
    { name: "nothing set", desc: "Thing", init: {} },
    {
      name: "nested messages, lists and maps",
      desc: "Thing",
      init: { uid: "u", detail, parts: [detail, {}, detail], labels: { b: "1", a: "" } },
    },
    { name: "an optional field set to its zero value", desc: "Thing", init: { note: "" } },
    { name: "a oneof set to its zero value", desc: "Detail", init: { choice: { case: "number", value: 0n } } },
    {
      name: "times before 1970 and long after",
      desc: "Thing",
      init: { createTime: { seconds: -62135596800n, nanos: 1 } },
    },
    {
      name: "more than the buffer holds at first",
      desc: "Thing",
      init: { parts: Array.from({ length: 20_000 }, () => detail) },
    },
    { name: "a text beyond the buffer", desc: "Thing", init: { displayName: "ö".repeat(3_000_000) } },
    { name: "a field that is kept as JSON", desc: "Thing", init: { extra: { a: [1, "b"] }, uid: "u", note: "n" } },
    { name: "wrappers", desc: "Kinds", init: wrappers },
  ];
  for (const { name, desc, init } of cases) {
    test(name, () => assertSame(featureMessage(desc), init));
  }

  test("a large frame leaves nothing behind in the next", () => {
    assertSame(featureMessage("Thing"), { displayName: "x".repeat(2_000_000) });
    assertSame(TimestampSchema, { seconds: 1_767_225_600n, nanos: 5 });
  });

  const bad = [
    { name: "a fraction in an integer", init: { oneint32: 1.5 } },
    { name: "an integer beyond its range", init: { oneuint32: -1 } },
    { name: "nothing where a list needs something", init: { manystring: [undefined] } },
  ];
  for (const { name, init } of bad) {
    test(`refused: ${name}`, () => {
      assert.throws(() => encodeFrame(all, init));
      assertSame(all, { onestring: "the next is in order" });
    });
  }
});
