// Any method over every protocol, and every response in one form.
import {
  createRegistry,
  type DescMethodUnary,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { file_google_rpc_error_details as errorDetailsFile } from "#gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "#gen/google/rpc/status_pb.js";
import { type HttpRequest, type HttpResponse, sendHttp } from "../../support/send-http.js";
import { LIMIT_MS } from "../../support/wait-until.js";
import { restRequest } from "../iam-clients.js";
import { methods, nameOf } from "../iam-methods.js";
import { codeName } from "../wire.js";
import type { Protocol } from "./rule.js";

/** A response over any protocol. */
export interface RuleResponse {
  /** The name of the code, or `OK`. */
  readonly code: string;
  /** The text of an error. */
  readonly message: string;
  /** The details of an error in the JSON form. */
  readonly details: readonly JsonValue[];
  /** The response with its empty scalars and lists. */
  readonly result: JsonValue;
  /** What REST adds. */
  readonly http?: HttpPart;
}

/** What was sent over HTTP. */
export interface HttpPart {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: JsonValue;
}

/** A client of one protocol. */
export interface RuleClient {
  readonly name: string;
  /** The protocol of the rows that it sends; gRPC stands for all that name fields as the proto does. */
  readonly protocol: Protocol;
  call(method: DescMethodUnary, request: Message, token: string | undefined): Promise<RuleResponse>;
  close(): void;
}

const registry = createRegistry(errorDetailsFile);
const named = new Map<string, DescMethodUnary>();
for (const method of [...methods, ...Object.values(SecurityTokenService.method), ...Object.values(Auth.method)]) {
  named.set(nameOf(method), method);
  if (method.parent.typeName.includes(".v2beta1.")) named.set(method.name, method);
}

/** A method by the name that rows of the table use. */
export function findMethod(name: string): DescMethodUnary {
  const method = named.get(name);
  if (method === undefined) throw new TypeError(`no method ${name}`);
  return method;
}

/** Clients of REST and gRPC, and of the other protocols. */
export function ruleClients(url: string): readonly RuleClient[] {
  const http1 = { baseUrl: url, httpVersion: "1.1" } as const;
  const inBinary = { ...http1, useBinaryFormat: true };
  const inJson = { ...http1, useBinaryFormat: false };
  return [
    overRest(url),
    overGrpc(url),
    overTransport("Connect in JSON", "Connect", createConnectTransport(inJson)),
    overTransport("Connect in binary", "gRPC", createConnectTransport({ ...inBinary, httpVersion: "2" })),
    overTransport("Connect in JSON by GET", "Connect", createConnectTransport({ ...inJson, useHttpGet: true })),
    overTransport("Connect in binary by GET", "gRPC", createConnectTransport({ ...inBinary, useHttpGet: true })),
    overTransport("gRPC-Web", "gRPC", createGrpcWebTransport(http1)),
  ];
}

/** A successful response in the common form. */
export function success(method: DescMethodUnary, message: Message, http?: HttpPart): RuleResponse {
  const result = toJson(method.output, message, { registry, alwaysEmitImplicit: true });
  return { code: "OK", message: "", details: [], result, ...(http && { http }) };
}

/** An error in the common form. */
export function failure(code: number, message: string, details: readonly JsonValue[], http?: HttpPart): RuleResponse {
  return { code: codeName(code), message, details, result: {}, ...(http && { http }) };
}

/** Sends one HTTP request. */
export type SendHttp = (url: string, sent: HttpRequest) => Promise<Pick<HttpResponse, "status" | "headers" | "text">>;

/** Calls through the HTTP rules of the protos; `send` is what HTTP requests are sent with. */
export function overRest(url: string, name = "REST", send: SendHttp = sendHttp): RuleClient {
  return {
    name,
    protocol: "REST",
    async call(method, request, token) {
      const { verb, path, body } = restRequest(method, request);
      const http = await sendRest(url, `${verb} ${path}`, { body: body as object | undefined, token }, send);
      if (http.status !== 200) return errorOf(http);
      // Strictly: REST sends no key that the proto does not have.
      return success(method, fromJson(method.output, http.text === "" ? {} : http.json, { registry }), http);
    },
    close() {},
  };
}

/** An error over REST in the common form. */
export function errorOf(http: HttpPart): RuleResponse {
  const { code, message, details } = http.json as { code: number; message: string; details: JsonValue[] };
  return failure(code, message, details, http);
}

/** What is sent besides the request line. */
export interface RestOptions {
  readonly body?: object | string | undefined;
  readonly token: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Sends a request; `line` is method, path and query. */
export async function sendRest(
  url: string,
  line: string,
  { body, token, headers }: RestOptions,
  send: SendHttp = sendHttp,
): Promise<HttpPart> {
  const [method = "", path = ""] = line.split(" ", 2);
  const sent = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const response = await send(url + path, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(sent !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(sent !== undefined && { body: sent }),
  });
  const isJson = /json/.test(response.headers.get("content-type") ?? "") && response.text !== "";
  const { status, text } = response;
  return { status, text, headers: response.headers, json: isJson ? (JSON.parse(text) as JsonValue) : null };
}

function overGrpc(url: string): RuleClient {
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  return {
    name: "gRPC",
    protocol: "gRPC",
    call(method, request, token) {
      const metadata = new grpc.Metadata();
      if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
      return new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          `/${method.parent.typeName}/${method.name}`,
          (message: Message) => Buffer.from(toBinary(method.input, message)),
          (bytes: Buffer) => fromBinary(method.output, bytes),
          request,
          metadata,
          { deadline: Date.now() + LIMIT_MS },
          (error, response) => {
            try {
              if (error) resolve(statusOf(error));
              else if (response) resolve(success(method, response));
              else reject(new TypeError("neither an answer nor an error"));
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

function statusOf({ code, details: text, metadata }: grpc.ServiceError): RuleResponse {
  const [bytes] = metadata.get("grpc-status-details-bin");
  if (!Buffer.isBuffer(bytes)) return failure(code, text, []);
  const status = fromBinary(StatusSchema, bytes);
  // The status is told twice; clients read either.
  if (status.code !== code || status.message !== text) throw new TypeError(`${text} is not ${status.message}`);
  return failure(
    code,
    text,
    status.details.map(({ typeUrl, value }) => detailOf(typeUrl.slice(typeUrl.lastIndexOf("/") + 1), value)),
  );
}

function detailOf(type: string, value: Uint8Array): JsonValue {
  const desc = registry.getMessage(type);
  if (desc === undefined) throw new TypeError(`no message ${type}`);
  const fields = toJson(desc, fromBinary(desc, value)) as JsonObject;
  return { "@type": `type.googleapis.com/${type}`, ...fields };
}

function overTransport(name: string, protocol: Protocol, transport: Transport): RuleClient {
  return {
    name,
    protocol,
    async call(method, request, token) {
      const header = token === undefined ? {} : { authorization: `Bearer ${token}` };
      try {
        const { message } = await transport.unary(method, undefined, LIMIT_MS, header, request);
        return success(method, message);
      } catch (error) {
        if (!(error instanceof ConnectError)) throw error;
        const details = error.details.map((detail) => {
          if ("type" in detail) return detailOf(detail.type, detail.value);
          throw new TypeError(`a detail that came over no wire: ${error.rawMessage}`, { cause: error });
        });
        return failure(error.code, error.rawMessage, details);
      }
    },
    close() {},
  };
}
