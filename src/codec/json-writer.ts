// Writes responses as JSON (docs/api-rules.md#transcoding), with closures that are
// compiled once per message type. They read init objects as well as messages, so no
// message has to be created first.
import { type DescField, type DescMessage, type Registry, ScalarType } from "@bufbuild/protobuf";
import { isInputOnly } from "./field-behavior.js";
import type { Fields } from "./fields.js";
import { formatBytes, formatNumber, quote } from "./json-scalar.js";
import { type MessageWriters, type ValueWriter, wellKnownWriter } from "./json-wkt.js";
import { isLong } from "./value-rules.js";

/** Writes messages as JSON; see {@link createJsonWriters}. */
export interface JsonWriters extends MessageWriters {
  /**
   * The writer of an answer: a resource, which prints its empty scalars, maps and lists, or a list,
   * which does so too and whose elements are resources.
   */
  answer(desc: DescMessage): ValueWriter;

  /** The writer of a field that is sent in place of the whole answer. */
  answerField(field: DescField): ValueWriter;
}

// "sparse" prints what is set, "full" also what is empty, and "list" is full with full elements.
type Mode = "sparse" | "full" | "list";

// Appends a field to the text of a message that has begun.
type FieldWriter = (message: Fields, out: string) => string;

/**
 * Makes the writers.
 *
 * @param registry the types that may stand in an Any.
 */
export function createJsonWriters(registry: Registry): JsonWriters {
  const cache = { sparse: new Map(), full: new Map(), list: new Map() } satisfies Record<
    Mode,
    Map<string, ValueWriter>
  >;

  const writerOf = (desc: DescMessage, mode: Mode): ValueWriter => {
    const known: Map<string, ValueWriter> = cache[mode];
    let writer = known.get(desc.typeName);
    if (writer === undefined) {
      // Registered before its fields are compiled, as a message may hold itself.
      let compiled: ValueWriter | undefined;
      known.set(desc.typeName, (value) => {
        if (compiled === undefined) throw new TypeError(`${desc} is not compiled yet`);
        return compiled(value);
      });
      compiled = wellKnownWriter(desc, writers) ?? messageWriter(desc, mode);
      writer = compiled;
      known.set(desc.typeName, writer);
    }
    return writer;
  };

  const messageWriter = (desc: DescMessage, mode: Mode): ValueWriter => {
    const fields = [...desc.fields]
      .sort((a, b) => a.number - b.number)
      .filter((field) => !isInputOnly(field))
      .map((field) => fieldWriter(field, mode));
    return (value) => {
      const message = value as Fields;
      let out = "{";
      for (let i = 0; i < fields.length; i++) out = (fields[i] as FieldWriter)(message, out);
      return `${out}}`;
    };
  };

  const fieldWriter = (field: DescField, mode: Mode): FieldWriter => {
    const first = `${quote(field.jsonName)}:`;
    const next = `,${first}`;
    const name = field.localName;
    const write = elementWriter(field, mode === "list" && field.fieldKind === "list" ? "full" : "sparse");
    const append = (out: string, text: string) => (out.length === 1 ? out + first + text : out + next + text);
    const empties = mode !== "sparse";

    if (field.oneof !== undefined) {
      const group = field.oneof.localName;
      const skipped = field.fieldKind === "enum" ? 0 : undefined;
      return (message, out) => {
        const member = message[group] as { case?: string; value?: unknown } | undefined;
        if (member?.case !== name || member.value === skipped) return out;
        return append(out, write(member.value));
      };
    }
    switch (field.fieldKind) {
      case "message":
        return (message, out) => {
          const value = message[name];
          return value === undefined || value === null ? out : append(out, write(value));
        };
      case "enum":
        return (message, out) => {
          const value = Object.hasOwn(message, name) ? message[name] : undefined;
          return value === undefined || value === 0 ? out : append(out, write(value));
        };
      case "list":
        return (message, out) => {
          const list = (message[name] ?? []) as readonly unknown[];
          return list.length === 0 && !empties ? out : append(out, listText(list, write));
        };
      case "map":
        return (message, out) => {
          const text = mapText((message[name] ?? {}) as Fields, write);
          return text === "{}" && !empties ? out : append(out, text);
        };
      default:
        return scalarFieldWriter(field, empties && !isPageToken(field), append, write);
    }
  };

  const elementWriter = (field: DescField, mode: Mode): ValueWriter => {
    if (field.message !== undefined) return writerOf(field.message, mode);
    if (field.enum !== undefined) {
      const names = new Map(field.enum.values.map((value) => [value.number, quote(value.name)]));
      if (field.enum.typeName === "google.protobuf.NullValue") return () => "null";
      return (value) => names.get(value as number) ?? String(value);
    }
    return scalarWriter(field.scalar ?? ScalarType.STRING);
  };

  const writers: JsonWriters = {
    registry,
    nested: (desc) => writerOf(desc, "sparse"),
    scalar: (desc) => {
      const type = desc.fields[0]?.scalar ?? ScalarType.STRING;
      const write = scalarWriter(type);
      return (value) => (value === undefined ? zeroText(type) : write(value));
    },
    answer: (desc) => writerOf(desc, isListAnswer(desc) ? "list" : "full"),
    answerField: (field) => {
      const write = elementWriter(field, "full");
      if (field.fieldKind === "list") return (value) => listText((value ?? []) as readonly unknown[], write);
      if (field.fieldKind === "map") return (value) => mapText((value ?? {}) as Fields, write);
      const empty =
        field.fieldKind === "message" ? "{}" : field.fieldKind === "enum" ? write(0) : zeroText(field.scalar);
      return (value) => (value === undefined ? empty : write(value));
    },
  };
  return writers;
}

// A list is known by its page token or, in v1, which has none, by its one field `items`.
function isListAnswer(desc: DescMessage): boolean {
  return desc.fields.some(
    (field) => field.name === "next_page_token" || (field.name === "items" && field.fieldKind === "list"),
  );
}

function isPageToken(field: DescField): boolean {
  return field.name === "next_page_token";
}

type Append = (out: string, text: string) => string;

// Of a field with presence, what was set is printed, whatever it is.
function scalarFieldWriter(
  field: Extract<DescField, { fieldKind: "scalar" }>,
  empties: boolean,
  append: Append,
  write: ValueWriter,
): FieldWriter {
  const name = field.localName;
  if (field.presence !== IMPLICIT) {
    return (message, out) => {
      const value = Object.hasOwn(message, name) ? message[name] : undefined;
      return value === undefined ? out : append(out, write(value));
    };
  }
  const zero = zeroText(field.scalar);
  return (message, out) => {
    const value = message[name];
    const text = value === undefined ? zero : write(value);
    return !empties && text === zero ? out : append(out, text);
  };
}

// FieldPresence.IMPLICIT of google.protobuf.FeatureSet.
const IMPLICIT = 2;

function zeroText(type: ScalarType | undefined): string {
  if (type === undefined || type === ScalarType.STRING || type === ScalarType.BYTES) return '""';
  if (type === ScalarType.BOOL) return "false";
  return isLong(type) ? '"0"' : "0";
}

function scalarWriter(type: ScalarType): ValueWriter {
  switch (type) {
    case ScalarType.STRING:
      return (value) => quote(value as string);
    case ScalarType.BOOL:
      return (value) => (value ? "true" : "false");
    case ScalarType.BYTES:
      return (value) => formatBytes(value as Uint8Array);
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return (value) => formatNumber(value as number);
    default:
      return isLong(type) ? (value) => `"${value}"` : (value) => String(value);
  }
}

function listText(list: readonly unknown[], write: ValueWriter): string {
  let out = "[";
  for (let i = 0; i < list.length; i++) out += i === 0 ? write(list[i]) : `,${write(list[i])}`;
  return `${out}]`;
}

function mapText(map: Fields, write: ValueWriter): string {
  let out = "{";
  for (const key of Object.keys(map)) {
    const member = `${quote(key)}:${write(map[key])}`;
    out += out.length === 1 ? member : `,${member}`;
  }
  return `${out}}`;
}
