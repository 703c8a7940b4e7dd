// One HTTP/1.1 exchange with an address that was checked before: nothing is
// looked up again, followed, decompressed, kept open or sent by a proxy.
import type { LookupAddress } from "node:dns";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import type { TcpNetConnectOpts } from "node:net";

/** How long one of several addresses of a host may take to answer, in milliseconds, before the next is tried. */
const ATTEMPT_MS = 1_000;

/** A request to make. */
export interface Exchange {
  readonly url: URL;
  /** Where the host of `url` is; none but these are connected to. */
  readonly addresses: readonly LookupAddress[];
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  /** The longest body accepted, in bytes. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** What came back: never a redirect. */
export interface GuardedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
}

/** Makes the request and reads the response to its end; rejects with a {@link Refusal} or an error of the socket. */
export function exchange({
  url,
  addresses,
  method,
  headers,
  body,
  maxBytes,
  signal,
}: Exchange): Promise<GuardedResponse> {
  const options: RequestOptions & TcpOptions = {
    protocol: url.protocol,
    hostname: hostOf(url),
    port: url.port,
    path: url.pathname + url.search,
    method,
    // What would come compressed is refused below, since a small body can unpack to any size.
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
    // The environment can turn this off for the whole process; not here.
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
      reject(new Refusal("another protocol was offered"));
    });
    request.on("response", (response) => {
      read(response, maxBytes)
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

async function read(response: IncomingMessage, maxBytes: number): Promise<GuardedResponse> {
  const status = response.statusCode ?? 0;
  if (status >= 300 && status < 400) throw new Refusal("a redirect was answered");
  if (status < 200 || status > 599) throw new Refusal("a status that does not exist was answered");
  const encoding = response.headers["content-encoding"] ?? "identity";
  if (encoding.toLowerCase() !== "identity") throw new Refusal("the body is compressed");
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw new Refusal(`the body is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(response.headersDistinct)) {
    for (const value of values) headers.append(name, value);
  }
  return { status, headers, bytes: Buffer.concat(chunks, length) };
}

/** Why something was not fetched, in words for the operator's log; never shown to a caller. */
export class Refusal extends Error {}
