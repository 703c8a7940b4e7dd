// Removes from the stubs of gen/ what only servers and generators read: the options of their descriptors, such as HTTP rules,
// and the imports of files that are needed for options alone. Messages, JSON and calls stay the same.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { clearField, clone, createRegistry, isFieldSet, isMessage } from "@bufbuild/protobuf";
import { embedFileDesc } from "@bufbuild/protobuf/codegenv2";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema, file_google_protobuf_descriptor } from "@bufbuild/protobuf/wkt";

/** The options that change messages, their JSON or calls. */
const KEPT = ["features", "idempotencyLevel", "jstype", "mapEntry", "messageSetWireFormat", "packed"];
const options = createRegistry(file_google_protobuf_descriptor);
const DESCRIPTOR = /fileDesc\("[A-Za-z0-9+/]*"(?:, \[([^\]]*)\])?\)/;

/**
 * A plugin of esbuild that finds `#gen/*`, and strips the stubs that a bundle has.
 *
 * @param gen the absolute path of gen/
 * @param kept the options that stay
 */
export function strippedStubs(gen, kept = KEPT) {
  return {
    name: "stripped-stubs",
    setup(bundler) {
      bundler.onResolve({ filter: /^#gen\// }, ({ path }) => ({ path: `${gen}/${path.slice("#gen/".length)}` }));
      bundler.onLoad({ filter: /_pb\.js$/ }, async ({ path }) =>
        path.startsWith(`${gen}/`) ? { contents: await stripStub(path, kept), loader: "js" } : undefined,
      );
    },
  };
}

async function stripStub(path, kept) {
  const text = readFileSync(path, "utf8");
  const stub = await import(pathToFileURL(path).href);
  const file = Object.values(stub).find((value) => value.kind === "file");
  const found = DESCRIPTOR.exec(text);
  if (file === undefined || found === null) throw new Error(`${path}: has no descriptor`);
  const names = found[1]?.split(", ") ?? [];
  if (names.length !== file.dependencies.length) throw new Error(`${path}: the imports of its descriptor are others`);
  const used = listUsed(file);
  const imports = names.filter((_, i) => used.has(file.dependencies[i]));
  const descriptor = clone(FileDescriptorProtoSchema, file.proto);
  strip(descriptor, kept);
  const bytes = embedFileDesc(descriptor).base64();
  const call = `fileDesc("${bytes}"${imports.length > 0 ? `, [${imports.join(", ")}]` : ""})`;
  return text.slice(0, found.index) + call + text.slice(found.index + found[0].length);
}

function strip(message, kept) {
  // The names of capabilities are options of the values of their enum.
  if (message.$typeName === "google.protobuf.EnumValueDescriptorProto") return;
  for (const value of Object.values(message).flat()) if (isMessage(value)) strip(value, kept);
  if (message.options === undefined) return;
  const schema = options.getMessage(message.options.$typeName);
  for (const field of schema.fields) if (!kept.includes(field.localName)) clearField(message.options, field);
  delete message.options.$unknown;
  if (!schema.fields.some((field) => isFieldSet(message.options, field))) delete message.options;
}

/** The files whose types a file uses, of those that it imports. */
function listUsed(file) {
  // Positions of imports would have to change with the imports.
  if (file.proto.publicDependency.length + file.proto.weakDependency.length > 0) return new Set(file.dependencies);
  const names = new Set(listTypes(file.proto));
  const isUsed = (one) =>
    [...nestedTypes(one)].some(({ typeName }) => names.has(`.${typeName}`)) ||
    one.proto.publicDependency.some((i) => isUsed(one.dependencies[i]));
  return new Set(file.dependencies.filter(isUsed));
}

function listTypes(message) {
  const { typeName, inputType, outputType, extendee } = message;
  const nested = Object.values(message)
    .flat()
    .filter((value) => isMessage(value));
  return [typeName, inputType, outputType, extendee, ...nested.flatMap(listTypes)].filter(Boolean);
}
