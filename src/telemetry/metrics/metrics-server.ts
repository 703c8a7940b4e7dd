// Serves metrics on a port of their own, so that they can be read while the public port rejects or drains.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Renderer } from "./renderer.js";
import type { TextFormat } from "./samples.js";

export interface MetricsAddress {
  readonly host: string;
  readonly port: number;
}

export interface MetricsServer {
  readonly address: MetricsAddress;
  /** Stops the server and cuts scrapes in progress. */
  close(): void;
}

/** The only path. */
const METRICS_PATH = "/metrics";

const PLAIN = "text/plain; charset=utf-8";

const LIMITS = { connections: 32, headerBytes: 8_192, headersMs: 5_000, requestMs: 10_000, idleMs: 60_000 };

/**
 * Serves `/metrics` over HTTP/1.1 without authentication, so the address decides who can read them.
 *
 * @throws Error of the system, such as EADDRINUSE, when the address cannot be used
 */
export function serveMetrics(renderer: Renderer, { host, port }: MetricsAddress): Promise<MetricsServer> {
  const server = createServer(
    {
      maxHeaderSize: LIMITS.headerBytes,
      headersTimeout: LIMITS.headersMs,
      requestTimeout: LIMITS.requestMs,
      keepAliveTimeout: LIMITS.idleMs,
      connectionsCheckingInterval: LIMITS.headersMs,
      requireHostHeader: false,
    },
    (req, res) => answer(renderer, req, res),
  );
  server.maxConnections = LIMITS.connections;
  server.timeout = LIMITS.idleMs;
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      // Running out of file descriptors is reported here and must not end the process.
      server.on("error", () => {});
      const bound = server.address() as AddressInfo;
      resolve({
        address: { host: bound.address, port: bound.port },
        close() {
          server.close();
          server.closeAllConnections();
        },
      });
    });
  });
}

function answer(renderer: Renderer, req: IncomingMessage, res: ServerResponse): void {
  // No scrape has a body, which would have to be read before the next request.
  if (req.headers["content-length"] !== undefined || req.headers["transfer-encoding"] !== undefined) {
    res.shouldKeepAlive = false;
  }
  const [path] = (req.url ?? "").split("?");
  if (path !== METRICS_PATH) send(res, 404, PLAIN, "only /metrics is served here\n");
  else if (req.method !== "GET" && req.method !== "HEAD") {
    res.setHeader("allow", "GET, HEAD");
    send(res, 405, PLAIN, "the method must be GET or HEAD\n");
  } else {
    renderer.render(selectFormat(req.headers.accept)).then(
      ({ contentType, text }) => send(res, 200, contentType, text),
      () => send(res, 500, PLAIN, "the metrics could not be rendered\n"),
    );
  }
}

// Prometheus accepts formats with weights. This server supports version 1.0.0 of OpenMetrics, which is also what a client
// gets that names no version.
function selectFormat(accept = ""): TextFormat {
  const ranges = accept.split(",").map((range) => range.split(";").map((part) => part.trim().toLowerCase()));
  const weightOf = (type: string) => {
    const weights = ranges
      .filter(([name, ...parameters]) => name === type && parameters.every(isSupported))
      .map(([, ...parameters]) => Number(parameters.find((one) => one.startsWith("q="))?.slice(2) ?? 1));
    return Math.max(-1, ...weights);
  };
  const open = weightOf("application/openmetrics-text");
  return open > 0 && open >= weightOf("text/plain") ? "openmetrics" : "prometheus";
}

// The versions of both formats that a client may name.
function isSupported(parameter: string): boolean {
  return !parameter.startsWith("version=") || /^version="?(1\.0\.0|0\.0\.[14])"?$/.test(parameter);
}

function send(res: ServerResponse, status: number, contentType: string, text: string): void {
  if (res.destroyed) return;
  res.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(text) });
  res.end(text);
}
