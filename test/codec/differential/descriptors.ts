// Random message types: every kind of field there is, in files of proto2, proto3 and edition 2023.
import { create, createFileRegistry, type DescFile, type DescMessage, type Registry } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  Edition,
  type EnumDescriptorProto,
  EnumDescriptorProtoSchema,
  FeatureSet_EnumType,
  FeatureSet_FieldPresence,
  FeatureSet_MessageEncoding,
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  FieldOptions_JSType,
  FileDescriptorProtoSchema,
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import type { Random } from "../../support/openapi/random.js";

/** Random message types, and all that they use. */
export interface RandomTypes {
  readonly registry: Registry;
  readonly messages: readonly DescMessage[];
}

const wellKnownFiles: readonly DescFile[] = [
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
];
/** The types with a JSON form of their own, and Empty. */
export const wellKnownTypes: readonly DescMessage[] = wellKnownFiles.flatMap(({ messages }) => messages);

const SCALARS: readonly Type[] = [
  Type.DOUBLE,
  Type.FLOAT,
  Type.INT64,
  Type.UINT64,
  Type.INT32,
  Type.FIXED64,
  Type.FIXED32,
  Type.BOOL,
  Type.STRING,
  Type.BYTES,
  Type.UINT32,
  Type.SFIXED32,
  Type.SFIXED64,
  Type.SINT32,
  Type.SINT64,
];
const KEYS = SCALARS.filter((type) => ![Type.DOUBLE, Type.FLOAT, Type.BYTES].includes(type));
const LONGS: ReadonlySet<Type> = new Set([Type.INT64, Type.UINT64, Type.FIXED64, Type.SFIXED64, Type.SINT64]);
const WORDS = [
  "a",
  "size",
  "line_1",
  "to_json",
  "constructor",
  "fooBar",
  "next_page_token",
  "x_y_z",
  "value",
  "A",
  "_u",
  "b__c",
];
const JSON_NAMES = ["@odd", "with space", "ünï", 'has"quote', "kebab-case", "typeUrl"];
const SYNTAXES = ["proto3", "proto3", "proto3", "proto2", "editions"] as const;

/** Creates message types that refer to each other and to themselves. */
export function randomTypes(random: Random): RandomTypes {
  const syntax = random.pick(SYNTAXES);
  const enums = range(1 + random.int(2)).map((i) => randomEnum(random, `E${i}`, syntax));
  const names = range(1 + random.int(4)).map((i) => `M${i}`);
  const build = new MessageBuilder(random, syntax, names, enums);
  const file = create(FileDescriptorProtoSchema, {
    name: "random.proto",
    package: "random.types",
    syntax,
    ...(syntax === "editions" && { edition: Edition.EDITION_2023 }),
    dependency: wellKnownFiles.map((f) => f.proto.name),
    enumType: enums,
    messageType: names.map((name) => build.message(name)),
  });
  const registry = createFileRegistry(file, (name) => wellKnownFiles.find((f) => f.proto.name === name));
  return { registry, messages: names.map((name) => registry.getMessage(`random.types.${name}`) as DescMessage) };
}

type Syntax = (typeof SYNTAXES)[number];

function range(length: number): number[] {
  return Array.from({ length }, (_, i) => i);
}

function randomEnum(random: Random, name: string, syntax: Syntax): EnumDescriptorProto {
  const isClosed = syntax === "proto2" || (syntax === "editions" && random.chance(0.3));
  const zero = random.pick(["_UNSPECIFIED", "_UNKNOWN", "_NONE", "_ACTIVE"]);
  const first = isClosed && random.chance(0.3) ? 3 : 0;
  const value = [{ name: `${name}${zero}`, number: first }];
  for (const i of range(random.int(4))) {
    const number = random.pick([i + 1, -i - 1, 2147483647 - i, -2147483648 + i, 0]);
    value.push({ name: `${name}_V${i}`, number });
  }
  const allowAlias = new Set(value.map(({ number }) => number)).size < value.length;
  const features = { enumType: isClosed ? FeatureSet_EnumType.CLOSED : FeatureSet_EnumType.OPEN };
  return create(EnumDescriptorProtoSchema, {
    name,
    value,
    options: { ...(allowAlias && { allowAlias }), ...(syntax === "editions" && { features }) },
  });
}

class MessageBuilder {
  readonly #random: Random;
  readonly #syntax: Syntax;
  readonly #names: readonly string[];
  readonly #enums: readonly EnumDescriptorProto[];

  constructor(random: Random, syntax: Syntax, names: readonly string[], enums: readonly EnumDescriptorProto[]) {
    this.#random = random;
    this.#syntax = syntax;
    this.#names = names;
    this.#enums = enums;
  }

  message(name: string): DescriptorProto {
    const random = this.#random;
    const message = create(DescriptorProtoSchema, { name });
    const taken = new Set<string>();
    const numbers = new Set<number>();
    const oneofs = random.int(3);
    for (const i of range(oneofs))
      message.oneofDecl.push({ $typeName: "google.protobuf.OneofDescriptorProto", name: `choice_${i}` });
    const optionals: FieldDescriptorProto[] = [];
    for (const _ of range(random.int(9))) {
      const fieldName = this.#name(taken);
      const field = create(FieldDescriptorProtoSchema, {
        ...fieldName,
        number: freshNumber(random, numbers),
        label: Label.OPTIONAL,
        ...this.#type(),
      });
      const shape = random.int(6);
      if (shape === 0) this.#makeMap(message, field);
      else if (shape <= 2) this.#makeList(field);
      else if (shape === 3 && oneofs > 0) field.oneofIndex = random.int(oneofs);
      else if (shape === 4) this.#makePresent(field, optionals);
      message.field.push(field);
    }
    // A oneof without members is no proto; synthetic ones come last.
    const used = [...new Set(message.field.flatMap((f) => (isMember(f) ? [f.oneofIndex] : [])))].sort();
    for (const field of message.field) if (isMember(field)) field.oneofIndex = used.indexOf(field.oneofIndex);
    message.oneofDecl = used.map((i) => ({ ...(message.oneofDecl[i] as (typeof message.oneofDecl)[0]) }));
    for (const field of optionals) {
      field.oneofIndex = message.oneofDecl.length;
      message.oneofDecl.push({ $typeName: "google.protobuf.OneofDescriptorProto", name: `_${field.name}` });
    }
    return message;
  }

  #name(taken: Set<string>): { name: string; jsonName: string } {
    const random = this.#random;
    for (;;) {
      const name = `${random.pick(WORDS)}${random.chance(0.5) ? random.int(50) : ""}`;
      const jsonName = random.chance(0.1) ? `${random.pick(JSON_NAMES)}${random.int(50)}` : camelCase(name);
      if (taken.has(name) || taken.has(jsonName)) continue;
      taken.add(name).add(jsonName);
      return { name, jsonName };
    }
  }

  #type(): Partial<Pick<FieldDescriptorProto, "type" | "typeName" | "options">> {
    const random = this.#random;
    switch (random.int(5)) {
      case 0:
        return { type: Type.MESSAGE, typeName: `.random.types.${random.pick(this.#names)}` };
      case 1:
        return { type: Type.MESSAGE, typeName: `.${random.pick(wellKnownTypes).typeName}` };
      case 2: {
        const local = `.random.types.${random.pick(this.#enums).name}`;
        return { type: Type.ENUM, typeName: random.chance(0.1) ? ".google.protobuf.NullValue" : local };
      }
      default: {
        const type = random.pick(SCALARS);
        const asText = LONGS.has(type) && random.chance(0.3);
        const options = create(FieldDescriptorProtoSchema, {
          options: { jstype: FieldOptions_JSType.JS_STRING },
        }).options;
        return asText && options !== undefined ? { type, options } : { type };
      }
    }
  }

  #makeList(field: FieldDescriptorProto): void {
    field.label = Label.REPEATED;
    const isPackable = field.type !== Type.STRING && field.type !== Type.BYTES && field.type !== Type.MESSAGE;
    if (!isPackable || this.#syntax === "editions" || !this.#random.chance(0.5)) return;
    const packed = this.#random.chance(0.5);
    field.options = create(FieldDescriptorProtoSchema, {
      options: { ...(field.options?.jstype !== undefined && { jstype: field.options.jstype }), packed },
    }).options as NonNullable<FieldDescriptorProto["options"]>;
  }

  #makeMap(message: DescriptorProto, field: FieldDescriptorProto): void {
    const name = `Map${field.number}Entry`;
    const { type, typeName } = field;
    message.nestedType.push(
      create(DescriptorProtoSchema, {
        name,
        options: { mapEntry: true },
        field: [
          { name: "key", jsonName: "key", number: 1, label: Label.OPTIONAL, type: this.#random.pick(KEYS) },
          { name: "value", jsonName: "value", number: 2, label: Label.OPTIONAL, type, typeName },
        ],
      }),
    );
    Object.assign(field, {
      label: Label.REPEATED,
      type: Type.MESSAGE,
      typeName: `.random.types.${message.name}.${name}`,
    });
    field.options = undefined as never;
  }

  // What tells unset from zero; in an edition also what does not, and the older encoding of messages.
  #makePresent(field: FieldDescriptorProto, optionals: FieldDescriptorProto[]): void {
    const random = this.#random;
    if (this.#syntax === "proto3") {
      field.proto3Optional = true;
      optionals.push(field);
    } else if (this.#syntax === "proto2") {
      if (random.chance(0.2) && field.type !== Type.MESSAGE) field.label = Label.REQUIRED;
      else if (field.type === Type.INT32) field.defaultValue = "7";
      else if (field.type === Type.STRING) field.defaultValue = "given";
    } else if (field.type === Type.MESSAGE) {
      const features = { messageEncoding: FeatureSet_MessageEncoding.DELIMITED };
      field.options = create(FieldDescriptorProtoSchema, { options: { features } }).options as never;
    } else if (field.type !== Type.ENUM) {
      const features = { fieldPresence: FeatureSet_FieldPresence.IMPLICIT };
      field.options = create(FieldDescriptorProtoSchema, { options: { features } }).options as never;
    }
  }
}

function isMember(field: FieldDescriptorProto): boolean {
  return Object.hasOwn(field, "oneofIndex") && !field.proto3Optional;
}

function freshNumber(random: Random, taken: Set<number>): number {
  for (;;) {
    const number = 1 + random.int(random.pick([15, 2047, 18_999, 536_870_911]));
    if (taken.has(number) || (number >= 19_000 && number < 20_000)) continue;
    taken.add(number);
    return number;
  }
}

// As compilers of protos make it.
function camelCase(name: string): string {
  return name.replace(/_+(.?)/g, (_, letter: string) => letter.toUpperCase());
}
