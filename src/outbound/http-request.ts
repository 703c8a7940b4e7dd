// One HTTP/1.1 request, to a validated address or through a tunnel of the operator's proxy. It resolves no names, follows
// no redirects, decompresses nothing, keeps no connection unless it is told to, and reads no environment variable.
import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import type { Duplex } from "node:stream";
import { addressOf, type ConnectionRequest, type KeptConnections, meterOf, openConnection } from "./connections.js";
import type { MeteredSocket } from "./metered-socket.js";
import { ClientCertificateError, OutboundError } from "./outbound-error.js";
import { StatusReader } from "./status-line.js";

/** What is sent. */
export interface OutboundMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
}

/** A request to an untrusted server. */
export interface OutboundRequest extends ConnectionRequest {
  /** The connections to use again, for https alone; without them the request has one of its own. */
  readonly kept?: KeptConnections | undefined;
  readonly method: "GET" | "POST";
  readonly message: OutboundMessage;
  /** Makes the message anew, to be sent again where a kept connection was lost. */
  readonly remake: () => Promise<OutboundMessage>;
  /**
   * Whether only the status and the fields of the response count. Redirects are responses then, the body is dropped, and a
   * status of 2xx counts as soon as its line has arrived.
   */
  readonly dropsBody?: boolean | undefined;
}

/** A response, which is never a redirect. */
export interface GuardedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
}

/** A request that has its response. */
export interface AnsweredRequest {
  readonly response: GuardedResponse;
  /** Resolves when its connection is closed or free again, which a body that is dropped may delay. */
  readonly closed: Promise<void>;
}

/** How long the rest of a response may take that is dropped, in milliseconds, before its connection is closed. */
const DROP_MS = 1_000;

/** Sends the request; rejects with an {@link OutboundError} or an error of the socket. */
export async function sendRequest(outbound: OutboundRequest): Promise<AnsweredRequest> {
  const { kept, message, remake } = outbound;
  if (kept === undefined) return sendAlone(outbound, message);
  try {
    return await new Exchange(outbound, message, kept.use(outbound)).answered;
  } catch (error) {
    if (!(error instanceof StaleConnectionError)) throw error;
  }
  return sendAlone(outbound, await remake());
}

async function sendAlone(outbound: OutboundRequest, message: OutboundMessage): Promise<AnsweredRequest> {
  const connection = await openConnection(outbound);
  return new Exchange(outbound, message, { createConnection: () => connection }).answered;
}

/** A request on a connection, and its response. */
class Exchange {
  readonly answered: Promise<AnsweredRequest>;
  readonly #outbound: OutboundRequest;
  readonly #request: ClientRequest;
  readonly #isKept: boolean;
  readonly #closed: Promise<void>;
  readonly #status = new StatusReader();
  #meter: MeteredSocket | undefined;
  #isAnswered = false;
  #resolve: (answered: AnsweredRequest) => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor(outbound: OutboundRequest, { headers, body }: OutboundMessage, connection: RequestOptions) {
    const { url, method, signal } = outbound;
    this.#outbound = outbound;
    this.#isKept = connection.agent !== undefined;
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // TLS is a matter of the connection.
    const request = httpRequest({
      ...addressOf(url),
      path: url.pathname + url.search,
      method,
      // Compressed responses are rejected below, because a small body can expand to any size.
      headers: { ...headers, host: url.host, "accept-encoding": "identity" },
      ...connection,
      insecureHTTPParser: false,
      signal,
    });
    this.#request = request;
    this.#closed = new Promise((resolve) => request.once("close", resolve));
    request.on("socket", (socket) => this.#watch(socket));
    request.on("information", () => this.#meter?.countPiece());
    request.on("response", (response) => this.#read(response));
    request.on("upgrade", (_response, socket) => {
      socket.destroy();
      this.#reject(new OutboundError("another protocol was offered"));
    });
    request.on("error", (error) => this.#fail(error));
    request.end(body);
  }

  #watch(connection: Duplex): void {
    this.#meter = meterOf(connection);
    this.#meter.begin(this.#outbound.allowance);
    // Before the parser, which ends the connection where it cannot read on.
    const read = (chunk: Buffer) => {
      const status = this.#status.read(chunk);
      if (status === undefined) return;
      connection.off("data", read);
      if (this.#outbound.dropsBody && status >= 200 && status < 300) this.#accept({ status, headers: new Headers() });
    };
    connection.prependListener("data", read);
    this.#request.once("close", () => connection.off("data", read));
  }

  #read(response: IncomingMessage): void {
    const { dropsBody, allowance } = this.#outbound;
    const countPiece = () => this.#meter?.countPiece();
    const close = () => {
      if (!this.#isKept || !response.complete) this.#request.destroy();
    };
    response.on("close", close);
    if (dropsBody) {
      response.on("error", () => {}).on("data", countPiece);
      this.#accept({ status: response.statusCode ?? 0, headers: readHeaders(response) });
    } else {
      readResponse(response, allowance.maxBytes, countPiece).then(
        (read) => this.#accept(read),
        (error: Error) => {
          this.#fail(error);
          this.#request.destroy();
        },
      );
    }
  }

  #accept({
    status,
    headers,
    bytes = new Uint8Array(),
  }: Omit<GuardedResponse, "bytes"> & Partial<GuardedResponse>): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    const timer = setTimeout(() => this.#request.destroy(), DROP_MS);
    this.#request.once("close", () => clearTimeout(timer));
    this.#resolve({ response: { status, headers, bytes }, closed: this.#closed });
  }

  #fail(error: NodeJS.ErrnoException): void {
    if (this.#isAnswered) return;
    const { status, hasRead } = this.#status;
    const isLost = error.code === "ECONNRESET" || error.code === "EPIPE";
    if (this.#outbound.dropsBody && status !== undefined) this.#accept({ status, headers: new Headers() });
    else if (this.#request.reusedSocket && !hasRead && isLost) this.#reject(new StaleConnectionError());
    else if (isForClientCertificate(error, this.#meter)) this.#reject(new ClientCertificateError());
    else this.#reject(error);
  }
}

/** The server has closed a connection that waited for the next request. */
class StaleConnectionError extends Error {}

/** Alerts of TLS about a certificate (RFC 8446, section 6.2), of which the server has only ours to judge. */
const CERTIFICATE_ALERTS = new Set([41, 42, 43, 44, 45, 46, 48, 116]);
const HANDSHAKE_FAILURE = 40;
/** An alert without anything else, in bytes. */
const ALERT_BYTES = 7;

// Until TLS 1.2 a missing certificate is a failure of the handshake, after the server has sent its own.
function isForClientCertificate({ message }: Error, meter: MeteredSocket | undefined): boolean {
  const alert = Number(/ alert number (\d+)/.exec(message)?.[1]);
  const isLateFailure = alert === HANDSHAKE_FAILURE && (meter?.receivedBytes ?? 0) > ALERT_BYTES;
  return CERTIFICATE_ALERTS.has(alert) || isLateFailure;
}

async function readResponse(
  response: IncomingMessage,
  maxBytes: number,
  countPiece: () => void,
): Promise<GuardedResponse> {
  const status = response.statusCode ?? 0;
  if (status >= 300 && status < 400) throw new OutboundError("the response is a redirect");
  if (status < 200 || status > 599) throw new OutboundError("the response has a status that does not exist");
  const encoding = response.headers["content-encoding"] ?? "identity";
  if (encoding.toLowerCase() !== "identity") throw new OutboundError("the body is compressed");
  return { status, headers: readHeaders(response), bytes: await readBody(response, maxBytes, countPiece) };
}

// Pieces are copied together as they come, since each is an object of hundreds of bytes.
function readBody(response: IncomingMessage, maxBytes: number, countPiece: () => void): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    let body = Buffer.alloc(4096);
    let length = 0;
    response.on("error", reject);
    response.on("end", () => resolve(body.subarray(0, length)));
    response.on("data", (chunk: Buffer) => {
      countPiece();
      if (length + chunk.length > maxBytes) {
        // The connection ends when the parser has returned.
        reject(new OutboundError(`the body is longer than ${maxBytes} bytes`));
        return;
      }
      if (length + chunk.length > body.length)
        body = Buffer.concat([body], Math.max(body.length * 2, length + chunk.length));
      chunk.copy(body, length);
      length += chunk.length;
    });
  });
}

function readHeaders({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    for (const value of values) headers.append(name, value);
  }
  return headers;
}
