// A server in place of GitHub or GitLab, for the requests of the command line.
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

/** A response that a test sets. */
export interface FakeResponse {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly text?: string;
  /** Whether the connection is closed instead. */
  readonly hangUp?: boolean;
}

/** A running server. */
export interface FakePlatform {
  readonly url: string;
  /** What it has been asked since the last reset. */
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  /** The repositories and projects that it shows, by what follows `/repos/` or `/projects/`; 404 for all others. */
  readonly repositories: Map<string, object>;
  /** The response to every request; undefined for those of the repositories. */
  respond: FakeResponse | undefined;
  reset(): void;
  stop(): Promise<void>;
}

/** Starts one on a free port. */
export async function startFakePlatform(): Promise<FakePlatform> {
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    platform.requests.push({ path, headers: request.headers });
    const found = platform.repositories.get(/\/(?:repos|projects)\/(.+)$/.exec(path)?.[1] ?? "");
    const { status, headers, json, text, hangUp } =
      platform.respond ?? (found === undefined ? { status: 404 } : { json: found });
    if (hangUp) request.socket.destroy();
    else response.writeHead(status ?? 200, headers).end(text ?? JSON.stringify(json ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const platform: FakePlatform = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    repositories: new Map(),
    respond: undefined,
    reset() {
      platform.requests.length = 0;
      platform.repositories.clear();
      platform.respond = undefined;
    },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
  return platform;
}
