import { type Inbound, MAX_CALL_MS } from "../rpc/call.js";
import { type HttpRequest, type HttpResponse, isHttp2 } from "./body.js";
import { isGone } from "./send.js";

/** Tells the address a request comes from; behind a proxy that is not the address of the socket. */
export type AddressOf = (req: HttpRequest) => string | undefined;

/** A REST request as the pipeline sees it. Made once per call; what it tells is worked out when it is asked. */
export class HttpInbound implements Inbound {
  readonly protocol = "rest";
  readonly timeoutMs: number | undefined;
  readonly #req: HttpRequest;
  readonly #res: HttpResponse;
  readonly #addressOf: AddressOf;

  constructor(req: HttpRequest, res: HttpResponse, timeoutMs: number | undefined, addressOf: AddressOf) {
    this.timeoutMs = timeoutMs;
    this.#req = req;
    this.#res = res;
    this.#addressOf = addressOf;
  }

  get method(): string {
    return this.#req.method ?? "";
  }

  get url(): string {
    return this.#req.url ?? "";
  }

  get remoteAddress(): string | undefined {
    return this.#addressOf(this.#req);
  }

  header(name: string): string | undefined {
    const value = this.#req.headers[name];
    return typeof value === "object" ? value.join(", ") : value;
  }

  headers(): Headers {
    const headers = new Headers();
    for (const [name, value] of Object.entries(this.#req.headers)) {
      if (value === undefined || name.startsWith(":") || HOP_BY_HOP.has(name)) continue;
      for (const one of typeof value === "string" ? [value] : value) headers.append(name, one);
    }
    return headers;
  }

  signal(): AbortSignal {
    const gone = new AbortController();
    const res = this.#res;
    if (isGone(res)) gone.abort();
    res.once("close", () => {
      if (!res.writableEnded) gone.abort();
    });
    return AbortSignal.any([gone.signal, AbortSignal.timeout(Math.min(this.timeoutMs ?? MAX_CALL_MS, MAX_CALL_MS))]);
  }
}

/** The address of the peer's socket. */
export const socketAddressOf: AddressOf = (req) =>
  isHttp2(req) ? req.stream.session?.socket?.remoteAddress : req.socket.remoteAddress;

// Of this connection, not of the request (RFC 9110, section 7.6.1).
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 0.001, n: 0.000001 };
const TIMEOUT = /^([0-9]{1,8})([HMSmun])$/;

/** The milliseconds a `grpc-timeout` header allows (gRPC over HTTP/2, "Timeout"); NaN if it is malformed. */
export function timeoutMsOf(header: string): number {
  const match = TIMEOUT.exec(header);
  return match === null ? Number.NaN : Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? Number.NaN);
}
