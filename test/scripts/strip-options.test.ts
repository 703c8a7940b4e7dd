// Stubs without the options of their descriptors, as the console has them: what they make is what all stubs make.
import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { type DescField, type DescFile, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { build, type Plugin } from "esbuild";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

type Library = typeof import("@bufbuild/protobuf");
interface Stubs extends Pick<Library, "create" | "fromBinary" | "fromJson" | "toBinary" | "toJson"> {
  readonly stubs: readonly object[];
}

const GEN = join(PROJECT, "gen");
const names = readdirSync(GEN, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith("_pb.js"))
  .sort();
const { strippedStubs } = (await import(pathToFileURL(join(PROJECT, "scripts/strip-options.mjs")).href)) as {
  strippedStubs(gen: string, kept?: readonly string[]): Plugin;
};

let whole: Stubs;
let stripped: Stubs;

before(async () => {
  whole = await bundleStubs([]);
  stripped = await bundleStubs([strippedStubs(GEN)]);
});

test("describe the same messages, enums and services", () => {
  assert.ok(names.length > 80, String(names.length));
  assert.deepEqual(stripped.stubs.map(describeStub), whole.stubs.map(describeStub));
});

test("make the same bytes and JSON of every message", () => {
  let messages = 0;
  let texts = 0;
  for (const [i, stub] of whole.stubs.entries()) {
    const others = new Map(messagesOf(stripped.stubs[i]).map((desc) => [desc.typeName, desc]));
    for (const desc of messagesOf(stub)) {
      const other = others.get(desc.typeName);
      assert.ok(other, desc.typeName);
      const message = whole.create(desc, fill(desc, 3) as never);
      const bytes = whole.toBinary(desc, message);
      const json = jsonOf(whole, desc, message);
      const read = stripped.fromBinary(other, bytes);
      assert.deepEqual(stripped.toBinary(other, read), bytes, desc.typeName);
      assert.deepEqual(jsonOf(stripped, other, read), json, desc.typeName);
      if (json !== undefined)
        assert.deepEqual(stripped.toBinary(other, stripped.fromJson(other, json as never)), bytes, desc.typeName);
      messages++;
      if (json !== undefined) texts++;
    }
  }
  assert.ok(texts > 700 && texts > 0.9 * messages, `${texts} of ${messages}`);
});

test("have no options that only servers read, and none of the files of these", () => {
  const isOption = (file: DescFile) =>
    /^google\/api\/(?:annotations|field_behavior)|^chainguard\/annotations/.test(file.name);
  const files = stripped.stubs.map(fileOf).filter((file) => !isOption(file));
  assert.deepEqual(
    files.filter((file) => file.dependencies.some(isOption)),
    [],
  );
  const rules = (all: readonly DescFile[]) =>
    all.flatMap(({ services }) =>
      services.flatMap(({ methods }) => methods.filter(({ proto }) => proto.options?.$unknown)),
    );
  assert.deepEqual(rules(files), []);
  // The control.
  assert.ok(rules(whole.stubs.map(fileOf)).length > 200);
});

test("would be others without the options that are kept: the control", async () => {
  const { stubs } = await bundleStubs([strippedStubs(GEN, [])]);
  assert.notDeepEqual(stubs.map(describeStub), whole.stubs.map(describeStub));
});

/** Loads all stubs with a library of their own. */
async function bundleStubs(plugins: Plugin[]): Promise<Stubs> {
  const imports = names.map((name, i) => `import * as s${i} from ${JSON.stringify(join(GEN, name))};`);
  const contents = `${imports.join("\n")}
export const stubs = [${names.map((_, i) => `s${i}`).join()}];
export { create, fromBinary, fromJson, toBinary, toJson } from "@bufbuild/protobuf";`;
  const stdin = { contents, resolveDir: PROJECT };
  const { outputFiles } = await build({ stdin, bundle: true, format: "esm", write: false, plugins });
  const file = join(tempDir(), "stubs.mjs");
  writeFileSync(file, outputFiles[0]?.contents ?? "");
  return (await import(pathToFileURL(file).href)) as Stubs;
}

function fileOf(stub: object): DescFile {
  const file = (Object.values(stub) as { kind?: string }[]).find(({ kind }) => kind === "file");
  assert.ok(file);
  return file as DescFile;
}

function messagesOf(stub: object | undefined): DescMessage[] {
  const nested = (desc: DescMessage): DescMessage[] => [desc, ...desc.nestedMessages.flatMap(nested)];
  return fileOf(stub ?? {}).messages.flatMap(nested);
}

function describeStub(stub: object) {
  const { name, enums, services, extensions, edition } = fileOf(stub);
  return {
    ...{ name, edition, exports: Object.keys(stub) },
    enums: enums.map(({ typeName, open, values }) => ({
      ...{ typeName, open },
      values: values.map((value) => [value.name, value.number, value.localName]),
    })),
    extensions: extensions.map(({ typeName, number, extendee }) => [typeName, number, extendee.typeName]),
    messages: messagesOf(stub).map(({ typeName, fields, oneofs }) => ({
      typeName,
      oneofs: oneofs.map((oneof) => oneof.localName),
      fields: fields.map(describeField),
    })),
    services: services.map(({ typeName, methods }) => ({
      typeName,
      methods: methods.map(({ name, localName, methodKind, idempotency, input, output }) => ({
        ...{ name, localName, methodKind, idempotency },
        ...{ input: input.typeName, output: output.typeName },
      })),
    })),
  };
}

function describeField(field: DescField) {
  const { name, number, jsonName, localName, fieldKind, presence, oneof } = field;
  return {
    ...{ name, number, jsonName, localName, fieldKind, presence, oneof: oneof?.name },
    scalar: field.scalar,
    message: field.message?.typeName,
    enum: field.enum?.typeName,
    longAsString: "longAsString" in field && field.longAsString,
    ...(field.fieldKind === "list" && { listKind: field.listKind, packed: field.packed }),
    ...(field.fieldKind === "map" && { mapKey: field.mapKey, mapKind: field.mapKind }),
  };
}

/** A value for each field; of a oneof for one of its fields. */
function fill(desc: DescMessage, depth: number): object {
  const init: Record<string, unknown> = {};
  for (const field of desc.fields) {
    if (field.message !== undefined && depth === 0) continue;
    const value = buildValue(field, depth);
    if (field.oneof === undefined) init[field.localName] = value;
    else init[field.oneof.localName] = { case: field.localName, value };
  }
  return init;
}

function buildValue(field: DescField, depth: number): unknown {
  const one = field.message
    ? whole.create(field.message, fill(field.message, depth - 1) as never)
    : field.enum
      ? field.enum.values.at(-1)?.number
      : scalarOf(field.scalar);
  if (field.fieldKind === "list") return [one, one];
  return field.fieldKind === "map" ? { [field.mapKey === 9 ? "key" : 1]: one } : one;
}

const LONG: readonly (ScalarType | undefined)[] = [
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
  ScalarType.SINT64,
];

function scalarOf(scalar: ScalarType | undefined): unknown {
  if (scalar === ScalarType.STRING) return "text";
  if (scalar === ScalarType.BYTES) return new Uint8Array([1, 2, 3]);
  if (scalar === ScalarType.BOOL) return true;
  return LONG.includes(scalar) ? 7n : 7;
}

// Messages of google.protobuf that have forms of their own, such as Any, need other values than these.
function jsonOf({ toJson }: Stubs, desc: DescMessage, message: Message): unknown {
  try {
    return toJson(desc, message);
  } catch (error) {
    assert.match(String(error), /google\.protobuf/);
    return undefined;
  }
}
