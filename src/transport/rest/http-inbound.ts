import { deadlineExceeded, invalidRequest } from "../../kernel/errors.js";
import type { Inbound } from "../../pipeline/call.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { parseGrpcTimeout } from "../http/grpc-fields.js";
import {
  createDisconnectSignal,
  HOP_BY_HOP_FIELDS,
  type HttpRequest,
  type HttpResponse,
} from "../http/http-message.js";
import { findTimeLeft } from "../http/inbound.js";
import { type OpenRequest, openRequestOf } from "../http/open-request.js";

/** A REST request for the pipeline. Its properties are computed when they are read. */
export class HttpInbound implements Inbound {
  readonly protocol = "rest";
  readonly fieldSpelling = "json";
  readonly timeoutMs: number | undefined;
  readonly #req: HttpRequest;
  readonly #res: HttpResponse;
  readonly record: RequestRecord;

  constructor(req: HttpRequest, res: HttpResponse, record: RequestRecord) {
    this.timeoutMs = findTimeLeft(timeoutOf(req), record);
    this.#req = req;
    this.#res = res;
    this.record = record;
  }

  get requestId(): string {
    return this.record.requestId;
  }

  get method(): string {
    return this.#req.method ?? "";
  }

  get url(): string {
    return this.#req.url ?? "";
  }

  get turn(): OpenRequest | undefined {
    return openRequestOf(this.#req);
  }

  get remoteAddress(): string | undefined {
    return this.record.remoteAddress;
  }

  header(name: string): string | undefined {
    const value = this.#req.headers[name];
    return typeof value === "object" ? value.join(", ") : value;
  }

  headers(): Headers {
    const headers = new Headers();
    const fields = Object.entries(this.#req.headers);
    for (const [name, value] of fields) {
      if (value === undefined || name.startsWith(":") || NOT_METADATA.has(name)) continue;
      for (const one of typeof value === "string" ? [value] : value) headers.append(name, one);
    }
    for (const [name, value] of fields) {
      const alias = aliasOf(name);
      if (alias === undefined || typeof value !== "string" || headers.has(alias)) continue;
      headers.set(alias, value);
    }
    return headers;
  }

  signal(): AbortSignal {
    return createDisconnectSignal(this.#res);
  }
}

const METADATA = "grpc-metadata-";

// Callers of older gateways prefix the metadata of a call. Credentials and fields of the message or a protocol have no
// prefixed form. A field without the prefix takes precedence.
function aliasOf(name: string): string | undefined {
  if (!name.startsWith(METADATA) || name.length === METADATA.length) return undefined;
  const alias = name.slice(METADATA.length);
  if (alias === "authorization" || alias === "cookie" || alias === "host" || NOT_METADATA.has(alias)) return undefined;
  return alias.startsWith("content-") || alias.startsWith("grpc-") ? undefined : alias;
}

// Credentials for a proxy are not metadata either.
const NOT_METADATA: ReadonlySet<string> = new Set([...HOP_BY_HOP_FIELDS, "proxy-authenticate", "proxy-authorization"]);

const SECONDS = /^\d{1,9}(?:\.\d{0,9})?$/;

/**
 * The timeout of the call in milliseconds: the shorter of `grpc-timeout` and `x-server-timeout`, which is in seconds.
 *
 * @throws ApiError INVALID_ARGUMENT when it is malformed, DEADLINE_EXCEEDED when it is 0
 */
function timeoutOf(req: HttpRequest): number | undefined {
  const grpc = req.headers["grpc-timeout"];
  const server = req.headers["x-server-timeout"];
  if (grpc === undefined && server === undefined) return undefined;
  let ms = Number.POSITIVE_INFINITY;
  if (grpc !== undefined) {
    ms = parseGrpcTimeout(String(grpc));
    if (Number.isNaN(ms)) throw invalidRequest("grpc-timeout: must be up to 8 digits and one of H, M, S, m, u, n");
  }
  if (server !== undefined) {
    const text = String(server);
    if (!SECONDS.test(text)) throw invalidRequest("x-server-timeout: must be a number of seconds, such as 2.5");
    ms = Math.min(ms, Number(text) * 1000);
  }
  if (ms === 0) throw deadlineExceeded();
  return ms;
}
