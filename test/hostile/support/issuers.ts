// Many issuers on one origin, each below a path of its own, all with the keys of
// one: honest ones of workloads, or those of an attacker.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type LocalIssuer, startLocalIssuer } from "../../support/local-issuer.js";

/** Running issuers. */
export interface Issuers {
  readonly origin: string;
  /** A token of the issuer of this path, for the subject `ci`. */
  token(path: string, audience: string): string;
  stop(): void;
}

/** Starts them on a port of 127.0.0.1. @param port any free one unless given */
export async function startIssuers(port = 0): Promise<Issuers> {
  const keys: LocalIssuer = await startLocalIssuer();
  const jwks = await (await fetch(`${keys.issuer}/keys`)).text();
  let origin = "";
  let count = 0;
  const server = await listen(port, (path, res) => {
    res.setHeader("content-type", "application/json");
    const [, own] = /^(.*)\/\.well-known\/openid-configuration$/.exec(path) ?? [];
    if (own === undefined) res.end(jwks);
    else res.end(JSON.stringify({ issuer: origin + own, jwks_uri: `${origin}/keys` }));
  });
  origin = server.origin;
  return {
    origin,
    token: (path, audience) => keys.token({ iss: origin + path, sub: "ci", aud: audience, jti: String(++count) }),
    stop() {
      server.stop();
      void keys.stop();
    },
  };
}

/** Serves HTTP on a port of 127.0.0.1. */
export function listen(
  port: number,
  response: (path: string, res: ServerResponse) => void,
): Promise<{ readonly origin: string; stop(): void }> {
  const server = createServer((req, res) => response(req.url ?? "", res));
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () =>
      resolve({
        origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        stop() {
          server.closeAllConnections();
          server.close();
        },
      }),
    );
  });
}
