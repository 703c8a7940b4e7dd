// Services of a test's own making, with the options a proto file would carry.
import {
  create,
  createFileRegistry,
  type DescFile,
  type DescMethod,
  type DescService,
  type MessageInitShape,
  setExtension,
} from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodOptions_IdempotencyLevel,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import {
  EventAttributesSchema,
  events,
  file_chainguard_annotations_annotations,
  IAMSchema,
  iam,
  iam_scope,
} from "#gen/chainguard/annotations/annotations_pb.js";
import { FieldBehavior, field_behavior, file_google_api_field_behavior } from "#gen/google/api/field_behavior_pb.js";

const PACKAGE = "arbor.test.rpc";

/** A field: its type, by default a string, and what is marked on it. */
export interface FieldSpec {
  /** A scalar, or the name of a message declared beside. */
  readonly type?: "string" | "int32" | `message ${string}`;
  readonly repeated?: boolean;
  readonly scope?: boolean;
  readonly required?: boolean;
  /** The name of the oneof that it is a member of. */
  readonly oneof?: string;
}

/** A method that takes a message of `fields` and returns an empty one. */
export interface MethodSpec {
  readonly fields?: Readonly<Record<string, FieldSpec>>;
  /** The rule of who may call it; without it the method has none. */
  readonly iam?: MessageInitShape<typeof IAMSchema>;
  /** The type of event it announces. */
  readonly event?: string;
  readonly read?: boolean;
  /** What comes as a stream; by default nothing does. */
  readonly streams?: "answers" | "requests" | "both";
}

/** What to declare. */
export interface ServiceSpec {
  readonly methods: Readonly<Record<string, MethodSpec>>;
  /** Messages that fields may be of. */
  readonly messages?: Readonly<Record<string, Readonly<Record<string, FieldSpec>>>>;
  /** The full name; by default one of the tests' own. */
  readonly name?: string;
}

/** The descriptor of a service that no proto file declares. */
export function declareService({ methods, messages = {}, name = `${PACKAGE}.Service` }: ServiceSpec): DescService {
  const dot = name.lastIndexOf(".");
  const pkg = name.slice(0, dot);
  const inputs = Object.entries(methods).map(([method, { fields = {} }]) => messageOf(`${method}Request`, fields, pkg));
  const file = create(FileDescriptorProtoSchema, {
    name: "declared.proto",
    package: pkg,
    syntax: "proto3",
    dependency: [file_chainguard_annotations_annotations.proto.name, file_google_api_field_behavior.proto.name],
    messageType: [
      { name: "Nothing" },
      ...Object.entries(messages).map(([message, fields]) => messageOf(message, fields, pkg)),
      ...inputs,
    ],
    service: [
      {
        name: name.slice(dot + 1),
        method: Object.entries(methods).map(([method, spec]) => ({
          name: method,
          inputType: `.${pkg}.${method}Request`,
          outputType: `.${pkg}.Nothing`,
          clientStreaming: spec.streams === "requests" || spec.streams === "both",
          serverStreaming: spec.streams === "answers" || spec.streams === "both",
          options: methodOptions(spec),
        })),
      },
    ],
  });
  const imports = withImports([file_chainguard_annotations_annotations, file_google_api_field_behavior]);
  const set = create(FileDescriptorSetSchema, { file: [...imports.map((one) => one.proto), file] });
  const service = createFileRegistry(set).getService(name);
  if (service === undefined) throw new TypeError(`no service ${name}`);
  return service;
}

/** The descriptor of one method; `messages` are those its fields may be of. */
export function declareMethod(spec: MethodSpec, messages: NonNullable<ServiceSpec["messages"]> = {}): DescMethod {
  return onlyMethod(declareService({ methods: { Do: spec }, messages }));
}

/** The one method of a service. */
export function onlyMethod({ methods: [only] }: DescService): DescMethod {
  if (only === undefined) throw new TypeError("no method");
  return only;
}

function messageOf(name: string, fields: Readonly<Record<string, FieldSpec>>, pkg: string) {
  const oneofs = [...new Set(Object.values(fields).flatMap(({ oneof }) => oneof ?? []))];
  return {
    name,
    field: Object.entries(fields).map(([field, spec], i) => fieldProto(field, i + 1, spec, { pkg, oneofs })),
    oneofDecl: oneofs.map((oneof) => ({ name: oneof })),
  };
}

interface FieldContext {
  readonly pkg: string;
  readonly oneofs: readonly string[];
}

function fieldProto(name: string, number: number, spec: FieldSpec, { pkg, oneofs }: FieldContext) {
  const { type = "string", repeated = false, scope, required = false, oneof } = spec;
  const options = create(FieldOptionsSchema);
  if (scope !== undefined) setExtension(options, iam_scope, scope);
  if (required) setExtension(options, field_behavior, [FieldBehavior.REQUIRED]);
  const message = type.startsWith("message ") ? type.slice(8) : undefined;
  const scalar = type === "int32" ? FieldDescriptorProto_Type.INT32 : FieldDescriptorProto_Type.STRING;
  return create(FieldDescriptorProtoSchema, {
    name,
    number,
    label: repeated ? FieldDescriptorProto_Label.REPEATED : FieldDescriptorProto_Label.OPTIONAL,
    type: message === undefined ? scalar : FieldDescriptorProto_Type.MESSAGE,
    ...(message !== undefined && { typeName: `.${pkg}.${message}` }),
    ...(oneof !== undefined && { oneofIndex: oneofs.indexOf(oneof) }),
    jsonName: name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    options,
  });
}

function methodOptions({ iam: rule, event, read = false }: MethodSpec) {
  const options = create(MethodOptionsSchema);
  if (rule !== undefined) setExtension(options, iam, create(IAMSchema, rule));
  if (event !== undefined) setExtension(options, events, create(EventAttributesSchema, { type: event }));
  if (read) options.idempotencyLevel = MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  return options;
}

// Every file before those that import it.
function withImports(files: readonly DescFile[], seen = new Set<string>()): DescFile[] {
  return files.flatMap((file) => {
    if (seen.has(file.name)) return [];
    seen.add(file.name);
    return [...withImports(file.dependencies, seen), file];
  });
}
