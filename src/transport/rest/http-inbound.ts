import { deadlineExceeded, invalidRequest } from "../../kernel/errors.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { parseGrpcTimeout } from "../http/grpc-fields.js";
import { HOP_BY_HOP_FIELDS, type HttpRequest, type HttpResponse } from "../http/http-message.js";
import { findTimeLeft, RequestInbound } from "../http/inbound.js";

/** A REST request for the pipeline. */
export class HttpInbound extends RequestInbound {
  constructor(req: HttpRequest, res: HttpResponse, record: RequestRecord) {
    const { method = "", url = "", headers } = req;
    const timeoutMs = findTimeLeft(timeoutOf(req), record);
    super(res, record, { protocol: "rest", fieldSpelling: "json", method, url, headers, timeoutMs });
  }

  override headers(): Headers {
    const headers = new Headers();
    const fields = Object.entries(this.fields);
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
