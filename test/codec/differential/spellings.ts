// The same JSON in other spellings, right and wrong ones: what the JSON mapping of protobuf lets a caller write in several
// ways, and what it does not. Spellings that this service reads deliberately otherwise are not among them.
import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Registry,
  ScalarType,
} from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { isLong } from "../../../src/codec/value-rules.js";
import { isJsonObject } from "../../../src/kernel/strict-json.js";
import type { Random } from "../../support/openapi/random.js";

/** What a text was made of. */
export interface Spelling {
  /** Members that no message has. */
  readonly withUnknown: boolean;
  /** How probable a wrong spelling of a value is. */
  readonly wrong: number;
  /** Whether an enum may have a name that it does not have. */
  readonly wrongNames: boolean;
}

const JUNK: readonly string[] = [
  "null",
  "true",
  "0",
  "-1",
  "1.5",
  '"x"',
  '""',
  "[]",
  "{}",
  "[null]",
  '{"a":1}',
  "1e40",
  '"1"',
  "4294967296",
  '"-9223372036854775809"',
  '"18446744073709551616"',
  '"1.5x"',
  "2147483648",
  '"NaN"',
  '"abc="',
];
const UNKNOWN: readonly string[] = ['"no such":1', '"noSuchField":{"a":[null]}', '"no_such":null'];

/** Writes the JSON of a message in some spelling. */
export class Speller {
  readonly #random: Random;
  readonly #registry: Registry;
  readonly #spelling: Spelling;

  constructor(random: Random, registry: Registry, spelling: Spelling) {
    this.#random = random;
    this.#registry = registry;
    this.#spelling = spelling;
  }

  /** @param json what protobuf-es writes of a message of `desc`. */
  message(desc: DescMessage, json: JsonValue): string {
    const random = this.#random;
    // Null would unset a member of a oneof, and make room for another.
    if (random.chance(this.#spelling.wrong / 4)) return random.pick(JUNK.slice(1));
    if (desc.typeName === "google.protobuf.Any") return this.#any(json as JsonObject);
    const [value] = desc.fields;
    if (isWrapperDesc(desc) && value !== undefined) return this.#value(value, json);
    if (desc.typeName === "google.protobuf.Timestamp") return this.#timestamp(json as string);
    if (desc.typeName === "google.protobuf.Duration") return this.#duration(json as string);
    if (hasCustomJsonRepresentation(desc)) return this.#plain(json);
    return this.#object(desc, json as JsonObject, []);
  }

  #object(desc: DescMessage, json: JsonObject, first: readonly string[]): string {
    const random = this.#random;
    const members = [...first];
    for (const field of desc.fields) {
      const value = Object.hasOwn(json, field.jsonName) ? json[field.jsonName] : undefined;
      if (value !== undefined) members.push(`${this.#name(field)}:${this.#space()}${this.#field(field, value)}`);
      else if (random.chance(0.2) && (field.oneof === undefined || field.fieldKind === "scalar") && !isNullable(field))
        members.push(`${this.#name(field)}:null`);
    }
    if (this.#spelling.withUnknown && random.chance(0.5)) members.push(random.pick(UNKNOWN));
    // Names twice, and two members of one oneof.
    if (random.chance(this.#spelling.wrong) && desc.fields.length > 0) {
      const field = random.pick(desc.fields);
      if (!field.oneof || field.fieldKind === "scalar" || isNullable(field))
        members.push(`${this.#name(field)}:${this.#junk(field)}`);
    }
    if (random.chance(0.3)) members.reverse();
    return `{${this.#space()}${members.join(random.pick([",", " ,\n"]))}}`;
  }

  #junk(field: DescField): string {
    const isName = (text: string) => field.enum !== undefined && text.startsWith('"');
    return this.#random.pick(this.#spelling.wrongNames ? JUNK : JUNK.filter((text) => !isName(text)));
  }

  #name({ name, jsonName }: DescField): string {
    return this.#text(this.#random.chance(0.3) ? name : jsonName);
  }

  #field(field: DescField, json: JsonValue): string {
    const random = this.#random;
    if (random.chance(this.#spelling.wrong / 4) && !isOtherMember(field)) return this.#junk(field);
    if (Array.isArray(json) && field.fieldKind === "list") {
      const items = json.map((item) => this.#value(field, item));
      if (random.chance(this.#spelling.wrong / 4)) items.push("null");
      return `[${this.#space()}${items.join(`${this.#space()},`)}]`;
    }
    if (field.fieldKind !== "map" || !isJsonObject(json)) return this.#value(field, json);
    const members = Object.entries(json).map(
      ([key, item]) => `${this.#key(field.mapKey, key)}:${this.#value(field, item)}`,
    );
    if (random.chance(this.#spelling.wrong / 4))
      members.push(`${this.#text(random.pick(["a", "-1", "1.5", "true", "TRUE", "-0", "4294967296"]))}:null`);
    return `{${members.join(",")}}`;
  }

  #key(type: ScalarType, key: string): string {
    const isNumber = type !== ScalarType.STRING && type !== ScalarType.BOOL;
    return isNumber && !key.startsWith("-") && this.#random.chance(0.2) ? `"0${key}"` : this.#text(key);
  }

  #value(field: DescField, json: JsonValue): string {
    const random = this.#random;
    const isJunk = random.chance(this.#spelling.wrong / 4) && !isOtherMember(field);
    if (isJunk) return this.#junk(field);
    if (field.message !== undefined) return this.message(field.message, json);
    if (field.enum !== undefined) return this.#enum(field, json);
    switch (field.scalar) {
      case ScalarType.BYTES:
        return this.#bytes(json as string);
      case ScalarType.DOUBLE:
      case ScalarType.FLOAT:
        return typeof json === "number" && random.chance(0.3) ? `"${json}"` : this.#number(json);
      case ScalarType.STRING:
      case ScalarType.BOOL:
        return this.#plain(json);
      default:
        return this.#integer(field.scalar as ScalarType, json as number | string);
    }
  }

  #enum({ enum: desc }: DescField, json: JsonValue): string {
    const random = this.#random;
    if (json === null) return random.pick(["null", '"NULL_VALUE"', "0"]);
    const number = typeof json === "number" ? json : desc?.values.find(({ name }) => name === json)?.number;
    const names = desc?.values.filter((value) => value.number === number) ?? [];
    if (random.chance(0.3) || names.length === 0) return this.#number(number ?? 0);
    return this.#text(random.pick(names).name);
  }

  #integer(type: ScalarType, json: number | string): string {
    const random = this.#random;
    const number = Number(json);
    if (isLong(type) && !Number.isSafeInteger(number))
      return random.pick([`"${json}"`, `"${json}"`.replace(/"(?=\d)/, '"00')]);
    const spellings = [
      String(json),
      `"${json}"`,
      `${json}.0`,
      `${json}e0`,
      number === 0 ? "-0" : `${json}`,
      `"${String(json).replace(/^(-?)/, "$10")}"`,
    ];
    if (!isLong(type)) spellings.push(`"${json}.0"`, `"${json}e0"`);
    return random.pick(spellings);
  }

  #number(json: JsonValue): string {
    if (typeof json !== "number") return this.#plain(json);
    const text = Object.is(json, -0) ? "-0" : JSON.stringify(json);
    return this.#random.chance(0.2) && /^-?\d+$/.test(text) ? `${text}.0e+0` : text;
  }

  #bytes(json: string): string {
    const random = this.#random;
    const url = json.replaceAll("+", "-").replaceAll("/", "_");
    const spelling = random.pick([json, url, json.replace(/=+$/, ""), url.replace(/=+$/, "")]);
    return this.#text(
      random.chance(this.#spelling.wrong) ? `${spelling}${random.pick(["?", "A", "=", " ", "é"])}` : spelling,
    );
  }

  #timestamp(json: string): string {
    const random = this.#random;
    if (random.chance(this.#spelling.wrong)) {
      const day = "2024-02-28T23:59:59";
      const ends = ["", "z", "+0100", "+24:00", ".Z", ".1234567890Z", "-00:60", " Z"];
      const others = [
        `2024-13-01T00:00:00Z`,
        "2024-01-32T00:00:00Z",
        "0000-12-31T23:59:59Z",
        "2024-01-01T23:59:60Z",
        "2024-01-01",
        "9999-12-31T23:59:59-00:01",
        "10000-01-01T00:00:00Z",
      ];
      return this.#text(random.pick([...ends.map((end) => day + end), ...others]));
    }
    // An offset may lead out of the years there are; then it is wrong for both.
    const local = json.replace("Z", random.pick(["Z", "Z", "+00:00", "-00:00", "+05:30", "-12:00", "+23:59"]));
    return this.#text(
      local.includes(".") && random.chance(0.5) ? local.replace(/(\.\d{1,8}?)0+(?=[Z+-])/, "$1") : local,
    );
  }

  #duration(json: string): string {
    const random = this.#random;
    if (random.chance(this.#spelling.wrong))
      return this.#text(
        random.pick([
          "1",
          "1m",
          "s",
          "1.s",
          ".5s",
          "+1s",
          "315576000001s",
          "-315576000001s",
          "1.1234567890s",
          "1e3s",
          "--1s",
        ]),
      );
    return this.#text(
      json.includes(".") ? json.replace(/0+s$/, "s") : json.replace("s", random.pick(["s", ".0s", ".000000000s"])),
    );
  }

  #any(json: JsonObject): string {
    const random = this.#random;
    const type = json["@type"];
    const desc =
      typeof type === "string" ? this.#registry.getMessage(type.slice(type.lastIndexOf("/") + 1)) : undefined;
    if (desc === undefined) return "{}";
    const types = [type, desc.typeName, "", "type.googleapis.com/no.such.Type", 5, null];
    const member = `"@type":${JSON.stringify(random.chance(this.#spelling.wrong) ? random.pick(types) : type)}`;
    const { "@type": _, ...fields } = json;
    if (!hasCustomJsonRepresentation(desc)) return this.#object(desc, fields, [member]);
    const members = [member, `"value":${this.message(desc, json.value as JsonValue)}`];
    return `{${random.chance(0.3) ? members.reverse() : members}}`;
  }

  #plain(json: JsonValue): string {
    if (typeof json === "string") return this.#text(json);
    if (typeof json !== "object" || json === null) return JSON.stringify(json);
    if (Array.isArray(json)) return `[${json.map((item) => this.#plain(item)).join(`,${this.#space()}`)}]`;
    return `{${Object.entries(json)
      .map(([key, value]) => `${this.#text(key)}:${this.#plain(value)}`)
      .join(",")}}`;
  }

  // Any character may be written by its number.
  #text(text: string): string {
    if (text.length > 40 || !this.#random.chance(0.1)) return JSON.stringify(text);
    const units = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i).toString(16).padStart(4, "0"));
    return `"${units.map((unit) => `\\u${unit}`).join("")}"`;
  }

  #space(): string {
    return this.#random.pick(["", "", " ", "\n\t"]);
  }
}

function isNullable(field: DescField): boolean {
  return [field.message?.typeName, field.enum?.typeName].some(
    (name) => name === "google.protobuf.Value" || name === "google.protobuf.NullValue",
  );
}

// Null for a message or an enum in a oneof is read deliberately otherwise.
function isOtherMember(field: DescField): boolean {
  return field.oneof !== undefined && field.fieldKind !== "scalar" && !isNullable(field);
}
