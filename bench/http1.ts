// What load generators of our own need of HTTP/1.1: whole requests, and connections with one call at a time.
import { connect, type Socket } from "node:net";

/** A response; the status is 0 if there was none. */
export interface Http1Response {
  readonly status: number;
  readonly body: string;
}

/** A connection that sends a request and waits for its response, again and again. */
export class Http1Connection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #onResponse: (response: Http1Response) => void = () => {};

  constructor(port: number, localAddress = "127.0.0.1") {
    const onLost = () => this.#onResponse({ status: 0, body: "" });
    this.#socket = connect({ port, host: "127.0.0.1", localAddress, noDelay: true });
    this.#socket.on("data", (chunk) => this.#add(chunk));
    this.#socket.on("error", onLost);
    this.#socket.on("close", onLost);
  }

  call(request: Buffer): Promise<Http1Response> {
    return new Promise((resolve) => {
      this.#onResponse = resolve;
      if (this.#socket.destroyed) resolve({ status: 0, body: "" });
      else this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #add(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = this.#received.toString("latin1", 0, headEnd);
    const end = headEnd + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (this.#received.length < end) return;
    const body = this.#received.toString("utf8", headEnd + 4, end);
    this.#received = Buffer.alloc(0);
    this.#onResponse({ status: Number(head.slice(9, 12)), body });
  }
}

/** Builds a whole request; a body is JSON. */
export function buildRequest(url: string, token: string, method: string, path: string, body = ""): Buffer {
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAuthorization: Bearer ${token}\r\n` +
      (body && `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`) +
      `\r\n${body}`,
  );
}

/**
 * Sends each request once, over so many connections, until a response is not 200.
 *
 * @returns the bodies of the responses
 * @throws Error with the first response that is not 200
 */
export async function sendAll(port: number, requests: readonly Buffer[], connections: number): Promise<string[]> {
  const bodies: string[] = [];
  const waiting = requests.values();
  let failure: Error | undefined;
  const run = async () => {
    const connection = new Http1Connection(port);
    for (const request of waiting) {
      const { status, body } = await connection.call(request);
      if (status === 200) bodies.push(body);
      else failure ??= new Error(`${request.toString().split(" HTTP")[0]}: ${status}: ${body}`);
      if (failure !== undefined) break;
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: connections }, run));
  if (failure !== undefined) throw failure;
  return bodies;
}
