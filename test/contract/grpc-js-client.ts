// A client that shares nothing with the service: another gRPC library, types
// loaded from the proto files, details read from the bytes of the trailer.
import type { JsonValue } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { loadSync, type MessageTypeDefinition, type ServiceDefinition } from "@grpc/proto-loader";
import { codeName, type MethodName, type Outcome, type WireClient } from "./wire.js";

const definition = loadSync(
  ["chainguard/platform/iam/v2beta1/groups.proto", "google/rpc/error_details.proto", "google/rpc/status.proto"],
  { includeDirs: ["proto", "node_modules/google-proto-files"], longs: String, enums: String },
);
const service = definition["chainguard.platform.iam.v2beta1.GroupsService"] as ServiceDefinition;

// The loader brings an Any of its own, in the spelling of the proto.
interface Any {
  readonly type_url: string;
  readonly value: Buffer;
}

/** Connects grpc-js to a server in cleartext. */
export function connectGrpcJs(url: string): WireClient {
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  return {
    name: "grpc-js",
    namesProtoFields: true,
    call({ method, request, token }) {
      const metadata = new grpc.Metadata();
      if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
      const { path, requestSerialize, responseDeserialize } = wireOf(method);
      const options = { deadline: Date.now() + 10_000 };
      return new Promise<Outcome>((resolve, reject) => {
        client.makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          metadata,
          options,
          (error, response) => {
            try {
              resolve(error ? failureOf(error) : { code: "OK", result: jsonOf(response ?? {}) });
            } catch (broken) {
              reject(broken);
            }
          },
        );
      });
    },
    close: () => client.close(),
  };
}

function wireOf(method: MethodName) {
  const known = service[method];
  if (known) return known;
  const any = service.DeleteGroup;
  if (any === undefined) throw new TypeError("the protos hold no DeleteGroup");
  return { ...any, path: any.path.replace(/[^/]*$/, method) };
}

function failureOf({ code, details, metadata }: grpc.ServiceError): Outcome {
  const [bytes] = metadata.get("grpc-status-details-bin");
  if (!Buffer.isBuffer(bytes)) return { code: codeName(code), message: details, details: [] };
  const status = messageType("google.rpc.Status").deserialize(bytes) as {
    readonly code: number;
    readonly message: string;
    readonly details?: readonly Any[];
  };
  // The status is told twice; clients read either.
  if (status.code !== code || status.message !== details) throw new TypeError(`${details} is not ${status.message}`);
  return { code: codeName(code), message: details, details: (status.details ?? []).map(detailOf) };
}

function detailOf({ type_url: url, value }: Any): JsonValue {
  const message = messageType(url.slice(url.lastIndexOf("/") + 1)).deserialize(value);
  return { "@type": url, ...(jsonOf(message) as object) };
}

function messageType(name: string): MessageTypeDefinition<object, object> {
  const type = definition[name];
  if (type === undefined || !("deserialize" in type)) throw new TypeError(`the protos hold no message ${name}`);
  return type as MessageTypeDefinition<object, object>;
}

// What the loader leaves as messages although JSON has a form of its own for it.
function jsonOf(message: object): JsonValue {
  return JSON.parse(JSON.stringify(message), (name, value) => {
    if (/Time$/.test(name)) return new Date(Number(value.seconds ?? 0) * 1000 + (value.nanos ?? 0) / 1e6).toISOString();
    if (/Delay$/.test(name)) return `${Number(value.seconds ?? 0) + (value.nanos ?? 0) / 1e9}s`;
    return value;
  }) as JsonValue;
}
