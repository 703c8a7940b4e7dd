import { Agent, request as httpRequest } from "node:http";
import type { FuzzRequest } from "./fuzz-request.js";
import type { FuzzResponse } from "./fuzz-response.js";

/** Sends requests over connections that are kept. */
export interface Sender {
  /** Rejects when there is no response, twice. */
  send(request: FuzzRequest): Promise<FuzzResponse>;
  /** How many requests had to be sent again because there was no response in time. */
  slow(): number;
  close(): void;
}

// How many times as long the second attempt may take.
const PATIENCE = 5;

/** Creates a sender. @param timeoutMs how long a response may take, in milliseconds */
export function createSender(url: string, connections: number, timeoutMs: number): Sender {
  const { hostname, port } = new URL(url);
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  let slow = 0;

  function once(
    { method, path, headers, body }: FuzzRequest,
    withinMs: number,
  ): Promise<FuzzResponse | "slow" | "closed"> {
    return new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
      const sent = httpRequest({ agent, hostname, port, method, path, headers: { ...length, ...headers } }, (res) => {
        const chunks: Buffer[] = [];
        res.on("data", (chunk: Buffer) => chunks.push(chunk));
        res.on("end", () => {
          clearTimeout(timer);
          resolve({ status: res.statusCode ?? 0, headers: res.headers, bytes: Buffer.concat(chunks) });
        });
        res.on("error", fail);
      });
      const timer = setTimeout(() => {
        resolve("slow");
        sent.destroy();
      }, withinMs);
      const fail = (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        // A kept connection may be closed at the very moment it is used again (node:http, "reusedSocket").
        if (error.code === "ECONNRESET" && sent.reusedSocket) resolve("closed");
        else reject(error);
      };
      sent.on("error", fail);
      sent.end(body);
    });
  }

  return {
    async send(request) {
      let response = await once(request, timeoutMs);
      if (response === "slow") slow++;
      // On a machine that does many things at once a response may be late; a call that hangs hangs again.
      if (typeof response === "string") response = await once(request, PATIENCE * timeoutMs);
      if (typeof response === "string")
        throw new Error(`${response}: no answer, not even within ${PATIENCE * timeoutMs} ms`);
      return response;
    },
    slow: () => slow,
    close: () => agent.destroy(),
  };
}
