// The comments of the protos, by full name. Generated code has none, so they are read from an image of `buf build`.
import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { runSync } from "../kernel/time.js";

/** The comment of a message, field, oneof, enum, value, service or method by its full name; empty if it has none. */
export type Comments = (fullName: string) => string;

// Field numbers of the descriptor messages, for the paths in source info.
const FILE_MESSAGE = 4;
const FILE_ENUM = 5;
const FILE_SERVICE = 6;
const MESSAGE_FIELD = 2;
const MESSAGE_NESTED = 3;
const MESSAGE_ENUM = 4;
const MESSAGE_ONEOF = 8;
const ENUM_VALUE = 2;
const SERVICE_METHOD = 2;

/**
 * Reads the comments of an image, one file per step: all together take a tenth of a second.
 *
 * @param image the bytes of a FileDescriptorSet with source info
 */
export function* readComments(image: Uint8Array): Generator<void, Comments> {
  const found = new Map<string, string>();
  const reader = new BinaryReader(image);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === FileDescriptorSetSchema.field.file.number)
      collect(fromBinary(FileDescriptorProtoSchema, reader.bytes()), found);
    else reader.skip(type, field);
    yield;
  }
  return (fullName) => found.get(fullName) ?? "";
}

/**
 * Reads the comments of one file of an image.
 *
 * @param name the name of the file, such as `chainguard/platform/iam/v2/groups.proto`; without one of that name there are none
 */
export function readFileComments(image: Uint8Array, name: string): Comments {
  const found = new Map<string, string>();
  const reader = new BinaryReader(image);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field !== FileDescriptorSetSchema.field.file.number) reader.skip(type, field);
    else {
      const bytes = reader.bytes();
      if (readFileName(bytes) === name) collect(fromBinary(FileDescriptorProtoSchema, bytes), found);
    }
  }
  return (fullName) => found.get(fullName) ?? "";
}

function readFileName(file: Uint8Array): string | undefined {
  const reader = new BinaryReader(file);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === FileDescriptorProtoSchema.field.name.number) return reader.string();
    reader.skip(type, field);
  }
  return undefined;
}

/** Reads the comments of an image at once; see {@link readComments}. */
export function parseComments(image: Uint8Array): Comments {
  return runSync(readComments(image));
}

function collect(file: FileDescriptorProto, found: Map<string, string>): void {
  const byPath = new Map(
    (file.sourceCodeInfo?.location ?? []).map(({ path, leadingComments }) => [path.join(), leadingComments]),
  );
  const note = (name: string, path: readonly number[]) => {
    const comment = byPath.get(path.join());
    if (comment) found.set(name, textOf(comment));
  };
  const visitEnum = (desc: EnumDescriptorProto, prefix: string, path: readonly number[]) => {
    const name = `${prefix}.${desc.name}`;
    note(name, path);
    for (const [i, value] of desc.value.entries()) note(`${name}.${value.name}`, [...path, ENUM_VALUE, i]);
  };
  const visitMessage = (desc: DescriptorProto, prefix: string, path: readonly number[]): void => {
    const name = `${prefix}.${desc.name}`;
    note(name, path);
    for (const [i, field] of desc.field.entries()) note(`${name}.${field.name}`, [...path, MESSAGE_FIELD, i]);
    for (const [i, oneof] of desc.oneofDecl.entries()) note(`${name}.${oneof.name}`, [...path, MESSAGE_ONEOF, i]);
    for (const [i, nested] of desc.nestedType.entries()) visitMessage(nested, name, [...path, MESSAGE_NESTED, i]);
    for (const [i, nested] of desc.enumType.entries()) visitEnum(nested, name, [...path, MESSAGE_ENUM, i]);
  };
  for (const [i, desc] of file.messageType.entries()) visitMessage(desc, file.package, [FILE_MESSAGE, i]);
  for (const [i, desc] of file.enumType.entries()) visitEnum(desc, file.package, [FILE_ENUM, i]);
  for (const [i, desc] of file.service.entries()) {
    const name = `${file.package}.${desc.name}`;
    note(name, [FILE_SERVICE, i]);
    for (const [k, method] of desc.method.entries()) {
      note(`${name}.${method.name}`, [FILE_SERVICE, i, SERVICE_METHOD, k]);
    }
  }
}

// Joins the lines of each paragraph.
function textOf(comment: string): string {
  return comment
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.replace(/\s*\n\s*/g, " ").trim())
    .join("\n\n");
}
