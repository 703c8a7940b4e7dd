// What the messages of HTTP/1.1 and HTTP/2 have in common.
import type { IncomingHttpHeaders } from "node:http";
import type { ApiError } from "../../kernel/errors.js";

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

/**
 * Returns the path and query of a request target. A target in absolute form, as clients send to proxies, loses its
 * origin (RFC 9112, section 3.2.2). `new URL` would rewrite dots and backslashes.
 */
export function toOriginForm(target: string): string {
  const code = target.charCodeAt(0);
  if (code === 47) return target;
  const authority = /^https?:\/\/[^/?#]+/i.exec(target.slice(0, 300))?.[0];
  if (authority === undefined) return target;
  const rest = target.slice(authority.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** Removes the query of a path, which may contain names and tokens. */
export function pathOf(url: string): string {
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}

/**
 * An error with an HTTP status that does not follow from its code, such as 413 for RESOURCE_EXHAUSTED, or with headers
 * of its own.
 */
export class HttpError extends Error {
  readonly error: ApiError;
  /** The HTTP status to answer with. */
  readonly status: number;
  /** Headers for the response, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, error: ApiError, headers: Readonly<Record<string, string>> = {}) {
    super(error.message);
    this.name = "HttpError";
    this.status = status;
    this.error = error;
    this.headers = headers;
  }
}

/** Hop-by-hop fields, which are not forwarded (RFC 9110, section 7.6.1). */
export const HOP_BY_HOP_FIELDS: readonly string[] = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
