// The header fields of a request over REST: its timeout, and what handlers see as its metadata.
import type { IncomingHttpHeaders } from "node:http";
import { invalidRequest } from "../../kernel/errors.js";
import { parseGrpcTimeout } from "../http/grpc-fields.js";
import { HOP_BY_HOP_FIELDS } from "../http/http-message.js";

/** The header fields of a request as handlers see them. */
export function restMetadataOf(given: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  const fields = Object.entries(given);
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
 * The timeout of a call in milliseconds: the shorter of `grpc-timeout` and `x-server-timeout`, which is in seconds.
 *
 * @throws ApiError INVALID_ARGUMENT when it is malformed
 */
export function restTimeoutOf(fields: IncomingHttpHeaders): number | undefined {
  const grpc = fields["grpc-timeout"];
  const server = fields["x-server-timeout"];
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
  return ms;
}
