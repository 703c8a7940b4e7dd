// One request on a connection of its own, as a health check or a caller without retries makes it.
import { connect, type Socket } from "node:net";

/** What came of it: the status of a response, or how the connection ended without one. */
export type ProbeResult = number | "refused" | "closed" | "hangs";

export interface ProbeOptions {
  readonly path?: string;
  /** The address to call from. */
  readonly from?: string;
  /** After how many milliseconds it hangs. */
  readonly limitMs?: number;
}

/** Sends a GET on a new connection; resolves once there is a response, or none can come. */
export function probe(url: string, options: ProbeOptions = {}): Promise<ProbeResult> {
  const { path = "/healthz", from, limitMs = 30_000 } = options;
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket: Socket = connect({ host: hostname, port: Number(port), ...(from && { localAddress: from }) });
    const finish = (result: ProbeResult) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => finish("hangs"), limitMs);
    socket.on("connect", () => socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`));
    socket.on("data", (chunk: Buffer) => finish(Number(chunk.toString("latin1").slice(9, 12))));
    socket.on("error", (error: NodeJS.ErrnoException) => finish(error.code === "ECONNREFUSED" ? "refused" : "closed"));
    socket.on("close", () => finish("closed"));
  });
}
