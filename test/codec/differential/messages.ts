// Random messages of any type, in the form protobuf-es keeps them in. Values are often the least, the greatest or zero.
import {
  create,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Message,
  type Registry,
  ScalarType,
} from "@bufbuild/protobuf";
import { AnySchema, anyPack, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { setField } from "../../../src/codec/fields.js";
import type { Random } from "../../support/openapi/random.js";
import { wellKnownTypes } from "./descriptors.js";

const TEXTS = [
  "",
  "a",
  'quote " and \\',
  "tab\t, newline\n, bell\u0007",
  "ä€😀",
  "\u2028\u2029</script>",
  "__proto__",
  "x".repeat(81),
  "ö".repeat(200),
  "😀".repeat(90),
];
const KEYS = ["", "a", "constructor", "b.c", "ö\n", "toString"];
const PATHS = ["a", "b_c", "d.e_f", "*", "name"];
const MAX_DEPTH = 4;

/** Creates a message; types within an Any are of `types`, and U+0000 occurs only where `withNul` is set. */
export class MessageMaker {
  readonly #random: Random;
  readonly #types: readonly DescMessage[];
  readonly #registry: Registry;

  constructor(random: Random, types: readonly DescMessage[], registry: Registry) {
    this.#random = random;
    this.#types = types;
    this.#registry = registry;
  }

  message(desc: DescMessage, depth = 0): Message {
    const random = this.#random;
    const [value] = desc.fields;
    if (isWrapperDesc(desc) && value !== undefined)
      return create(desc, { [value.localName]: this.#scalar(value.scalar as ScalarType, false) });
    switch (desc.typeName) {
      case "google.protobuf.Timestamp":
        return create(desc, { seconds: this.#seconds(-62_135_596_800n, 253_402_300_799n), nanos: this.#nanos() });
      case "google.protobuf.Duration": {
        const seconds = this.#seconds(-315_576_000_000n, 315_576_000_000n);
        const isNegative = seconds < 0n || (seconds === 0n && random.chance(0.5));
        return create(desc, { seconds, nanos: isNegative ? 0 - this.#nanos() : this.#nanos() });
      }
      case "google.protobuf.FieldMask":
        return create(desc, { paths: this.#many(3, () => random.pick(PATHS)) });
      case "google.protobuf.Any": {
        if (depth > MAX_DEPTH || random.chance(0.1)) return create(AnySchema);
        const type = random.pick([...this.#types, ...wellKnownTypes]);
        return anyPack(type, this.message(type, depth + 1));
      }
      case "google.protobuf.Value":
        return create(desc, { kind: this.#kind(depth) });
    }
    const message = create(desc);
    const density = random.pick([0.2, 0.6, 1]);
    for (const field of desc.fields) {
      const isRequired = field.proto.label === 2;
      if (!isRequired && (depth > MAX_DEPTH || !random.chance(density / (1 + depth)))) continue;
      setField(message, field, this.#field(field, depth));
    }
    return message;
  }

  #field(field: DescField, depth: number): unknown {
    const random = this.#random;
    if (field.fieldKind === "list") return this.#many(4, () => this.#value(field, depth));
    if (field.fieldKind !== "map") return this.#value(field, depth);
    const map: Record<string, unknown> = {};
    for (let i = random.int(4); i > 0; i--) {
      const key = field.mapKey === ScalarType.STRING ? random.pick(KEYS) : String(this.#scalar(field.mapKey, false));
      map[key] = this.#value(field, depth);
    }
    return map;
  }

  #value(field: DescField, depth: number): unknown {
    const random = this.#random;
    const { message } = field;
    if (field.enum !== undefined) {
      if (field.enum.typeName === "google.protobuf.NullValue") return 0;
      const known = random.pick(field.enum.values).number;
      return field.enum.open && random.chance(0.1) ? (this.#scalar(ScalarType.INT32, false) as number) : known;
    }
    if (message === undefined)
      return this.#scalar(
        field.scalar as ScalarType,
        field.fieldKind !== "map" && (field as { longAsString: boolean }).longAsString,
      );
    if (message.typeName === "google.protobuf.Struct" && field.parent.typeName !== "google.protobuf.Value")
      return this.#struct(depth);
    const made = this.message(message, depth + 1);
    const isBare = isWrapperDesc(message) && field.fieldKind === "message" && field.oneof === undefined;
    return isBare ? (made as unknown as { value: unknown }).value : made;
  }

  #scalar(type: ScalarType, longAsString: boolean): unknown {
    const random = this.#random;
    switch (type) {
      case ScalarType.BOOL:
        return random.chance(0.5);
      case ScalarType.STRING:
        return random.pick(TEXTS);
      case ScalarType.BYTES:
        return Uint8Array.from({ length: random.pick([0, 1, 2, 3, 4, 100]) }, () =>
          random.pick([0, 251, 255, random.int(256)]),
        );
      case ScalarType.DOUBLE:
        return random.pick([
          0,
          -0,
          1.5,
          -1,
          1e21,
          1e-7,
          Number.MAX_VALUE,
          Number.MIN_VALUE,
          Number.NaN,
          Infinity,
          -Infinity,
          random.int(1e9) / 1e3,
        ]);
      case ScalarType.FLOAT:
        return Math.fround(
          random.pick([
            0,
            -0,
            1.5,
            -1,
            3.4028234663852886e38,
            1e-45,
            Number.NaN,
            Infinity,
            -Infinity,
            random.int(1e9) / 1e3,
          ]),
        );
      case ScalarType.UINT32:
      case ScalarType.FIXED32:
        return random.pick([0, 1, 4294967295, random.int(2 ** 32)]);
      case ScalarType.INT32:
      case ScalarType.SINT32:
      case ScalarType.SFIXED32:
        return random.pick([0, 1, -1, 2147483647, -2147483648, random.int(2 ** 32) - 2 ** 31]);
      default: {
        const isSigned = type !== ScalarType.UINT64 && type !== ScalarType.FIXED64;
        const ends = isSigned ? [-1n, 2n ** 63n - 1n, -(2n ** 63n)] : [2n ** 64n - 1n, 2n ** 63n];
        const long = random.pick([0n, 1n, 2n ** 53n + 1n, BigInt(random.int(2 ** 32)), ...ends]);
        return longAsString ? String(long) : long;
      }
    }
  }

  #seconds(least: bigint, greatest: bigint): bigint {
    const random = this.#random;
    return random.pick([0n, least, greatest, -1n, 951_782_400n, BigInt(random.int(4e9)), -BigInt(random.int(4e9))]);
  }

  #nanos(): number {
    const random = this.#random;
    return random.pick([0, 0, 1, 999_999_999, 5_000_000, 123_456_000, random.int(1e9)]);
  }

  #many<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.#random.int(most) }, make);
  }

  #kind(depth: number): object {
    const random = this.#random;
    switch (random.int(depth > MAX_DEPTH ? 4 : 6)) {
      case 0:
        return { case: "nullValue", value: 0 };
      case 1:
        return { case: "numberValue", value: random.pick([0, -1.5, 1e300, 2 ** 60]) };
      case 2:
        return { case: "stringValue", value: random.pick(TEXTS) };
      case 3:
        return { case: "boolValue", value: random.chance(0.5) };
      case 4:
        return { case: "structValue", value: this.message(this.#findMessage("Struct"), depth + 1) };
      default:
        return { case: "listValue", value: this.message(this.#findMessage("ListValue"), depth + 1) };
    }
  }

  #findMessage(name: string): DescMessage {
    return (
      this.#registry.getMessage(`google.protobuf.${name}`) ??
      (wellKnownTypes.find((desc) => desc.name === name) as DescMessage)
    );
  }

  #struct(depth: number): JsonObject {
    const json: JsonObject = {};
    for (let i = this.#random.int(3); i > 0; i--) json[this.#random.pick(KEYS)] = this.#json(depth + 1);
    return json;
  }

  #json(depth: number): JsonValue {
    const random = this.#random;
    switch (random.int(depth > MAX_DEPTH ? 4 : 6)) {
      case 0:
        return null;
      case 1:
        return random.pick([0, -1.5, 1e300]);
      case 2:
        return random.pick(TEXTS);
      case 3:
        return random.chance(0.5);
      case 4:
        return this.#struct(depth);
      default:
        return this.#many(3, () => this.#json(depth + 1));
    }
  }
}
