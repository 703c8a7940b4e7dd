// A connection to one service, and typed clients on it.
import type { SecureClientSessionOptions } from "node:http2";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { BACKOFF_MS, withCallPolicy } from "./call-policy.js";
import { assertMayCarryToken, mayCarryToken, serviceUrl, type TokenSource } from "./token-source.js";

/** The default deadline of a call, in milliseconds, which is also the longest that the service allows. */
const TIMEOUT_MS = 30_000;

/** After this long without data a connection in use is checked with a PING, in milliseconds. */
const PING_INTERVAL_MS = 30_000;

/** How long the response to a PING may take before the connection counts as dead, in milliseconds. */
const PING_TIMEOUT_MS = 10_000;

/** The largest accepted response, in bytes: the default of gRPC. */
const READ_MAX_BYTES = 4 * 1024 * 1024;

/** Node's error codes for connections that cannot be made or break. */
const LOST: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "EPIPE",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ERR_HTTP2_GOAWAY_SESSION",
  "ERR_HTTP2_INVALID_SESSION",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_HTTP2_STREAM_CANCEL",
]);

/** The protocols a connection can speak, all to the same port. */
export type Protocol = "grpc" | "connect" | "grpc-web";

/** TLS settings of Node's `tls.connect`, as far as services need their own. */
export type ClientTls = Pick<SecureClientSessionOptions, "ca" | "cert" | "key" | "servername">;

/** The address of a service, and the token for it. */
export interface ConnectionOptions {
  /** Where the service is, such as `https://platform.example.com`. With a token: https, or http on this machine. */
  readonly baseUrl: string;
  /** The source of tokens; without it calls are anonymous. */
  readonly token?: TokenSource;
  /** `grpc` unless set. */
  readonly protocol?: Protocol;
  /**
   * `2` unless set. `1.1` is for Connect and gRPC-Web: requests are then those of Node's own `http`, which go through a proxy
   * where `NODE_USE_ENV_PROXY` says so.
   */
  readonly httpVersion?: "1.1" | "2";
  /** The deadline of unary calls that set none, in milliseconds: 30,000 unless set; 0 is none. */
  readonly timeoutMs?: number;
  /**
   * Methods with effects that are tried again after UNAVAILABLE too. The first attempt may have had its
   * effect, so name only what is the same done twice, such as `GroupsService.method.updateGroup`.
   */
  readonly retryWrites?: readonly DescMethod[];
  /** The longest wait before the second attempt of a call, in milliseconds: 200 unless set. */
  readonly backoffMs?: number;
  /** Connect interceptors. They run for each attempt, and see its token. */
  readonly interceptors?: readonly Interceptor[];
  /** A private certificate authority, or a certificate of the client's own. */
  readonly tls?: ClientTls;
}

/** Clients that share one HTTP/2 connection, made when first needed and again when lost. */
export interface Connection {
  /** A typed client of a generated service. Cheap; make one wherever it is needed. */
  client<S extends DescService>(service: S): Client<S>;
  /**
   * Closes the connection; calls in flight fail with CANCELED, a later call connects again. An idle
   * connection keeps no process alive, so only tests and scripts that want to end at once need it.
   */
  close(): void;
}

/**
 * Prepares a connection to a service; nothing is sent before the first call.
 *
 * @throws TypeError when `baseUrl` is no http or https URL, or is cleartext to another machine while there is a token
 */
export function connectTo(options: ConnectionOptions): Connection {
  const { token, timeoutMs = TIMEOUT_MS, retryWrites = [], backoffMs = BACKOFF_MS } = options;
  const url = serviceUrl(options.baseUrl, "baseUrl");
  if (token !== undefined) assertMayCarryToken(url, "baseUrl");
  const sessions = new Sessions(url, { pingIntervalMs: PING_INTERVAL_MS, pingTimeoutMs: PING_TIMEOUT_MS }, options.tls);
  let closes = 0;
  // Last, so that the caller's interceptors see the same errors as the caller.
  const interceptors = [...(options.interceptors ?? []), reportLostConnections(() => closes)];
  const transport = withCallPolicy(createTransport(options, url, sessions, interceptors), {
    token,
    mayCarryToken: mayCarryToken(url),
    timeoutMs,
    retryWrites: new Set(retryWrites),
    pacing: { backoffMs, random: Math.random },
  });
  return {
    client: (service) => createClient(service, transport),
    close() {
      closes++;
      sessions.abort(new ConnectError("the connection was closed", Code.Canceled));
    },
  };
}

function createTransport(
  { protocol = "grpc", httpVersion = "2", tls }: ConnectionOptions,
  url: URL,
  sessionManager: Http2SessionManager,
  interceptors: Interceptor[],
): Transport {
  const options = {
    baseUrl: `${url.origin}${url.pathname}`,
    sessionManager,
    interceptors,
    readMaxBytes: READ_MAX_BYTES,
  };
  const choice = httpVersion === "1.1" ? { httpVersion, ...(tls && { nodeOptions: tls }) } : { httpVersion };
  switch (protocol) {
    case "grpc":
      if (httpVersion !== "2") throw new TypeError("gRPC needs HTTP/2");
      return createGrpcTransport(options);
    case "connect":
      return createConnectTransport({ ...options, ...choice });
    case "grpc-web":
      return createGrpcWebTransport({ ...options, ...choice });
    default:
      throw new TypeError(`protocol must be grpc, connect or grpc-web`);
  }
}

/**
 * The sessions of a connection. The error of a session comes after those of its streams, in another turn of the event loop.
 * The manager has stopped listening if the connection was closed or replaced in between, and an error of an emitter that
 * nobody listens to ends the process.
 */
class Sessions extends Http2SessionManager {
  override async request(...given: Parameters<Http2SessionManager["request"]>) {
    const stream = await super.request(...given);
    if (stream.session?.listeners("error").includes(ignore) === false) stream.session.on("error", ignore);
    return stream;
  }
}

// The calls of the session fail with the same error.
function ignore(): void {}

// An interceptor that turns the error of a broken connection into UNAVAILABLE, as gRPC does (statuscodes.md: "the
// connection dropped"). connect-node reports how the stream ended, mostly as CANCELED, which a caller takes for its own
// cancellation. A call that ends by `close()` stays CANCELED, so `closes` counts these.
function reportLostConnections(closes: () => number): Interceptor {
  return (next) => async (request) => {
    const before = closes();
    try {
      return await next(request);
    } catch (error) {
      if (request.signal.aborted || closes() !== before || !isLost(error)) throw error;
      throw new ConnectError("the connection to the service was lost", Code.Unavailable, undefined, undefined, error);
    }
  };
}

function isLost(error: unknown): boolean {
  if (!(error instanceof ConnectError)) return false;
  // An error of the service has the headers or trailers of its response.
  if (!error.metadata.keys().next().done) return false;
  return error.code === Code.Canceled || hasLostCause(error.cause);
}

function hasLostCause(cause: unknown): boolean {
  if (!(cause instanceof Error) || !("code" in cause) || typeof cause.code !== "string") return false;
  if (LOST.has(cause.code)) return true;
  return cause.code === "ERR_HTTP2_STREAM_ERROR" && cause.message.includes("REFUSED_STREAM");
}
