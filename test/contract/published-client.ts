// A client such as published programs use: another gRPC library over cleartext
// HTTP/2, with types loaded from the proto files, for any service of any version.
import { readdirSync } from "node:fs";
import * as grpc from "@grpc/grpc-js";
import { loadSync, type ServiceDefinition } from "@grpc/proto-loader";
import { codeName } from "./wire.js";

const PLATFORM = "chainguard/platform";
const protos = readdirSync(`proto/${PLATFORM}`, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".proto"))
  .map((path) => `${PLATFORM}/${path}`);
const definition = loadSync(protos, {
  ...{ includeDirs: ["proto", "node_modules/google-proto-files"], longs: String, enums: String, arrays: true },
});

/** A message as the library reads it: fields in lowerCamelCase, enum values by name. */
export type Plain = { readonly [field: string]: unknown };

/** What a call came to. */
export interface PublishedResponse {
  /** A status code as gRPC writes it, such as `NOT_FOUND`. */
  readonly code: string;
  /** The response; empty unless the code is `OK`. */
  readonly message: Plain;
  /** What the server says of an error. */
  readonly text: string;
}

/** A connection with one token. */
export interface PublishedClient {
  /** Calls a method by its name after `chainguard.platform`, such as `iam.Groups.List`. */
  call(method: string, request?: object): Promise<PublishedResponse>;
  /** The response of a call that must succeed; throws Error with what the server said if it does not. */
  answer(method: string, request?: object): Promise<Plain>;
  close(): void;
}

/** Connects to a server in cleartext. */
export function connectPublished(url: string, token: string): PublishedClient {
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure(), {
    "grpc.max_receive_message_length": 100 * 1024 * 1024,
  });
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  const call: PublishedClient["call"] = (method, request = {}) => {
    const dot = method.lastIndexOf(".");
    const service = definition[`chainguard.platform.${method.slice(0, dot)}`] as ServiceDefinition | undefined;
    const known = service?.[method.slice(dot + 1)];
    if (known === undefined) throw new TypeError(`the protos have no method ${method}`);
    return new Promise((resolve) => {
      const options = { deadline: Date.now() + 20_000 };
      const callback = (error: grpc.ServiceError | null, message: object = {}) =>
        resolve(
          error
            ? { code: codeName(error.code), message: {}, text: error.details }
            : { code: "OK", message: message as Plain, text: "" },
        );
      const { path, requestSerialize, responseDeserialize } = known;
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, options, callback);
    });
  };
  return {
    call,
    async answer(method, request) {
      const { code, message, text } = await call(method, request);
      if (code !== "OK") throw new Error(`${method}: ${code}: ${text}`);
      return message;
    },
    close: () => client.close(),
  };
}
