// The published API as contract.txt describes it, without anything of the service.
import { readFileSync } from "node:fs";
import { create, createFileRegistry, type DescFile, type FileRegistry } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  EnumValueDescriptorProtoSchema,
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_timestamp,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";

const lines = readFileSync(new URL("contract.txt", import.meta.url), "utf8").split("\n");

/** The types that published methods declare for customers. */
export const publishedTypes = lines.flatMap((line) => (line.startsWith("type ") ? [line.slice(5)] : []));

const scalars: Readonly<Record<string, Type>> = {
  string: Type.STRING,
  bool: Type.BOOL,
  bytes: Type.BYTES,
  int32: Type.INT32,
  int64: Type.INT64,
  uint32: Type.UINT32,
};
const wellKnown: readonly DescFile[] = [
  file_google_protobuf_timestamp,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
];

/** Builds the descriptors. Each message has a file of its own, and names of nested ones are flat within their package. */
export function buildContract(): FileRegistry {
  const declared = new Map<string, "message" | "enum">();
  for (const line of lines) {
    const [kind = "", name = ""] = line.split(" ");
    if (kind === "message" || kind === "enum") declared.set(name, kind);
  }
  const file = create(FileDescriptorProtoSchema, {
    name: "contract.proto",
    syntax: "proto3",
    dependency: wellKnown.map(({ proto }) => proto.name),
  });
  for (const line of lines) {
    const [kind = "", name = "", ...members] = line.split(" ");
    if (kind === "message") {
      const parts = members.map((member) => describeField(name, member, declared));
      file.messageType.push(
        create(DescriptorProtoSchema, {
          name: flatten(name),
          field: parts.map(({ field }) => field),
          nestedType: parts.flatMap(({ entry }) => entry ?? []),
        }),
      );
    } else if (kind === "enum") {
      const value = members.map((member) => {
        const [text = "", number = ""] = member.split(":");
        return create(EnumValueDescriptorProtoSchema, { name: text, number: Number(number) });
      });
      file.enumType.push(create(EnumDescriptorProtoSchema, { name: flatten(name), value }));
    }
  }
  return createFileRegistry(file, (imported) => wellKnown.find(({ proto }) => proto.name === imported)?.proto);
}

/** The name of a message in the descriptors. */
export function flatten(name: string): string {
  return name.replaceAll(".", "_");
}

function describeField(
  parent: string,
  member: string,
  declared: ReadonlyMap<string, "message" | "enum">,
): { readonly field: FieldDescriptorProto; readonly entry?: DescriptorProto } {
  const [name = "", number = "", text = ""] = member.split(":");
  const map = /^map<(\w+),([\w.]+)>$/.exec(text);
  const isList = text.startsWith("repeated-");
  const type = text.replace("repeated-", "");
  const base = { name, number: Number(number), jsonName: toJsonName(name) };
  const label = isList || map ? Label.REPEATED : Label.OPTIONAL;
  if (map) {
    const entryName = `${name.replace(/(^|_)(\w)/g, (_all, _line, letter: string) => letter.toUpperCase())}Entry`;
    const entry = create(DescriptorProtoSchema, {
      name: entryName,
      options: { mapEntry: true },
      field: [`key:1:${map[1]}`, `value:2:${map[2]}`].map((part) => describeField(parent, part, declared).field),
    });
    return {
      entry,
      field: create(FieldDescriptorProtoSchema, {
        ...base,
        label,
        type: Type.MESSAGE,
        typeName: `.${flatten(parent)}.${entryName}`,
      }),
    };
  }
  const scalar = scalars[type];
  if (scalar !== undefined) return { field: create(FieldDescriptorProtoSchema, { ...base, label, type: scalar }) };
  // Capabilities have a list of their own; in JSON they are texts.
  if (type === "chainguard.capabilities.Capability")
    return { field: create(FieldDescriptorProtoSchema, { ...base, label, type: Type.STRING }) };
  const kind = declared.get(type);
  const typeName = type.startsWith("google.") ? `.${type}` : `.${flatten(type)}`;
  return {
    field: create(FieldDescriptorProtoSchema, {
      ...base,
      label,
      type: kind === "enum" ? Type.ENUM : Type.MESSAGE,
      typeName,
    }),
  };
}

function toJsonName(name: string): string {
  return name.replace(/_(\w)/g, (_all, letter: string) => letter.toUpperCase());
}
