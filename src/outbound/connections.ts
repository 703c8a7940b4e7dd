// Connections to other servers: directly to a validated address, or through a tunnel of the operator's proxy, each over a
// metered socket; and those that are kept for further requests.
import type { LookupAddress } from "node:dns";
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type RequestOptions } from "node:http";
import { isIP, Socket, type TcpNetConnectOpts } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls, type SecureContext } from "node:tls";
import { type Allowance, MeteredSocket } from "./metered-socket.js";
import { OutboundError } from "./outbound-error.js";

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

/** What a connection is opened for. */
export interface ConnectionRequest {
  readonly url: URL;
  readonly findRoute: () => Promise<Route>;
  readonly allowance: Allowance;
  readonly signal: AbortSignal;
}

// An environment variable could disable the check of certificates for the whole process.
const TLS = {
  rejectUnauthorized: true,
  minVersion: "TLSv1.2",
  ALPNProtocols: ["http/1.1"],
} satisfies ConnectionOptions;

const meters = new WeakMap<Duplex, MeteredSocket>();

/** The metered socket below a connection. */
export function meterOf(connection: Duplex): MeteredSocket {
  const meter = meters.get(connection);
  if (meter === undefined) throw new TypeError("the connection was opened elsewhere");
  return meter;
}

/** Opens a connection, over TLS for https. Errors after that are those of the connection. */
export async function openConnection({ url, findRoute, allowance, signal }: ConnectionRequest): Promise<Duplex> {
  const route = await findRoute();
  const { proxy, authorities } = route;
  const raw = new Socket().setNoDelay(true).connect(proxy ? addressOf(proxy) : { ...addressOf(url), ...pin(route) });
  const meter = new MeteredSocket(raw, allowance);
  const tunnel =
    proxy && (await openTunnel(proxy, proxy.protocol === "https:" ? secure(meter, proxy) : meter, url, signal));
  const connection = url.protocol === "https:" ? secure(tunnel ?? meter, url, authorities) : meter;
  meters.set(connection, meter);
  connection.once("close", () => meter.destroy());
  return connection;
}

/** How long a connection waits for the next request, in milliseconds, and how long it is used at most. */
const IDLE_MS = 10_000;
const MAX_AGE_MS = 300_000;

const WANTED = Symbol("wanted");

/**
 * Connections to servers that are kept for further requests to the same host and port. The address of a host is checked when
 * they open, so they are used for five minutes only.
 */
export class KeptConnections extends HttpAgent {
  readonly #maxIdle: number;
  readonly #now: () => number;
  readonly #openedMs = new WeakMap<Duplex, number>();

  /**
   * @param maxIdle how many wait for a request at most
   * @param now in milliseconds; replaced in tests
   */
  constructor(maxIdle: number, now: () => number = () => performance.now()) {
    super({ keepAlive: true, timeout: IDLE_MS });
    this.#maxIdle = maxIdle;
    this.#now = now;
  }

  /** The options of a request that uses one of them, or opens one. */
  use(wanted: ConnectionRequest): RequestOptions {
    return { agent: this, [WANTED]: wanted } as RequestOptions;
  }

  override createConnection(
    options: RequestOptions & { readonly [WANTED]?: ConnectionRequest },
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    const wanted = options[WANTED];
    if (wanted === undefined) throw new TypeError("a kept connection needs a route");
    openConnection(wanted).then(
      (connection) => {
        this.#openedMs.set(connection, this.#now());
        callback?.(null, connection);
      },
      (error: Error) => callback?.(error, undefined as unknown as Duplex),
    );
  }

  override keepSocketAlive(connection: Duplex): boolean {
    const idle = Object.values(this.freeSockets).reduce((count, sockets = []) => count + sockets.length, 0);
    const ageMs = this.#now() - (this.#openedMs.get(connection) ?? Number.NEGATIVE_INFINITY);
    if (idle >= this.#maxIdle || ageMs + IDLE_MS >= MAX_AGE_MS) return false;
    super.keepSocketAlive(connection);
    meterOf(connection).setIdle(true);
    return true;
  }

  override reuseSocket(connection: Duplex, request: ClientRequest): void {
    meterOf(connection).setIdle(false);
    super.reuseSocket(connection, request);
  }
}

/** The host of a URL without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
}

/** The host and port of a URL. */
export function addressOf(url: URL) {
  return { host: hostOf(url), port: Number(url.port || (url.protocol === "https:" ? 443 : 80)) };
}

// The addresses that were validated, in place of another look at the DNS.
function pin({ addresses }: Route): Partial<TcpNetConnectOpts> {
  return {
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

// TLS is with the host itself, whose certificate is checked: a proxy passes on bytes that it cannot read. The name is empty
// for an address, which is then compared itself. Without it Node would take the name from the field `host`.
function secure(socket: Duplex, url: URL, secureContext?: SecureContext): Duplex {
  const host = hostOf(url);
  const servername = isIP(host) === 0 ? host : "";
  return connectTls({ ...TLS, socket, host, servername, ...(secureContext && { secureContext }) });
}

// RFC 9110, section 9.3.6.
function openTunnel(proxy: URL, connection: Duplex, url: URL, signal: AbortSignal): Promise<Duplex> {
  const authority = `${url.hostname}:${url.port || 443}`;
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      ...addressOf(proxy),
      method: "CONNECT",
      path: authority,
      headers: { host: authority },
      createConnection: () => connection,
      signal,
    });
    request.on("error", (error: NodeJS.ErrnoException) => {
      const reason = error instanceof OutboundError ? error.message : (error.code ?? "it failed");
      reject(new OutboundError(`the proxy cannot be used: ${reason}`));
    });
    request.on("response", (response) => {
      request.destroy();
      reject(noTunnel(response.statusCode));
    });
    request.on("connect", ({ statusCode = 0 }, socket, head) => {
      // Whoever uses the tunnel learns of its end by the error of their own socket.
      socket.on("error", () => {});
      // In TLS the client speaks first.
      if (statusCode >= 200 && statusCode < 300 && head.length === 0) resolve(socket);
      else {
        socket.destroy();
        reject(noTunnel(statusCode));
      }
    });
    request.end();
  });
}

function noTunnel(status = 0): OutboundError {
  return new OutboundError(`the proxy opened no tunnel: it answered with status ${status}`);
}
