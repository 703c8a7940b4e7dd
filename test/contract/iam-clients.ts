// Any method of any service through each protocol, and all that the service sent
// back, byte for byte: head, body and trailers.
import {
  create,
  type DescMethodUnary,
  fromBinary,
  getOption,
  hasOption,
  type JsonObject,
  type Message,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { http } from "#gen/google/api/annotations_pb.js";
import { sendHttp } from "../support/send-http.js";
import { LIMIT_MS } from "../support/wait-until.js";
import { codeName } from "./wire.js";

/** What came back. */
export interface RawResponse {
  /** The name of the code, such as `NOT_FOUND`, or `OK`. */
  readonly code: string;
  /** Everything that came, binary values of trailers decoded, without what differs from call to call. */
  readonly bytes: string;
  /** The message of a successful response, where the protocol carries it in binary. */
  readonly message?: Message;
  /** The body as JSON, where it is that. */
  readonly json?: JsonObject;
}

/** A client of one protocol. */
export interface RawClient {
  readonly name: string;
  call(method: DescMethodUnary, request: Message, token?: string): Promise<RawResponse>;
  close(): void;
}

/** Clients of all four protocols. */
export function rawClients(url: string): readonly RawClient[] {
  return [rawRest(url), rawGrpc(url), rawConnect(url), rawGrpcWeb(url)];
}

/** Those of the clients that can call a method: some have no rule for JSON over HTTP. */
export function clientsFor(method: DescMethodUnary, clients: readonly RawClient[]): readonly RawClient[] {
  return hasOption(method, http) ? clients : clients.filter(({ name }) => name !== "REST");
}

const pathOf = (method: DescMethodUnary) => `/${method.parent.typeName}/${method.name}`;

function headOf(headers: Headers): string {
  return [...headers]
    .filter(([name]) => !/^(date|x-request-id)$/.test(name))
    .map((field) => field.join(": "))
    .join("\n");
}

function bearer(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** JSON over HTTP by the rules of the protos. */
export function rawRest(url: string): RawClient {
  return {
    name: "REST",
    async call(method, request, token) {
      const { verb, path, body } = restRequest(method, request);
      const headers = { ...bearer(token), ...(body !== undefined && { "content-type": "application/json" }) };
      const response = await sendHttp(url + path, {
        method: verb,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const { text } = response;
      const json = (text === "" ? {} : JSON.parse(text)) as JsonObject;
      const code = response.ok ? "OK" : codeName(Number(json.code));
      return { code, bytes: `${response.status}\n${headOf(response.headers)}\n${text}`, json };
    },
    close() {},
  };
}

/** What to send over REST for a request: verb, path with query, and body as JSON where the rule of the method has one. */
export function restRequest(method: DescMethodUnary, request: Message) {
  const rule = getOption(method, http);
  const json = toJson(method.input, request, { alwaysEmitImplicit: false }) as JsonObject;
  const template = String(rule.pattern.value);
  const path = template.replace(/\{([\w.]+)(?:=(\*{1,2}))?\}/g, (_, name: string, stars = "*") => {
    const parts = name.split(".").map(camel);
    const last = parts.pop() ?? "";
    const holder = parts.reduce<JsonObject>((at, part) => (at[part] ?? {}) as JsonObject, json);
    const value = String(holder[last] ?? "");
    delete holder[last];
    return stars === "*" ? encodeURIComponent(value) : value;
  });
  let body: unknown;
  if (rule.body === "*") body = json;
  else if (rule.body !== "") {
    body = json[camel(rule.body)] ?? (method.input.field[camel(rule.body)]?.fieldKind === "list" ? [] : {});
    delete json[camel(rule.body)];
  }
  const query = new URLSearchParams();
  if (rule.body !== "*") flatten(json, "", query);
  return { verb: (rule.pattern.case ?? "").toUpperCase(), path: query.size > 0 ? `${path}?${query}` : path, body };
}

function flatten(value: unknown, name: string, query: URLSearchParams): void {
  if (Array.isArray(value)) for (const one of value) flatten(one, name, query);
  else if (typeof value === "object" && value !== null) {
    for (const [key, inner] of Object.entries(value)) flatten(inner, name === "" ? key : `${name}.${key}`, query);
  } else query.append(name, String(value));
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** gRPC by another library than the service's. */
export function rawGrpc(url: string): RawClient {
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  return {
    name: "gRPC",
    call(method, request, token) {
      const metadata = new grpc.Metadata();
      for (const [name, value] of Object.entries(bearer(token))) metadata.set(name, value);
      const heads: string[] = [];
      const keep = (one: grpc.Metadata) => {
        for (const [name, values] of Object.entries(one.toJSON())) {
          if (!/^(date|x-request-id)$/.test(name))
            for (const value of values) heads.push(`${name}: ${value.toString("latin1")}`);
        }
      };
      return new Promise((resolve) => {
        const call = client.makeUnaryRequest(
          pathOf(method),
          (message: Message) => Buffer.from(toBinary(method.input, message)),
          (bytes: Buffer) => bytes,
          request,
          metadata,
          { deadline: Date.now() + LIMIT_MS },
          (error, body) => {
            const ended = error ? `${error.code} ${error.details}` : "0";
            const bytes = () => `${ended}\n${heads.sort().join("\n")}\n${body?.toString("latin1") ?? ""}`;
            const code = error ? codeName(error.code) : "OK";
            const message = body ? { message: fromBinary(method.output, body) } : {};
            // The trailers are told after the response.
            setImmediate(() => resolve({ code, bytes: bytes(), ...message }));
          },
        );
        call.on("metadata", keep);
        call.on("status", ({ metadata: trailers }) => keep(trailers));
      });
    },
    close: () => client.close(),
  };
}

/** Connect with JSON. */
export function rawConnect(url: string): RawClient {
  return {
    name: "Connect",
    async call(method, request, token) {
      const headers = { ...bearer(token), "content-type": "application/json", "connect-protocol-version": "1" };
      const body = JSON.stringify(toJson(method.input, request));
      const response = await sendHttp(url + pathOf(method), { method: "POST", headers, body });
      const { text } = response;
      const json = JSON.parse(text) as JsonObject;
      const details = ((json.details ?? []) as { value?: string }[]).map(({ value = "" }) =>
        Buffer.from(value, "base64").toString("latin1"),
      );
      const bytes = `${response.status}\n${headOf(response.headers)}\n${text}\n${details.join("\n")}`;
      return { code: response.ok ? "OK" : String(json.code).toUpperCase(), bytes, json };
    },
    close() {},
  };
}

/** gRPC-Web with binary messages. */
export function rawGrpcWeb(url: string): RawClient {
  return {
    name: "gRPC-Web",
    async call(method, request, token) {
      const message = toBinary(method.input, request);
      const body = Buffer.alloc(5 + message.length);
      body.writeUInt32BE(message.length, 1);
      body.set(message, 5);
      const headers = { ...bearer(token), "content-type": "application/grpc-web+proto", "x-grpc-web": "1" };
      const response = await sendHttp(url + pathOf(method), { method: "POST", headers, body });
      const frames = response.body;
      const bytes = frames.toString("latin1");
      const status = response.headers.get("grpc-status") ?? /grpc-status: ?(\d+)/i.exec(bytes)?.[1] ?? "2";
      const all = `${response.status}\n${headOf(response.headers)}\n${bytes}`.replace(
        /(?<=-bin: ?)[\w+/=-]+/g,
        (value) => Buffer.from(value, "base64").toString("latin1"),
      );
      if (status !== "0") return { code: codeName(Number(status)), bytes: all };
      return {
        code: "OK",
        bytes: all,
        message: fromBinary(method.output, frames.subarray(5, 5 + frames.readUInt32BE(1))),
      };
    },
    close() {},
  };
}

/** A request of a method from an init object. */
export function requestOf(method: DescMethodUnary, init: object): Message {
  return create(method.input, init as Record<string, unknown>);
}
