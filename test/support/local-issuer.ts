// An issuer on this machine: discovery, keys, and tokens that say whatever a
// test wants. Counts who asks, so that a test can tell what caused a fetch.
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { GoodParts } from "../issuer/strangers/token-kit.js";

/** A running issuer. */
export interface LocalIssuer {
  /** Its URL, which is the `iss` of its tokens. */
  readonly issuer: string;
  /** Requests so far. */
  readonly requests: { discovery: number; keys: number };
  /** A token with these claims; `iss`, `iat` and `exp` are there unless given. Undefined takes a claim away. */
  token(claims: Readonly<Record<string, unknown>>, options?: TokenOptions): string;
  /** What {@link token} makes a token of. */
  goodParts(claims: Readonly<Record<string, unknown>>): GoodParts;
  /** Replaces the signing key; the one before is not published any more. */
  rotate(): void;
  stop(): Promise<void>;
}

/** What a token differs in from a good one. */
export interface TokenOptions {
  readonly header?: Readonly<Record<string, unknown>>;
  /** Signs in place of the issuer's key. */
  readonly key?: KeyObject;
}

/** Starts one on a free port of 127.0.0.1. */
export async function startLocalIssuer(clock: () => number = Date.now): Promise<LocalIssuer> {
  const requests = { discovery: 0, keys: 0 };
  let key = newKey(0);
  let count = 0;
  const server = createServer((req, res) => {
    res.setHeader("content-type", "application/json");
    if (req.url === "/.well-known/openid-configuration") {
      requests.discovery++;
      res.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` }));
    } else if (req.url === "/keys") {
      requests.keys++;
      res.end(JSON.stringify({ keys: [key.jwk] }));
    } else {
      res.statusCode = 404;
      res.end("{}");
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const goodParts: LocalIssuer["goodParts"] = (claims) => {
    const nowS = Math.floor(clock() / 1000);
    return {
      header: { alg: "ES256", kid: key.jwk.kid, typ: "JWT" },
      claims: { iss: issuer, iat: nowS, exp: nowS + 600, ...claims },
      key: key.privateKey,
    };
  };
  return {
    issuer,
    requests,
    goodParts,
    token(claims, options = {}) {
      const good = goodParts(claims);
      return signToken({ ...good.header, ...options.header }, good.claims, options.key ?? good.key);
    },
    rotate() {
      key = newKey(++count);
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A JWT with this header and these claims, signed with ES256. */
export function signToken(header: object, claims: object, key: KeyObject): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const input = `${part(header)}.${part(claims)}`;
  return `${input}.${sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

function newKey(n: number) {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwk = { ...publicKey.export({ format: "jwk" }), kid: `key-${n}`, alg: "ES256", use: "sig" };
  return { privateKey, jwk };
}
