// The same call through every protocol, and every response in one form: the
// sparse JSON of the message, or code, message and details.
import {
  create,
  createRegistry,
  type DescMethodUnary,
  fromBinary,
  fromJson,
  type JsonValue,
  toJson,
} from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import {
  GroupsService,
  file_chainguard_platform_iam_v2beta1_groups as groupsFile,
} from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { file_google_rpc_error_details as errorDetailsFile } from "#gen/google/rpc/error_details_pb.js";
import { type HttpRequest, type HttpResponse, sendHttp } from "../support/send-http.js";
import { connectGrpcJs } from "./grpc-js-client.js";
import { restRequestOf } from "./rest-request.js";
import { codeName, type MethodName, type Outcome, type WireClient } from "./wire.js";

/** A REST client, which tells the HTTP status of its last response as well. */
export interface RestClient extends WireClient {
  readonly status: number;
}

const registry = createRegistry(groupsFile, errorDetailsFile);

/** Clients of every protocol but REST. */
export function rpcClients(url: string): readonly WireClient[] {
  const http1 = { baseUrl: url, httpVersion: "1.1" } as const;
  return [
    connectGrpcJs(url),
    overTransport("connect JSON", false, createConnectTransport({ ...http1, useBinaryFormat: false })),
    overTransport(
      "connect binary",
      true,
      createConnectTransport({ ...http1, httpVersion: "2", useBinaryFormat: true }),
    ),
    overTransport("connect GET", false, createConnectTransport({ ...http1, useHttpGet: true, useBinaryFormat: false })),
    overTransport(
      "connect binary GET",
      true,
      createConnectTransport({ ...http1, useHttpGet: true, useBinaryFormat: true }),
    ),
    overTransport("gRPC-Web", true, createGrpcWebTransport(http1)),
  ];
}

function descOf(name: MethodName): DescMethodUnary {
  const known = GroupsService.methods.find((method) => method.name === name);
  const base = known ?? GroupsService.method.deleteGroup;
  return { ...base, name } as DescMethodUnary;
}

function overTransport(name: string, namesProtoFields: boolean, transport: Transport): WireClient {
  return {
    name,
    namesProtoFields,
    async call({ method, request, token }) {
      const desc = descOf(method);
      const header = token === undefined ? {} : { authorization: `Bearer ${token}` };
      try {
        const message = create(desc.input, request as Record<string, unknown>);
        const response = await transport.unary(desc, undefined, 10_000, header, message);
        return { code: "OK", result: toJson(desc.output, response.message, { registry }) };
      } catch (error) {
        if (error instanceof ConnectError) return failureOf(error);
        throw error;
      }
    },
    close() {},
  };
}

function failureOf(error: ConnectError): Outcome {
  const details = error.details.map((detail): JsonValue => {
    if (!("type" in detail))
      throw new TypeError(`a detail that came over no wire: ${error.rawMessage}`, { cause: error });
    const desc = registry.getMessage(detail.type);
    if (desc === undefined) throw new TypeError(`no message ${detail.type}`);
    const fields = toJson(desc, fromBinary(desc, detail.value)) as object;
    return { "@type": `type.googleapis.com/${detail.type}`, ...fields };
  });
  return { code: codeName(error.code), message: error.rawMessage, details };
}

/** Sends one HTTP request. */
export type SendHttp = (url: string, sent: HttpRequest) => Promise<Pick<HttpResponse, "status" | "ok" | "text">>;

/** Calls through the HTTP rules of the protos; `send` is what HTTP requests are sent with. */
export function restClient(url: string, name = "REST", send: SendHttp = sendHttp): RestClient {
  let status = 0;
  return {
    name,
    namesProtoFields: false,
    get status() {
      return status;
    },
    async call({ method, request, token, rest }) {
      const sent = rest ?? restRequestOf(method, request);
      const answer = await send(url + sent.path, {
        method: sent.method,
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(sent.body !== undefined && { "content-type": "application/json" }),
        },
        ...(sent.body !== undefined && { body: JSON.stringify(sent.body) }),
      });
      status = answer.status;
      const { text } = answer;
      if (!answer.ok) {
        const { code, message, details } = JSON.parse(text) as { code: number; message: string; details: JsonValue[] };
        return { code: codeName(code), message, details };
      }
      // A delete answers zero bytes (docs/api-rules.md#requests).
      const json: JsonValue = text === "" && method === "DeleteGroup" ? {} : JSON.parse(text);
      const { output } = descOf(method);
      return { code: "OK", result: toJson(output, fromJson(output, json, { registry }), { registry }) };
    },
    close() {},
  };
}
