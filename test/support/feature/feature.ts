// The descriptors of feature.proto. feature.binpb beside it is made of it, from the root of the
// project, by
//
//   npx buf build --config '{"version":"v2","modules":[{"path":"test/support/feature"},{"path":"proto"},
//     {"path":"node_modules/google-proto-files","includes":["node_modules/google-proto-files/google/api"],
//      "excludes":["node_modules/google-proto-files/google/api/apikeys",
//        "node_modules/google-proto-files/google/api/cloudquotas",
//        "node_modules/google-proto-files/google/api/expr",
//        "node_modules/google-proto-files/google/api/servicecontrol",
//        "node_modules/google-proto-files/google/api/servicemanagement",
//        "node_modules/google-proto-files/google/api/serviceusage"]}]}' \
//     --path test/support/feature/feature.proto --exclude-source-info -o test/support/feature/feature.binpb
import { readFileSync } from "node:fs";
import {
  create,
  createFileRegistry,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type MessageInitShape,
  setExtension,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { IAMSchema, iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { http } from "#gen/google/api/annotations_pb.js";
import { HttpRuleSchema } from "#gen/google/api/http_pb.js";
import { MAX_REQUEST_BYTES, type StreamEntry, type UnaryEntry } from "../../../src/pipeline/method-table.js";

/** All files of the image: feature.proto and what it imports. */
export const featureRegistry = createFileRegistry(
  fromBinary(FileDescriptorSetSchema, readFileSync(new URL("./feature.binpb", import.meta.url))),
);

/** A message of feature.proto, or by its full name of another file. */
export function featureMessage(name: string): DescMessage {
  const desc = featureRegistry.getMessage(name.includes(".") ? name : `arbor.test.feature.${name}`);
  if (desc === undefined) throw new TypeError(`no message ${name}`);
  return desc;
}

/** A service of feature.proto. */
export function featureService(name: string): DescService {
  const desc = featureRegistry.getService(`arbor.test.feature.${name}`);
  if (desc === undefined) throw new TypeError(`no service ${name}`);
  return desc;
}

/** Answers a call of a method of feature.proto. */
export type FeatureHandler = UnaryEntry["handler"];
/** Answers a call of a method of feature.proto with a stream. */
export type FeatureStreamHandler = StreamEntry["handler"];

/** A method as the method table would hold it; `handler` answers its calls. */
export function entryOf(desc: DescMethod, handler: FeatureHandler = (request) => request): UnaryEntry {
  return { ...declareMethod(desc), kind: "unary", access: "read", auditType: "", handler };
}

/** A method that streams, as the method table would hold it. */
export function streamEntryOf(desc: DescMethod, handler: FeatureStreamHandler = noResponses): StreamEntry {
  return { ...declareMethod(desc), kind: "server_streaming", handler };
}

function declareMethod(desc: DescMethod) {
  const path = `/${desc.parent.typeName}/${desc.name}` as const;
  return { desc, published: desc, path, auth: { mode: "public" }, maxRequestBytes: MAX_REQUEST_BYTES } as const;
}

async function* noResponses(): AsyncGenerator<object> {}

/** A method of FeatureService by its name. */
export function featureMethod(name: string): DescMethod {
  const desc = featureService("FeatureService").methods.find((method) => method.name === name);
  if (desc === undefined) throw new TypeError(`no method ${name}`);
  return desc;
}

/** A method with an HTTP rule of the test's own making, between two messages of feature.proto. */
export function methodWithRule(
  rule: MessageInitShape<typeof HttpRuleSchema>,
  input = "Kinds",
  output = "Thing",
  serverStreaming = false,
): DescMethod {
  const options = create(MethodOptionsSchema);
  setExtension(options, http, create(HttpRuleSchema, rule));
  setExtension(options, iam, create(IAMSchema, { mode: { case: "disabled", value: {} } }));
  const full = (name: string) => (name.includes(".") ? `.${name}` : `.arbor.test.feature.${name}`);
  const method = { name: "Do", inputType: full(input), outputType: full(output), options, serverStreaming };
  const file = create(FileDescriptorProtoSchema, {
    name: "bad.proto",
    package: "bad",
    syntax: "proto3",
    dependency: ["feature.proto", "google/protobuf/empty.proto", "google/api/httpbody.proto"],
    service: [{ name: "Service", method: [method] }],
  });
  const files = [...featureRegistry.files].map((desc) => desc.proto);
  const desc = createFileRegistry(create(FileDescriptorSetSchema, { file: [...files, file] })).getService(
    "bad.Service",
  );
  const [only] = desc?.methods ?? [];
  if (only === undefined) throw new TypeError("no method");
  return only;
}
