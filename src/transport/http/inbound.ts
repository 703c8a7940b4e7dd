import type { IncomingHttpHeaders } from "node:http2";
import type { HandlerContext } from "@connectrpc/connect";
import type { CallProtocol, Inbound } from "../../pipeline/call.js";
import type { FieldSpelling } from "../../pipeline/field-names.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { createDisconnectSignal, type HttpResponse, type ResponseWriter } from "./http-message.js";
import { type OpenRequest, openRequestOf } from "./open-request.js";

/** What front ends read of a request. */
export interface RequestFacts {
  readonly protocol: CallProtocol;
  readonly fieldSpelling: FieldSpelling;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly timeoutMs: number | undefined;
}

/** The request of a call that our own front ends answer. Its properties are computed when they are read. */
export class RequestInbound implements Inbound {
  readonly protocol: CallProtocol;
  readonly fieldSpelling: FieldSpelling;
  readonly method: string;
  readonly url: string;
  readonly timeoutMs: number | undefined;
  readonly record: RequestRecord;
  protected readonly fields: IncomingHttpHeaders;
  readonly #out: ResponseWriter;

  /** @param out what the response is written to */
  constructor(out: ResponseWriter, record: RequestRecord, facts: RequestFacts) {
    this.protocol = facts.protocol;
    this.fieldSpelling = facts.fieldSpelling;
    this.method = facts.method;
    this.url = facts.url;
    this.timeoutMs = facts.timeoutMs;
    this.record = record;
    this.fields = facts.headers;
    this.#out = out;
  }

  get requestId(): string {
    return this.record.requestId;
  }

  get remoteAddress(): string | undefined {
    return this.record.remoteAddress;
  }

  get turn(): OpenRequest | undefined {
    return openRequestOf(this.#out);
  }

  header(name: string): string | undefined {
    return joinField(this.fields[name]);
  }

  headers(): Headers {
    return toWebHeaders(this.fields);
  }

  signal(): AbortSignal {
    return createDisconnectSignal(this.#out);
  }
}

/** The request of a call that connect decoded: of a stream or a mounted method. */
export class ContextInbound implements Inbound {
  readonly timeoutMs: number | undefined;
  readonly record: RequestRecord;
  readonly turn: OpenRequest | undefined;
  readonly #context: HandlerContext;

  constructor(
    context: HandlerContext,
    timeoutMs: number | undefined,
    record: RequestRecord,
    response: HttpResponse | undefined,
  ) {
    this.timeoutMs = timeoutMs;
    this.record = record;
    this.turn = response && openRequestOf(response);
    this.#context = context;
  }

  get requestId(): string {
    return this.record.requestId;
  }

  get remoteAddress(): string | undefined {
    return this.record.remoteAddress;
  }

  get protocol(): CallProtocol {
    const name = this.#context.protocolName;
    return name === "grpc" || name === "grpc-web" ? name : "connect";
  }

  // Errors of gRPC and gRPC-Web are binary, whatever the codec of messages.
  get fieldSpelling(): FieldSpelling {
    if (this.protocol !== "connect") return "proto";
    const format = this.header("content-type") ?? new URLSearchParams(this.url.split("?")[1]).get("encoding");
    return format?.includes("json") ? "json" : "proto";
  }

  get method(): string {
    return this.#context.requestMethod;
  }

  get url(): string {
    return this.#context.url;
  }

  header(name: string): string | undefined {
    return this.#context.requestHeader.get(name) ?? undefined;
  }

  headers(): Headers {
    return this.#context.requestHeader;
  }

  signal(): AbortSignal {
    return this.#context.signal;
  }
}

/** How much of a timeout is left of a request that may have waited for its turn, in milliseconds. */
export function findTimeLeft(timeoutMs: number | undefined, { startMs }: RequestRecord): number | undefined {
  return timeoutMs === undefined ? undefined : Math.max(0, timeoutMs - (performance.now() - startMs));
}

/** Joins the values of a field that came several times. */
export function joinField(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "object" ? value.join(", ") : value;
}

/** Converts the fields of a request to `Headers`, without the pseudo-header fields of HTTP/2. */
export function toWebHeaders(fields: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const name in fields) {
    const value = fields[name];
    if (value === undefined || name.charCodeAt(0) === 58) continue;
    if (typeof value === "string") headers.append(name, value);
    else for (const item of value) headers.append(name, item);
  }
  return headers;
}
