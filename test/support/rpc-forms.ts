// The forms in which a method of RPC can be called: by protocol, codec and version of HTTP.
import { gzipSync } from "node:zlib";

/** A header field. */
export type Field = readonly [name: string, value: string];

/** A form of calls. */
export interface RpcForm {
  readonly name: string;
  readonly type: string;
  readonly http: readonly (1 | 2)[];
  readonly isJson: boolean;
  /** Whether messages are in envelopes. */
  readonly isEnveloped: boolean;
  /** Whether the body is base64. */
  readonly isText?: boolean;
  /** Whether the message is in the query. */
  readonly isGet?: boolean;
  /** The header field that names the compression of requests, and the one that names what responses may have. */
  readonly encoding: string;
  readonly accepted: string;
  readonly timeout: "grpc-timeout" | "connect-timeout-ms";
}

type Protocol = Omit<RpcForm, "type" | "isJson">;

const grpc: Protocol = {
  name: "gRPC",
  http: [2],
  isEnveloped: true,
  encoding: "grpc-encoding",
  accepted: "grpc-accept-encoding",
  timeout: "grpc-timeout",
};
const web: Protocol = { ...grpc, name: "gRPC-Web", http: [1, 2] };
const text: Protocol = { ...web, name: "gRPC-Web text", isText: true };
const connect: Protocol = {
  name: "Connect",
  http: [1, 2],
  isEnveloped: false,
  encoding: "content-encoding",
  accepted: "accept-encoding",
  timeout: "connect-timeout-ms",
};
const stream: Protocol = {
  ...connect,
  isEnveloped: true,
  encoding: "connect-content-encoding",
  accepted: "connect-accept-encoding",
};

const enveloped: readonly RpcForm[] = [
  { ...grpc, type: "application/grpc", isJson: false },
  { ...grpc, type: "application/grpc+proto", isJson: false },
  { ...grpc, name: "gRPC JSON", type: "application/grpc+json", isJson: true },
  { ...web, type: "application/grpc-web", isJson: false },
  { ...web, type: "application/grpc-web+proto", isJson: false },
  { ...web, name: "gRPC-Web JSON", type: "application/grpc-web+json", isJson: true },
  { ...text, type: "application/grpc-web-text", isJson: false },
  { ...text, type: "application/grpc-web-text+proto", isJson: false },
];

/** The forms of methods with one request and one response. */
export const unaryForms: readonly RpcForm[] = [
  ...enveloped,
  { ...connect, name: "Connect JSON", type: "application/json", isJson: true },
  { ...connect, name: "Connect JSON", type: "application/json; charset=utf-8", isJson: true },
  { ...connect, name: "Connect binary", type: "application/proto", isJson: false },
  { ...connect, name: "Connect binary", type: "application/proto", isJson: false },
  { ...connect, name: "Connect GET JSON", type: "json", isJson: true, isGet: true },
  { ...connect, name: "Connect GET binary", type: "proto", isJson: false, isGet: true },
];

/** The forms of methods that stream. */
export const streamForms: readonly RpcForm[] = [
  ...enveloped,
  { ...stream, name: "Connect stream JSON", type: "application/connect+json", isJson: true },
  { ...stream, name: "Connect stream binary", type: "application/connect+proto", isJson: false },
];

/** Puts messages into envelopes. */
export function seal(messages: readonly Buffer[], isCompressed = false): Buffer {
  return Buffer.concat(
    messages.flatMap((message) => {
      const bytes = isCompressed ? gzipSync(message) : message;
      const head = Buffer.alloc(5);
      head[0] = isCompressed ? 1 : 0;
      head.writeUInt32BE(bytes.length, 1);
      return [head, bytes];
    }),
  );
}

/** What a call sends. */
export interface RpcContent {
  readonly messages: readonly Buffer[];
  readonly isCompressed?: boolean;
}

/** The method of HTTP, the query and the body that carry a call of a form, and the fields that belong to it. */
export function encodeCall(form: RpcForm, { messages, isCompressed = false }: RpcContent) {
  const [first = Buffer.alloc(0)] = messages;
  const fields: Field[] = [];
  if (form.isGet) {
    const bytes = isCompressed ? gzipSync(first) : first;
    const isBase64 = isCompressed || !form.isJson;
    const message = isBase64
      ? `base64=1&message=${bytes.toString("base64url")}`
      : `message=${encodeURIComponent(first.toString())}`;
    const query = `?connect=v1&encoding=${form.type}&${message}${isCompressed ? "&compression=gzip" : ""}`;
    return { method: "GET", query, fields, body: undefined };
  }
  fields.push(["content-type", form.type]);
  if (form.name.startsWith("gRPC") && !form.name.startsWith("gRPC-Web")) fields.push(["te", "trailers"]);
  if (isCompressed) fields.push([form.encoding, "gzip"]);
  const plain = form.isEnveloped ? seal(messages, isCompressed) : isCompressed ? gzipSync(first) : first;
  const body = form.isText ? Buffer.from(plain.toString("base64")) : plain;
  return { method: "POST", query: "", fields, body };
}
