// The part of the service that logins speak to, over real HTTP: it holds the
// browser to PKCE, refresh tokens to one use, and counts.
import { createHash, randomUUID, webcrypto } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

type Answer = readonly [status: number, body: Readonly<Record<string, unknown>> | undefined, location?: string];
type Handler = (query: URLSearchParams, bearer: string, form: URLSearchParams) => Answer | Promise<Answer>;

/** One request as it came. */
export interface SeenRequest {
  readonly route: string;
  readonly query: URLSearchParams;
  readonly bearer: string;
}

/** A running service, and what it does next. */
export interface LoginService {
  readonly url: string;
  readonly requests: SeenRequest[];
  /** How long tokens live from now on, in seconds. */
  lifeS: number;
  /** Tokens that are good no more, whatever they say. */
  readonly refused: Set<string>;
  /** How long the renewal of a login takes, in milliseconds. */
  renewalMs: number;
  /** The names of its login providers. */
  connections: string[] | undefined;
  /** Answers instead of the service. */
  fault: Answer | undefined;
  /** How headless logins end, after so many questions. */
  headless: { readonly outcome: string; notYet: number };
  /** A login as if somebody had made it. */
  newLogin(lifeS: number): { token: string; refreshToken: string };
  count(route: string): number;
  stop(): Promise<void>;
}

const unauthenticated: Answer = [401, { code: 16, message: "Unauthenticated: authorization: no", details: [] }];

/** Starts one, until the test ends. */
export async function startLoginService(test: Pick<TestContext, "after">): Promise<LoginService> {
  const codes = new Map<string, URLSearchParams>();
  const families = new Map<string, { newest: string; revoked: boolean }>();
  const familyOf = new Map<string, string>();

  const rotate = (family: string) => {
    const refreshToken = Buffer.from(JSON.stringify({ exp: nowS() + 3600, sec: randomUUID() })).toString("base64");
    familyOf.set(refreshToken, family);
    families.set(family, { newest: refreshToken, revoked: false });
    return refreshToken;
  };
  const tokens = (lifeS = service.lifeS, sub = "person") => ({
    token: jwt({ iss: service.url, sub, iat: nowS(), exp: nowS() + lifeS, jti: randomUUID() }),
    expiry: new Date((nowS() + lifeS) * 1000).toISOString(),
  });

  const handlers: Record<string, Handler> = {
    "GET /.well-known/openid-configuration": () => [
      200,
      { issuer: service.url, connections_supported: service.connections },
    ],
    "GET /oauth": (query) => {
      const to = new URL(query.get("redirect_uri") ?? "");
      const code = randomUUID();
      codes.set(code, query);
      to.searchParams.set("state", query.get("state") ?? "");
      to.searchParams.set("code", code);
      return [302, undefined, to.href];
    },
    "POST /oauth/token": (_, __, form) => {
      const authorization = codes.get(form.get("code") ?? "");
      codes.delete(form.get("code") ?? "");
      const challenge = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url");
      const isRight =
        form.get("grant_type") === "authorization_code" &&
        authorization?.get("code_challenge") === challenge &&
        authorization.get("code_challenge_method") === "S256" &&
        authorization.get("client_id") === form.get("client_id") &&
        authorization.get("redirect_uri") === form.get("redirect_uri");
      if (!isRight) return [400, { error: "invalid_grant", error_description: `not good: ${form.get("code")}` }];
      return [200, { access_token: tokens().token, token_type: "Bearer", refresh_token: rotate(randomUUID()) }];
    },
    "POST /sts/exchange_refresh_token": async (query, bearer) => {
      const name = familyOf.get(bearer) ?? "";
      const family = families.get(name);
      if (family === undefined || family.revoked || !query.has("aud")) return unauthenticated;
      if (family.newest !== bearer) {
        family.revoked = true;
        return unauthenticated;
      }
      const refreshToken = { token: rotate(name) };
      // What was asked is done; the response takes its time.
      await sleep(service.renewalMs);
      return [200, { token: tokens(), refreshToken }];
    },
    "POST /oauth/revoke": (_, __, form) => {
      families.delete(familyOf.get(form.get("token") ?? "") ?? "");
      return [200, {}];
    },
    "GET /sts/exchange": (query, bearer) => {
      if (bearer === "" || service.refused.has(bearer)) return unauthenticated;
      return [200, tokens(undefined, query.get("identity") ?? "person")];
    },
    "GET /sts/headless_sessions": async (query) => {
      const { headless } = service;
      if (headless.notYet-- > 0) return [404, { code: 5, message: "Not found: headless session", details: [] }];
      return [200, await sealOutcome(query.get("code") ?? "", headless.outcome)];
    },
    "GET /auth/v1/ok": (_, bearer) => {
      if (service.refused.has(bearer)) return unauthenticated;
      const { sub, iss, exp } = JSON.parse(Buffer.from(bearer.split(".")[1] ?? "", "base64url").toString());
      const profile = { name: "Ada \u001b[31mLovelace" };
      return [200, { subject: sub, issuer: iss, expiry: new Date(exp * 1000).toISOString(), profile }];
    },
  };
  const server = createServer(async (request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? "", "http://service");
    const route = `${request.method} ${pathname}`;
    const bearer = request.headers.authorization?.slice("Bearer ".length) ?? "";
    service.requests.push({ route, query, bearer });
    const form = new URLSearchParams(await bodyOf(request));
    const [status, body, location] = service.fault ?? (await handlers[route]?.(query, bearer, form)) ?? [500, {}];
    response.writeHead(status, { "content-type": "application/json", ...(location && { location }) });
    response.end(body && JSON.stringify(body));
  });
  const service: LoginService = {
    url: "",
    requests: [],
    lifeS: 3600,
    refused: new Set(),
    renewalMs: 0,
    connections: ["corp"],
    fault: undefined,
    headless: { outcome: "", notYet: 0 },
    newLogin: (lifeS) => ({ token: tokens(lifeS).token, refreshToken: rotate(randomUUID()) }),
    count: (route) => service.requests.filter((request) => request.route === route).length,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  Object.assign(service, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  test.after(() => service.stop());
  return service;
}

/** A JWT that nobody signed. */
export function jwt(claims: Readonly<Record<string, unknown>>): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none" })}.${part(claims)}.c2ln`;
}

/** What a service answers with a headless login that ended with `outcome`, made with Web Crypto. */
export async function sealOutcome(headlessCode: string, outcome: string) {
  const { subtle } = webcrypto;
  const pair = (await subtle.generateKey("X25519", false, ["deriveBits"])) as webcrypto.CryptoKeyPair;
  const theirs = await subtle.importKey("raw", Buffer.from(headlessCode, "base64url"), "X25519", false, []);
  const secret = await subtle.deriveBits({ name: "X25519", public: theirs }, pair.privateKey, 256);
  const key = await subtle.importKey("raw", secret, "AES-GCM", false, ["encrypt"]);
  const iv = webcrypto.getRandomValues(new Uint8Array(12));
  const text = await subtle.encrypt({ name: "AES-GCM", iv }, key, Buffer.from(outcome));
  const raw = Buffer.from(await subtle.exportKey("raw", pair.publicKey));
  return {
    ecdhPublicKey: Buffer.from(raw.toString("base64url")).toString("base64"),
    encryptedIdtoken: Buffer.concat([iv, Buffer.from(text)]).toString("base64"),
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += chunk;
  return body;
}

function nowS(): number {
  return Math.floor(Date.now() / 1000);
}
