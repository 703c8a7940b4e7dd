// Writes responses as JSON (docs/api-rules.md#transcoding), with closures that are
// compiled once per message type. They read init objects as well as messages, so no
// message has to be created first.
import { type DescField, type DescMessage, type Registry, ScalarType } from "@bufbuild/protobuf";
import { isInputOnly } from "./field-behavior.js";
import type { Fields } from "./fields.js";
import { formatBytes, formatNumber, quote } from "./json-scalar.js";
import { type MessageWriters, type ValueWriter, wellKnownWriter } from "./json-wkt.js";
import { createMessageCompiler, fieldAccess, hasPresence, type OneofMember, type WriteField } from "./message-walk.js";
import { isLong } from "./value-rules.js";

/** Writes messages as JSON; see {@link createJsonWriters}. */
export interface JsonWriters {
  /** Writers of the details of errors, which print only what is set. */
  readonly details: MessageWriters;

  /** The writer of an answer, which prints what is empty as well, at every depth: see {@link isPrintedEmpty}. */
  answer(desc: DescMessage): ValueWriter;

  /** The writer of a field that is sent in place of the whole answer. */
  answerField(field: DescField): ValueWriter;
}

/**
 * Creates the writers.
 *
 * @param registry the types that may stand in an Any.
 */
export function createJsonWriters(registry: Registry): JsonWriters {
  const full = createWriters(registry, isPrintedEmpty);
  return {
    details: createWriters(registry, () => false).messages,
    answer: (desc) => full.messages.nested(desc),
    answerField(field) {
      const write = full.value(field);
      const empty = field.fieldKind === "message" ? "{}" : field.fieldKind === "enum" ? write(0) : emptyText(field);
      return (value) => (value === undefined ? empty : write(value));
    },
  };
}

/**
 * Whether a field of an answer is printed where it is empty: every scalar without presence, list and map, except an
 * empty page token, which stands for no further page.
 */
export function isPrintedEmpty(field: DescField): boolean {
  return !hasPresence(field) && field.fieldKind !== "enum" && field.name !== "next_page_token";
}

interface Writers {
  readonly messages: MessageWriters;
  /** The writer of the value of a field, which is never undefined. */
  value(field: DescField): ValueWriter;
}

function createWriters(registry: Registry, printsEmpty: (field: DescField) => boolean): Writers {
  const compiled = createMessageCompiler<ValueWriter, string>({
    order: "ascending",
    isWritten: (field) => !isInputOnly(field),
    message: (fields) => (value) => {
      let out = "{";
      for (let i = 0; i < fields.length; i++) out = (fields[i] as WriteField<string>)(value as Fields, out);
      return `${out}}`;
    },
    field: (field) => fieldWriter(field, value(field), printsEmpty(field)),
  });

  const value = (field: DescField): ValueWriter => {
    const write = elementWriter(field);
    if (field.fieldKind === "list") return (list) => listText(list as readonly unknown[], write);
    if (field.fieldKind === "map") return (map) => mapText(map as Fields, write);
    return write;
  };

  const elementWriter = (field: DescField): ValueWriter => {
    if (field.message !== undefined) return messages.nested(field.message);
    if (field.enum !== undefined) {
      const names = new Map(field.enum.values.map((value) => [value.number, quote(value.name)]));
      if (field.enum.typeName === "google.protobuf.NullValue") return () => "null";
      return (number) => names.get(number as number) ?? String(number);
    }
    return scalarWriter(field.scalar ?? ScalarType.STRING);
  };

  const messages: MessageWriters = {
    registry,
    nested: (desc) => wellKnownWriter(desc, messages) ?? compiled(desc),
    scalar: (desc) => {
      const type = desc.fields[0]?.scalar ?? ScalarType.STRING;
      const write = scalarWriter(type);
      return (value) => (value === undefined ? zeroText(type) : write(value));
    },
  };
  return { messages, value };
}

function fieldWriter(field: DescField, write: ValueWriter, printsEmpty: boolean): WriteField<string> {
  const first = `${quote(field.jsonName)}:`;
  const next = `,${first}`;
  const append = (out: string, text: string) => (out.length === 1 ? out + first + text : out + next + text);
  const empty = emptyText(field);
  const access = fieldAccess(field);
  const { kind, property } = access;
  switch (kind) {
    case "member": {
      const { name } = access;
      return (message, out) => {
        const member = message[property] as OneofMember | undefined;
        return member?.case === name ? append(out, write(member.value)) : out;
      };
    }
    case "present":
      return (message, out) => {
        const value = Object.hasOwn(message, property) ? message[property] : undefined;
        return value === undefined || value === null ? out : append(out, write(value));
      };
    case "implicit": {
      const { isZero } = access;
      return (message, out) => {
        const value = message[property];
        if (value !== undefined && !isZero(value)) return append(out, write(value));
        return printsEmpty ? append(out, empty) : out;
      };
    }
    default:
      return (message, out) => {
        const text = write(message[property] ?? NOTHING[kind]);
        return text === empty && !printsEmpty ? out : append(out, text);
      };
  }
}

const NOTHING = { list: [], map: {} };

// What a field prints that is a list or map without elements, or a scalar at zero.
function emptyText(field: DescField): string {
  if (field.fieldKind === "list") return "[]";
  return field.fieldKind === "map" ? "{}" : zeroText(field.scalar);
}

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
