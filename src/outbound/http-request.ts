// One HTTP/1.1 request to a validated address. It resolves no names, follows no redirects, decompresses nothing, keeps
// no connection and uses no proxy.
import type { LookupAddress } from "node:dns";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import type { TcpNetConnectOpts } from "node:net";

/** How long to try one of several addresses before the next, in milliseconds. */
const ATTEMPT_MS = 1_000;

/** A request to an untrusted server. */
export interface OutboundRequest {
  readonly url: URL;
  /** The addresses of the host of `url`; no others are connected to. */
  readonly addresses: readonly LookupAddress[];
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

/** Sends the request and reads the whole response; rejects with an {@link OutboundError} or an error of the socket. */
export function sendRequest({
  url,
  addresses,
  method,
  headers,
  body,
  maxBytes,
  signal,
}: OutboundRequest): Promise<GuardedResponse> {
  const options: RequestOptions & TcpOptions = {
    protocol: url.protocol,
    hostname: hostOf(url),
    port: url.port,
    path: url.pathname + url.search,
    method,
    // Compressed responses are rejected below, because a small body can expand to any size.
    headers: { ...headers, host: url.host, "accept-encoding": "identity" },
    agent: false,
    lookup: (_hostname, { all }, done) => {
      const [first] = addresses;
      if (all) done(null, [...addresses]);
      else if (first) done(null, first.address, first.family);
      else done(new Error("no address"), "");
    },
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_MS,
    // An environment variable could disable it for the whole process.
    rejectUnauthorized: true,
    minVersion: "TLSv1.2",
    ALPNProtocols: ["http/1.1"],
    insecureHTTPParser: false,
    signal,
  };
  return new Promise((resolve, reject) => {
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
  });
}

/** The host of a URL without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
}

type TcpOptions = Pick<TcpNetConnectOpts, "autoSelectFamily" | "autoSelectFamilyAttemptTimeout"> & {
  readonly ALPNProtocols: string[];
};

async function readResponse(response: IncomingMessage, maxBytes: number): Promise<GuardedResponse> {
  const status = response.statusCode ?? 0;
  if (status >= 300 && status < 400) throw new OutboundError("a redirect was answered");
  if (status < 200 || status > 599) throw new OutboundError("a status that does not exist was answered");
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
