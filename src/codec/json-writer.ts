// Writes responses as JSON (docs/api-rules.md#transcoding), with writers that are compiled once per message type. They
// also read init objects, so that no message has to be created first.
import { type DescEnum, type DescField, type DescMessage, type Registry, ScalarType } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { isInputOnly } from "./field-behavior.js";
import { type Fields, hasPresence } from "./fields.js";
import { formatBytes, formatNumber, quote, type TimestampDigits } from "./json-scalar.js";
import { createWellKnownWriter, formatStructField, type MessageWriters, type ValueWriter } from "./json-wkt.js";
import {
  assertMap,
  assertMessage,
  createMapKeyReader,
  createMessageCompiler,
  describeAccess,
  type OneofMember,
  type WriteField,
} from "./message-walk.js";
import {
  checkBoolean,
  checkFloat,
  checkInt32,
  checkList,
  checkLong,
  checkUint32,
  rejectValue,
} from "./scalar-check.js";
import { isLong, isSignedLong } from "./value-rules.js";

/** Writes messages as JSON. A value that its field cannot have is a RangeError or TypeError. */
export interface JsonWriters {
  /** Writers of error details, and of responses over RPC, which print only fields that are set. */
  readonly details: MessageWriters;

  /** The writer of a list, whose elements have only the fields that are set. */
  elements(field: DescField): ValueWriter;

  /** The writer of a response, which also prints empty fields at every depth: see {@link isPrintedEmpty}. */
  answer(desc: DescMessage): ValueWriter;

  /** The writer of a field that is sent instead of the whole response. */
  responseField(field: DescField): ValueWriter;
}

/**
 * Creates the writers.
 *
 * @param registry the types that an Any may contain
 * @param timestamps `milliseconds` as this API documents, or `exact` as in the JSON mapping of protobuf
 */
export function createJsonWriters(registry: Registry, timestamps: TimestampDigits = "milliseconds"): JsonWriters {
  const full = createWriters(registry, timestamps, isPrintedEmpty);
  const sparse = createWriters(registry, timestamps, () => false);
  return {
    details: sparse.messages,
    elements: sparse.value,
    answer: (desc) => full.messages.writerOf(desc),
    responseField(field) {
      const write = full.value(field);
      const unset = unsetText(field);
      return (value) => (value === undefined ? unset : write(value));
    },
  };
}

/**
 * Whether an empty field of a response is printed: every scalar without presence, list and map, and an enum whose zero
 * value has a meaning. An empty page token is not, because it means that there is no further page. Fields outside of
 * {@link FIELDS_OF_TABLES} are not either.
 */
export function isPrintedEmpty(field: DescField): boolean {
  if (hasPresence(field) || !isInTable(field)) return false;
  if (field.fieldKind === "scalar") return field.name !== "next_page_token" || field.scalar !== ScalarType.STRING;
  return field.fieldKind !== "enum" || !NO_VALUE_NAME.test(field.enum.values[0]?.name ?? "");
}

/**
 * The messages of version 2 that have a table in the specification, and the fields in it. Of these messages it shows no
 * other fields, so the others are absent when empty.
 */
const FIELDS_OF_TABLES: Readonly<Record<string, readonly string[]>> = {
  Group: ["uid", "name", "description", "resource_limits", "verified", "create_time", "update_time"],
  Identity: ["uid", "name", "description", "claim_match", "last_seen_time", "create_time", "update_time"],
  "Identity.ClaimMatch": ["issuer", "subject"],
  "Identity.StaticKeys": [],
  "Identity.AWSIdentity": [],
  Role: ["uid", "name", "description"],
  RoleBinding: ["uid", "identity", "group", "role", "create_time"],
  RoleBindingIdentity: ["uid", "name", "description", "subject", "issuer"],
  RoleBindingGroup: ["uid", "name", "description"],
  RoleBindingRole: ["uid", "name", "description"],
};

const IAM_V2 = /^chainguard\.platform\.iam\.v2(?:beta1)?\./;

// Whether no table leaves the field out.
function isInTable({ name, parent: { typeName } }: DescField): boolean {
  const message = typeName.replace(IAM_V2, "");
  return message === typeName || (FIELDS_OF_TABLES[message]?.includes(name) ?? true);
}

// The name of an enum's zero value that means unset, by AIP-126 and in older protos.
const NO_VALUE_NAME = /(?:^|_)(?:UNSPECIFIED|UNKNOWN)$/i;

// The text of an unset field that is sent instead of the whole response: null for types of which `{}` or zero is no
// value.
function unsetText(field: DescField): string {
  if (field.fieldKind === "message") return hasCustomJsonRepresentation(field.message) ? "null" : "{}";
  return hasPresence(field) ? "null" : emptyText(field);
}

interface Writers {
  readonly messages: MessageWriters;
  /** The writer of the value of a field, which is never undefined. */
  value(field: DescField): ValueWriter;
}

function createWriters(
  registry: Registry,
  timestamps: TimestampDigits,
  printsEmpty: (field: DescField) => boolean,
): Writers {
  const compiled = createMessageCompiler<ValueWriter, string>({
    order: "ascending",
    isWritten: (field) => !isInputOnly(field),
    message:
      (fields, { typeName }) =>
      (value) => {
        assertMessage(value, typeName);
        let out = "{";
        for (let i = 0; i < fields.length; i++) out = (fields[i] as WriteField<string>)(value as Fields, out);
        return `${out}}`;
      },
    field: (field) => createFieldWriter(field, value(field), printsEmpty(field)),
  });

  const value = (field: DescField): ValueWriter => {
    const write = createElementWriter(field);
    if (field.fieldKind === "list") return (list) => listText(checkList(list), write);
    if (field.fieldKind === "map") return createMapWriter(field, write);
    return write;
  };

  const createElementWriter = (field: DescField): ValueWriter => {
    if (field.message?.typeName === "google.protobuf.Struct") return formatStructField;
    if (field.message !== undefined) return messages.writerOf(field.message);
    if (field.enum !== undefined) return createEnumWriter(field.enum);
    return createScalarWriter(field.scalar ?? ScalarType.STRING);
  };

  const messages: MessageWriters = {
    registry,
    timestamps,
    writerOf: (desc) => createWellKnownWriter(desc, messages) ?? compiled(desc),
    scalar: (desc) => {
      const type = desc.fields[0]?.scalar ?? ScalarType.STRING;
      const write = createScalarWriter(type);
      return (value) => (value === undefined ? zeroText(type) : write(value));
    },
  };
  return { messages, value };
}

function createFieldWriter(field: DescField, write: ValueWriter, printsEmpty: boolean): WriteField<string> {
  const first = `${quote(field.jsonName)}:`;
  const next = `,${first}`;
  const append = (out: string, text: string) => (out.length === 1 ? out + first + text : out + next + text);
  const empty = emptyText(field);
  const access = describeAccess(field);
  const { kind, property } = access;
  switch (kind) {
    case "member": {
      const { name } = access;
      return (message, out) => {
        const member = message[property] as OneofMember | undefined;
        return member?.case === name ? append(out, write(member.value)) : out;
      };
    }
    case "present": {
      const { isRequired } = access;
      return (message, out) => {
        const value = Object.hasOwn(message, property) ? message[property] : undefined;
        if (value !== undefined && value !== null) return append(out, write(value));
        return isRequired ? rejectValue(value, `value of ${field}, which is required`) : out;
      };
    }
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

// The text of an empty list or map, or of a scalar at zero.
function emptyText(field: DescField): string {
  if (field.fieldKind === "list") return "[]";
  if (field.fieldKind === "map") return "{}";
  return field.enum === undefined ? zeroText(field.scalar) : createEnumWriter(field.enum)(0);
}

function createEnumWriter(desc: DescEnum): ValueWriter {
  if (desc.typeName === "google.protobuf.NullValue")
    return (number) => (checkInt32(number) === 0 ? "null" : rejectValue(number, "null"));
  const names = new Map<number, string>();
  // If several names have one number, the first is used.
  for (const { number, jsonName } of desc.values) if (!names.has(number)) names.set(number, quote(jsonName));
  return (number) => names.get(number as number) ?? String(checkInt32(number));
}

function zeroText(type: ScalarType | undefined): string {
  if (type === undefined || type === ScalarType.STRING || type === ScalarType.BYTES) return '""';
  if (type === ScalarType.BOOL) return "false";
  return isLong(type) ? '"0"' : "0";
}

function createScalarWriter(type: ScalarType): ValueWriter {
  switch (type) {
    case ScalarType.STRING:
      return (value) => quote(value as string);
    case ScalarType.BOOL:
      return (value) => (checkBoolean(value) ? "true" : "false");
    case ScalarType.BYTES:
      return (value) => formatBytes(value as Uint8Array);
    case ScalarType.DOUBLE:
      return (value) => formatNumber(value as number);
    case ScalarType.FLOAT:
      return (value) => formatNumber(checkFloat(value));
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return (value) => String(checkUint32(value));
    default: {
      if (!isLong(type)) return (value) => String(checkInt32(value));
      const isSigned = isSignedLong(type);
      return (value) => `"${checkLong(value, isSigned)}"`;
    }
  }
}

function listText(list: readonly unknown[], write: ValueWriter): string {
  let out = "[";
  for (let i = 0; i < list.length; i++) out += i === 0 ? write(list[i]) : `,${write(list[i])}`;
  return `${out}]`;
}

function createMapWriter({ mapKey }: DescField & { readonly fieldKind: "map" }, write: ValueWriter): ValueWriter {
  const keyOf = createMapKeyReader(mapKey);
  return (map) => {
    assertMap(map);
    let out = "{";
    for (const key of Object.keys(map)) {
      // The key as its type is written, such as 1 for 01.
      const member = `${quote(String(keyOf(key)))}:${write(map[key])}`;
      out += out.length === 1 ? member : `,${member}`;
    }
    return `${out}}`;
  };
}
