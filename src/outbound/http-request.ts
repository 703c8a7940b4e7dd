// One HTTP/1.1 request, to a validated address or through a tunnel of the operator's proxy. It resolves no names, follows
// no redirects, decompresses nothing, keeps no connection and reads no environment variable.
import type { LookupAddress } from "node:dns";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { isIP, type Socket, type TcpNetConnectOpts } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";

/** How long to try one of several addresses before the next, in milliseconds. */
const ATTEMPT_MS = 1_000;

/** A request to an untrusted server. */
export interface OutboundRequest {
  readonly url: URL;
  /**
   * The addresses of the host of `url`, of which one is connected to; or the proxy that connects to a host by its name,
   * for https alone.
   */
  readonly route: readonly LookupAddress[] | URL;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  /** The longest accepted body, in bytes. */
  readonly maxBytes: number;
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
  const { url, route, method, headers, body, maxBytes, signal } = outbound;
  const tunnel = route instanceof URL ? await openTunnel(route, url, signal) : undefined;
  const options: RequestOptions = {
    protocol: url.protocol,
    hostname: hostOf(url),
    port: url.port,
    path: url.pathname + url.search,
    method,
    // Compressed responses are rejected below, because a small body can expand to any size.
    headers: { ...headers, host: url.host, "accept-encoding": "identity" },
    ...(tunnel ? { createConnection: () => secure(tunnel, url) } : connectTo(route as readonly LookupAddress[])),
    insecureHTTPParser: false,
    signal,
  };
  return new Promise<GuardedResponse>((resolve, reject) => {
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(options);
    request.on("error", reject);
    request.on("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new OutboundError("another protocol was offered"));
    });
    request.on("response", (response) => {
      readResponse(response, maxBytes)
        .then(resolve, reject)
        .finally(() => request.destroy());
    });
    request.end(body);
  }).finally(() => tunnel?.destroy());
}

function connectTo(addresses: readonly LookupAddress[]): RequestOptions & TcpOptions {
  return {
    ...TLS,
    agent: false,
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

type TcpOptions = Pick<TcpNetConnectOpts, "autoSelectFamily" | "autoSelectFamilyAttemptTimeout"> &
  Pick<ConnectionOptions, "ALPNProtocols">;

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
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(response.headersDistinct)) {
    for (const value of values) headers.append(name, value);
  }
  return { status, headers, bytes: Buffer.concat(chunks, length) };
}

/** Why a request failed, for the operator's log; never shown to callers. */
export class OutboundError extends Error {
  override readonly name = "OutboundError";
}
