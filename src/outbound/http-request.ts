// One HTTP/1.1 request, to a validated address or through a tunnel of the operator's proxy. It resolves no names, follows
// no redirects, decompresses nothing, keeps no connection unless it is told to, and reads no environment variable.
import type { LookupAddress } from "node:dns";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from "node:https";
import { isIP, type Socket, type TcpNetConnectOpts } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls, type SecureContext } from "node:tls";

/** How long to try one of several addresses before the next, in milliseconds. */
const ATTEMPT_MS = 1_000;

/** How to reach the host of a URL. */
export interface Route {
  /** The addresses of the host, of which one is connected to. */
  readonly addresses: readonly LookupAddress[];
  /** The proxy that connects to a host by its name instead, for https alone. */
  readonly proxy?: URL | undefined;
  /**
   * The authorities that may have signed the certificate of the host; those of Node by default. To parse them takes as long
   * as many requests, so it is one object for all of these.
   */
  readonly authorities?: SecureContext | undefined;
}

/** A request to an untrusted server. */
export interface OutboundRequest {
  readonly url: URL;
  /** Is called for each new connection. */
  readonly findRoute: () => Promise<Route>;
  /** The connections to use again, for https alone; without them the request has one of its own. */
  readonly kept?: KeptConnections | undefined;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  /** The longest accepted body, in bytes. */
  readonly maxBytes: number;
  /** Whether only the status and the fields of the response count. Redirects are responses then, and the body is dropped. */
  readonly dropsBody?: boolean | undefined;
  readonly signal: AbortSignal;
}

/** A response, which is never a redirect. */
export interface GuardedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
}

// An environment variable could disable the check of certificates for the whole process.
const TLS = {
  rejectUnauthorized: true,
  minVersion: "TLSv1.2",
  ALPNProtocols: ["http/1.1"],
} satisfies ConnectionOptions;

/** Sends the request and reads the whole response; rejects with an {@link OutboundError} or an error of the socket. */
export async function sendRequest(outbound: OutboundRequest): Promise<GuardedResponse> {
  const { url, findRoute, kept, signal } = outbound;
  if (kept !== undefined) {
    const connection = { agent: kept, [ROUTE]: { url, findRoute, signal } satisfies WantedRoute };
    const sent = await send(outbound, connection, true).catch((error: unknown) => error);
    if (!(sent instanceof StaleConnectionError)) {
      if (sent instanceof Error) throw sent;
      return sent as GuardedResponse;
    }
  }
  const route = await findRoute();
  const tunnel = route.proxy && (await openTunnel(route.proxy, url, signal));
  const options = tunnel
    ? { createConnection: () => secure(tunnel, url) }
    : { ...connectTo(route), agent: false as const };
  return send(outbound, options, false).finally(() => tunnel?.destroy());
}

function send(
  { url, method, headers, body, maxBytes, dropsBody = false, signal }: OutboundRequest,
  connection: RequestOptions,
  isKept: boolean,
): Promise<GuardedResponse> {
  const options: RequestOptions = {
    ...TLS,
    protocol: url.protocol,
    hostname: hostOf(url),
    port: url.port,
    path: url.pathname + url.search,
    method,
    // Compressed responses are rejected below, because a small body can expand to any size.
    headers: { ...headers, host: url.host, "accept-encoding": "identity" },
    ...connection,
    insecureHTTPParser: false,
    signal,
  };
  return new Promise<GuardedResponse>((resolve, reject) => {
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(options);
    request.on("error", (error: NodeJS.ErrnoException) => {
      // The server has closed a connection that waited for the next request.
      const isStale = isKept && request.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
      reject(isStale ? new StaleConnectionError() : error);
    });
    request.on("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new OutboundError("another protocol was offered"));
    });
    request.on("response", (response) => {
      const read = dropsBody ? dropBody(response, maxBytes) : readResponse(response, maxBytes);
      read.then(resolve, reject).finally(() => {
        if (!isKept || !response.complete) request.destroy();
      });
    });
    request.end(body);
  });
}

class StaleConnectionError extends Error {}

const ROUTE = Symbol("route");

interface WantedRoute {
  readonly url: URL;
  readonly findRoute: () => Promise<Route>;
  readonly signal: AbortSignal;
}

/** How long a connection waits for the next request, in milliseconds. */
const IDLE_MS = 10_000;

/** Connections to servers that are kept for further requests to the same origin, whose address is checked when they open. */
export class KeptConnections extends HttpsAgent {
  readonly #maxIdle: number;

  /** @param maxIdle how many wait for a request at most */
  constructor(maxIdle: number) {
    super({ keepAlive: true, timeout: IDLE_MS });
    this.#maxIdle = maxIdle;
  }

  override createConnection(
    options: RequestOptions & { readonly [ROUTE]?: WantedRoute },
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    const wanted = options[ROUTE];
    if (wanted === undefined) throw new TypeError("a kept connection needs a route");
    const { url, findRoute, signal } = wanted;
    const open = async (): Promise<Duplex> => {
      const route = await findRoute();
      if (route.proxy) return secure(await openTunnel(route.proxy, url, signal), url);
      const socket = super.createConnection({ ...options, ...connectTo(route) });
      if (!socket) throw new TypeError("no connection was opened");
      return socket;
    };
    open().then(
      (socket) => callback?.(null, socket),
      (error: Error) => callback?.(error, undefined as unknown as Duplex),
    );
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const idle = Object.values(this.freeSockets).reduce((count, sockets = []) => count + sockets.length, 0);
    if (idle >= this.#maxIdle) return false;
    super.keepSocketAlive(socket);
    return true;
  }
}

function connectTo({ addresses, authorities }: Route): RequestOptions & TcpOptions {
  return {
    ...(authorities && { secureContext: authorities }),
    lookup: (_hostname, { all }, done) => {
      const [first] = addresses;
      if (all) done(null, [...addresses]);
      else if (first) done(null, first.address, first.family);
      else done(new Error("no address"), "");
    },
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_MS,
  };
}

// TLS is with the host itself, whose certificate is checked: the proxy passes on bytes that it cannot read.
function secure(tunnel: Socket, url: URL): Socket {
  return connectTls({ ...TLS, socket: tunnel, host: hostOf(url), servername: serverNameOf(url) });
}

// The name whose certificate is checked, empty for an address, which is then compared itself. Without it Node would take
// the name from the field `host`.
function serverNameOf(url: URL): string {
  return isIP(hostOf(url)) === 0 ? url.hostname : "";
}

// RFC 9110, section 9.3.6.
function openTunnel(proxy: URL, url: URL, signal: AbortSignal): Promise<Socket> {
  const authority = `${url.hostname}:${url.port || 443}`;
  return new Promise((resolve, reject) => {
    const request = (proxy.protocol === "https:" ? httpsRequest : httpRequest)({
      ...TLS,
      protocol: proxy.protocol,
      hostname: hostOf(proxy),
      port: proxy.port,
      servername: serverNameOf(proxy),
      method: "CONNECT",
      path: authority,
      headers: { host: authority },
      agent: false,
      signal,
    });
    request.on("error", ({ code = "it failed" }: NodeJS.ErrnoException) =>
      reject(new OutboundError(`the proxy cannot be used: ${code}`)),
    );
    request.on("connect", ({ statusCode = 0 }, socket, head) => {
      // Whoever uses the tunnel learns of its end by the error of their own socket.
      socket.on("error", () => {});
      // In TLS the client speaks first.
      if (statusCode >= 200 && statusCode < 300 && head.length === 0) resolve(socket);
      else {
        socket.destroy();
        reject(new OutboundError(`the proxy opened no tunnel: it answered with status ${statusCode}`));
      }
    });
    request.end();
  });
}

/** The host of a URL without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
}

type TcpOptions = Pick<TcpNetConnectOpts, "autoSelectFamily" | "autoSelectFamilyAttemptTimeout">;

async function readResponse(response: IncomingMessage, maxBytes: number): Promise<GuardedResponse> {
  const status = response.statusCode ?? 0;
  if (status >= 300 && status < 400) throw new OutboundError("the response is a redirect");
  if (status < 200 || status > 599) throw new OutboundError("the response has a status that does not exist");
  const encoding = response.headers["content-encoding"] ?? "identity";
  if (encoding.toLowerCase() !== "identity") throw new OutboundError("the body is compressed");
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw new OutboundError(`the body is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return { status, headers: readHeaders(response), bytes: Buffer.concat(chunks, length) };
}

// What follows the fields changes nothing any more, also where it does not end.
async function dropBody(response: IncomingMessage, maxBytes: number): Promise<GuardedResponse> {
  let length = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) break;
    }
  } catch {}
  return { status: response.statusCode ?? 0, headers: readHeaders(response), bytes: Buffer.alloc(0) };
}

function readHeaders({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    for (const value of values) headers.append(name, value);
  }
  return headers;
}

/** Why a request failed, for the operator's log; never shown to callers. */
export class OutboundError extends Error {
  override readonly name = "OutboundError";
}
