// Requests that are neither RPC nor REST, as their handlers see them: pages,
// redirects and the endpoints of OAuth. No protocol's objects, so that what
// answers them needs no server.

/** A request. */
export interface WebRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
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
   * @throws ApiError INVALID_ARGUMENT when the body is no form or too large.
   */
  form(): Promise<URLSearchParams>;
  /**
   * The bytes of the body.
   *
   * @param maxBytes how many they may be
   * @throws an error answered with 413 when they are more.
   */
  bytes(maxBytes: number): Promise<Uint8Array>;
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

/** What is served where: handlers by path and method. HEAD is a GET without its body. */
export type WebRoutes = Readonly<Record<string, Partial<Readonly<Record<"GET" | "POST", WebHandler>>>>>;
