// Another party's issuer for tests: real keys, a real listener.
import { generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo, Server as NetServer } from "node:net";

/** A key pair of an issuer and how it signs. */
export interface TestKey {
  readonly alg: string;
  readonly kid: string;
  readonly publicJwk: JsonWebKey & Record<string, unknown>;
  readonly privateKey: KeyObject;
}

const curves: Readonly<Record<string, string>> = { ES256: "P-256", ES384: "P-384", ES512: "P-521" };

/** Makes a key for a JOSE algorithm. */
export function testKey(alg: string, kid: string, bits = 2048): TestKey {
  const curve = curves[alg];
  const { publicKey, privateKey } = curve
    ? generateKeyPairSync("ec", { namedCurve: curve })
    : alg.startsWith("Ed")
      ? generateKeyPairSync("ed25519")
      : generateKeyPairSync("rsa", { modulusLength: bits });
  return { alg, kid, privateKey, publicJwk: { ...publicKey.export({ format: "jwk" }), kid, alg, use: "sig" } };
}

/** Signs bytes as a JOSE algorithm asks. */
export function signatureOf(input: string, alg: string, key: KeyObject): Buffer {
  const data = Buffer.from(input);
  if (alg.startsWith("Ed")) return sign(null, data, key);
  const hash = `sha${alg.slice(2)}`;
  if (alg.startsWith("ES")) return sign(hash, data, { key, dsaEncoding: "ieee-p1363" });
  return sign(hash, data, alg.startsWith("PS") ? { key, padding: 6, saltLength: Number(alg.slice(2)) / 8 } : { key });
}

/** Base64url of text, or of the JSON of anything else. */
export function part(value: unknown): string {
  return Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
}

/** The time of the tests, in epoch seconds. */
export const NOW_S = 1_800_000_000;

/** The longest life of tokens in the tests, in seconds: that of the setting's default. */
export const MAX_LIFE_S = 25 * 3600;

/** Claims of a good token at {@link NOW_S}. */
export function goodClaims(issuer = "https://issuer.test"): Record<string, unknown> {
  return { iss: issuer, sub: "repo:octo/app", aud: "https://api.test", iat: NOW_S - 10, exp: NOW_S + 600 };
}

/** A token signed by `key`; header and claims may be texts, to write what no JSON encoder would. */
export function signToken(key: TestKey, claims: unknown = goodClaims(), header: unknown = headerOf(key)): string {
  const input = `${part(header)}.${part(claims)}`;
  return `${input}.${signatureOf(input, key.alg, key.privateKey).toString("base64url")}`;
}

/** The usual header of tokens signed by `key`. */
export function headerOf({ alg, kid }: TestKey): Record<string, unknown> {
  return { alg, kid, typ: "JWT" };
}

/** A listener on 127.0.0.1 that counts who connects. */
export interface Listener {
  readonly port: number;
  /** As an http origin. */
  readonly origin: string;
  readonly connections: number;
  close(): void;
}

/** Starts a server on a free port. */
export async function listen(server: NetServer): Promise<Listener> {
  const sockets = new Set<{ destroy(): void }>();
  let connections = 0;
  server.on("connection", (socket) => {
    connections++;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    get connections() {
      return connections;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Starts an HTTP server on a free port. */
export function serve(handler: RequestListener): Promise<Listener> {
  return listen(createServer(handler));
}

/** An issuer whose responses a test changes. */
export interface ForeignIssuer {
  readonly issuer: string;
  keys: readonly TestKey[];
  /** Replaces the default response, by path. */
  readonly answers: Map<string, (res: ServerResponse, req: IncomingMessage) => void>;
  /** The requested paths, in order. */
  readonly requests: string[];
  close(): void;
}

/** Starts an issuer with `keys` under a path of its own. */
export async function startIssuer(keys: readonly TestKey[]): Promise<ForeignIssuer> {
  const answers: ForeignIssuer["answers"] = new Map();
  const requests: string[] = [];
  const server = await serve((req, res) => {
    const path = req.url ?? "";
    requests.push(path);
    const response = answers.get(path);
    if (response) response(res, req);
    else if (path === DISCOVERY) json(res, { issuer: made.issuer, jwks_uri: `${server.origin}${JWKS}` });
    else if (path === JWKS) json(res, { keys: made.keys.map(({ publicJwk }) => publicJwk) });
    else res.writeHead(404).end();
  });
  const made: ForeignIssuer = {
    issuer: `${server.origin}/tenant`,
    keys,
    answers,
    requests,
    close: () => server.close(),
  };
  return made;
}

/** Where {@link startIssuer} serves its metadata and its keys. */
export const DISCOVERY = "/tenant/.well-known/openid-configuration";
export const JWKS = "/keys";

/** Responses with JSON. */
export function json(res: ServerResponse, value: unknown, status = 200): void {
  res
    .writeHead(status, { "content-type": "application/json" })
    .end(typeof value === "string" ? value : JSON.stringify(value));
}
