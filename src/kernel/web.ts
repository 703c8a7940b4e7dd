// The types of requests that are neither RPC nor REST: pages, redirects and OAuth endpoints.

import type { BearerNote } from "./asserted-bearer.js";
import type { RejectReason } from "./reject-reason.js";
import type { JsonValue } from "./strict-json.js";
import type { TraceSpan } from "./trace.js";

/** The `client_id` of the command line, which shows the code of a headless login. */
export const CLI_CLIENT_ID = "arbor-cli";

export type WebMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface WebRequest {
  readonly method: WebMethod;
  readonly path: string;
  /**
   * The path after the fixed part of a route that ends in `/*`, with percent-decoded segments, or as it was sent where the route
   * says so; otherwise empty.
   */
  readonly rest: string;
  /** The decoded query. */
  readonly query: URLSearchParams;
  /** The address of the peer. */
  readonly remoteAddress: string | undefined;
  /** The id of the request, for audit rows and log lines. */
  readonly requestId: string;
  /** The trace of the request, for audit rows; empty where there is none. */
  readonly traceId: string;
  readonly trace?: TraceSpan | undefined;
  /** The record of the request, for its log line. */
  readonly record?: BearerNote | undefined;
  /** The value of a request header by its lower-case name; repeated ones joined by ", ". */
  header(name: string): string | undefined;
  /** The value of a cookie; undefined when it is absent or repeated. */
  cookie(name: string): string | undefined;
  /**
   * The fields of a form.
   *
   * @throws ApiError INVALID_ARGUMENT when the body is no form; an error with status 413 when it is larger than the
   * route allows
   */
  form(): Promise<URLSearchParams>;
  /**
   * The value of a JSON body.
   *
   * @throws ApiError INVALID_ARGUMENT when the body is no JSON; an error with status 415 when it has another type, and with
   * 413 when it is larger than the route allows
   */
  json(): Promise<JsonValue>;
  /**
   * The bytes of the body.
   *
   * @throws an error with status 413 when the body is larger than the route allows
   */
  bytes(): Promise<Uint8Array>;
}

export interface WebResponse {
  readonly status: number;
  /** Header fields by lower-case name. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Empty unless set. */
  readonly body?: string;
  /** Why the request is rejected, for logs and metrics. */
  readonly rejection?: RejectReason | undefined;
}

/** Handles a request. A thrown error becomes the JSON of a google.rpc.Status. */
export type WebHandler = (request: WebRequest) => WebResponse | Promise<WebResponse>;

/**
 * Who may call a route: everybody, or callers that pass a check of the header fields. The check runs before the body
 * is read and throws ApiError UNAUTHENTICATED.
 */
export type WebAccess = "public" | ((request: Pick<WebRequest, "header">) => void);

/** A method of a path, with its access and its largest body. */
export interface WebRoute {
  /** A path without variables, or one that ends in `/*` and matches one or more further segments. */
  readonly path: string;
  /** HEAD is handled as a GET without a body. */
  readonly method: WebMethod;
  /** Whether the handler decodes the rest of the path itself, so that every path with the prefix matches. */
  readonly decodesRest?: boolean;
  readonly access: WebAccess;
  /** The largest body in bytes, before and after decompression; 0 where there is none. */
  readonly maxBytes: number;
  readonly handle: WebHandler;
}

export type WebRoutes = readonly WebRoute[];

/** Builds the route of a public GET. */
export function publicPage(path: string, handle: WebHandler): WebRoute {
  return { path, method: "GET", access: "public", maxBytes: 0, handle };
}

/** The default limit of a public form, in bytes. */
const MAX_PUBLIC_FORM_BYTES = 16 * 1024;

/** Builds the route of a public form that is sent with POST. */
export function publicForm(path: string, handle: WebHandler, maxBytes = MAX_PUBLIC_FORM_BYTES): WebRoute {
  return { path, method: "POST", access: "public", maxBytes, handle };
}

/** The path of the web console, which has all paths below it as well. */
export const CONSOLE_PATH = "/console";
/** Where the console gets its tokens. */
export const CONSOLE_SESSION_PATH = `${CONSOLE_PATH}/session`;

// The redirect URIs of login providers. Each provider has its own path (RFC 9700, section 4.4.2.2), so that the
// response of one provider is not taken for that of another.

/** The path of a single login provider of the operator, and the prefix of all other paths. */
export const CALLBACK_PATH = "/oauth/callback";

/**
 * Builds the path of a provider's redirect URI.
 *
 * @param id the uid of an organisation's identity provider, with its slashes, or the name of a login provider, which
 * has no slash
 */
export function buildCallbackPath(id: string): string {
  return `${CALLBACK_PATH}/${id}`;
}
