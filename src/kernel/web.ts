// Requests that are neither RPC nor REST, as their handlers see them: pages,
// redirects and the endpoints of OAuth. No protocol's objects, so that what
// answers them needs no server.

/** A request. */
export interface WebRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** What follows the fixed part of a route that ends in `/*`, its segments percent-decoded; empty otherwise. */
  readonly rest: string;
  /** The query, unescaped once. */
  readonly query: URLSearchParams;
  /** The address of the peer. */
  readonly remoteAddress: string | undefined;
  /** The value of a request header by its lower-case name; repeated ones joined by ", ". */
  header(name: string): string | undefined;
  /** The value of a cookie; undefined where it is absent or given more than once. */
  cookie(name: string): string | undefined;
  /**
   * The fields of a form.
   *
   * @throws ApiError INVALID_ARGUMENT when the body is no form; an error answered with 413 when it is larger
   * than its route allows.
   */
  form(): Promise<URLSearchParams>;
  /**
   * The bytes of the body.
   *
   * @throws an error answered with 413 when they are more than the route allows.
   */
  bytes(): Promise<Uint8Array>;
}

/** An answer. */
export interface WebAnswer {
  readonly status: number;
  /** Header fields by lower-case name. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Empty unless set. */
  readonly body?: string;
}

/** Answers; what it throws is answered as the JSON of a google.rpc.Status. */
export type WebHandler = (request: WebRequest) => WebAnswer | Promise<WebAnswer>;

/**
 * Who may call a route: anybody, or who passes a check of the header fields. The check runs before a byte of
 * the body is read and throws ApiError UNAUTHENTICATED.
 */
export type WebAccess = "public" | ((request: Pick<WebRequest, "header">) => void);

/** One method of one path, with who may call it and how much they may send. */
export interface WebRoute {
  /** A path without variables, or one that ends in `/*` and takes one or more further segments. */
  readonly path: string;
  /** HEAD is a GET without its body. */
  readonly method: "GET" | "POST";
  readonly access: WebAccess;
  /** The largest body in bytes, before and after decompression; 0 where there is none. */
  readonly maxBytes: number;
  readonly handle: WebHandler;
}

/** Routes of a part of the service. */
export type WebRoutes = readonly WebRoute[];

/** A GET that anybody may call. */
export function publicPage(path: string, handle: WebHandler): WebRoute {
  return { path, method: "GET", access: "public", maxBytes: 0, handle };
}

/** The largest form that anybody may send, in bytes, unless its route needs more. */
export const MAX_PUBLIC_FORM_BYTES = 16 * 1024;

/** A form that anybody may send by POST. */
export function publicForm(path: string, handle: WebHandler, maxBytes = MAX_PUBLIC_FORM_BYTES): WebRoute {
  return { path, method: "POST", access: "public", maxBytes, handle };
}

// Where login providers send browsers back to. Each has a path of its own (RFC
// 9700, section 4.4.2.2): an answer that comes to another's path is of another
// provider, whatever that one says of itself.

/** The path of an operator's only login provider, and what the paths of all others begin with. */
export const CALLBACK = "/oauth/callback";

/**
 * The path that a provider sends browsers back to.
 *
 * @param id the uid of an organisation's identity provider, whose slashes stay as they are, or the name of
 * a login provider of the service. No name is a uid, since names have no slash.
 */
export function callbackPathOf(id: string): string {
  return `${CALLBACK}/${id}`;
}
