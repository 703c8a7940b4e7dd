// The forms of RPC: gRPC, gRPC-Web and Connect, each with messages in binary and in JSON.
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { Request } from "../http/request.js";
import { ConnectStream, ConnectUnary } from "./connect.js";
import { Grpc } from "./grpc.js";
import { GrpcWeb } from "./grpc-web.js";
import type { MessageCodec } from "./message-codec.js";
import type { Protocol } from "./protocol.js";
import type { RpcOptions } from "./rpc-form.js";

/** The only parameter of JSON. */
const CHARSET = /^(application\/(?:connect\+)?json); ?charset=utf-?8$/;

type ByType = ReadonlyMap<string, Protocol>;

/** The forms of the calls of methods that share their codecs. */
export class Forms {
  readonly #binary: Protocol;
  readonly #json: Protocol;
  readonly #unary: ByType;
  readonly #streams: ByType;

  constructor(binary: MessageCodec, json: MessageCodec, options: RpcOptions) {
    const [grpc, grpcJson] = [new Grpc(binary, options), new Grpc(json, options)];
    const [web, webJson] = [new GrpcWeb(binary, options), new GrpcWeb(json, options)];
    this.#binary = new ConnectUnary(binary, options);
    this.#json = new ConnectUnary(json, options);
    const both: [string, Protocol][] = [
      ["application/grpc", grpc],
      ["application/grpc+proto", grpc],
      ["application/grpc+json", grpcJson],
      ...["application/grpc-web", "application/grpc-web-text"].flatMap((type): [string, Protocol][] => [
        [type, web],
        [`${type}+proto`, web],
        [`${type}+json`, webJson],
      ]),
    ];
    this.#unary = new Map([...both, ["application/proto", this.#binary], ["application/json", this.#json]]);
    this.#streams = new Map([
      ...both,
      ["application/connect+proto", new ConnectStream(binary, options)],
      ["application/connect+json", new ConnectStream(json, options)],
    ]);
  }

  /**
   * Finds the form of a call by its HTTP method and its content type; undefined when its method takes no such.
   *
   * @param method of the call; undefined for the form of an error of a path without a method
   */
  find(request: Request, method: DescMethod | undefined): Protocol | undefined {
    if (request.method === "GET") return this.#findForGet(request);
    const byType = method?.methodKind === "unary" ? this.#unary : this.#streams;
    const type = request.fields["content-type"] ?? "";
    const form = byType.get(type) ?? byType.get(type.toLowerCase().replace(CHARSET, "$1"));
    // gRPC needs HTTP trailers, which few peers and proxies of HTTP/1.1 support.
    return form?.name === "grpc" && method !== undefined && request.httpVersion !== "2" ? undefined : form;
  }

  /** Finds the form of an error for a request that may be no call. */
  findForError(request: Request, method: DescMethod | undefined): Protocol {
    const form = this.find(request, method);
    if (form !== undefined) return form;
    const { "content-type": type = "" } = request.fields;
    const family = ["application/grpc-web", "application/grpc"].find((name) => type.startsWith(name));
    return (family === undefined ? undefined : this.#streams.get(family)) ?? this.#json;
  }

  #findForGet({ url }: Request): Protocol | undefined {
    const encoding = new URLSearchParams(url.slice(url.indexOf("?") + 1)).get("encoding");
    if (encoding === "json") return this.#json;
    return encoding === "proto" ? this.#binary : undefined;
  }
}

/** The HTTP methods of calls of a method, as in an Allow header: Connect takes GET for those without side effects. */
export function httpMethodsOf({ methodKind, idempotency }: DescMethod): string {
  const get = methodKind === "unary" && idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  return get ? "GET, POST" : "POST";
}
