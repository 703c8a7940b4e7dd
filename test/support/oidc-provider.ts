// A real OpenID Provider for tests: authorization code with PKCE, ID tokens
// signed with a key of its own. There is nothing to click: the person of its `account`
// signs in by going there.
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type JWTPayload, SignJWT } from "jose";
import Provider from "oidc-provider";
import type { SecretMethod } from "../../src/issuer/oauth/provider-selection.js";
import { forwardWithoutIss } from "./strip-iss.js";

/** Somebody with an account at the provider. */
export interface OidcAccount {
  readonly subject: string;
  /** What ID tokens say besides, such as `email`, `email_verified`, `name` and `groups`. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** How a provider is set up. */
export interface OidcProviderOptions {
  /** `arbor` unless set. */
  readonly clientId?: string;
  /** A secret of its own unless set; null makes a public client. */
  readonly clientSecret?: string | null;
  /** Who signs in; nobody unless set. */
  readonly account?: OidcAccount;
  /** Where it may send people back to; more with {@link OidcProvider.allowRedirect}. */
  readonly redirectUris?: readonly string[];
  /** Whether it is reached by a proxy that takes `iss` (RFC 9207) away. */
  readonly stripIss?: boolean;
  /**
   * Whether ID tokens have the subject alone, and the claims are served by UserInfo, as JSON or as a signed JWT: the default
   * of the library. Otherwise everything is in the ID token.
   */
  readonly userInfo?: "json" | "jwt" | undefined;
  /** The only way in which it accepts the secret of its client; the library accepts both unless set. */
  readonly secretMethod?: SecretMethod | undefined;
  /** The ways to send a secret that it announces: the one that it accepts, or in a header, unless set. */
  readonly announced?: readonly SecretMethod[] | undefined;
}

/** A running provider. */
export interface OidcProvider {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: string | undefined;
  /** Who signs in from now on; undefined: people cancel. */
  account: OidcAccount | undefined;
  /** Responds in place of UserInfo, if set. */
  answerUserInfo: ((res: ServerResponse) => void) | undefined;
  /** Paths of requests it got, such as `/token`. */
  readonly requests: readonly string[];
  /** The `traceparent` of each of these requests. */
  readonly traceparents: readonly (string | undefined)[];
  allowRedirect(uri: string): void;
  /** An ID token it signs, for this client and an hour unless the claims say otherwise. */
  signIdToken(claims: JWTPayload & { readonly sub: string }): Promise<string>;
  stop(): Promise<void>;
}

/** The path of UserInfo. */
export const USER_INFO = "/me";
const KEY_ID = "test";
const CLAIMS = ["sub", "oid", "email", "email_verified", "name", "given_name", "family_name", "picture", "groups"];
const SCOPED_CLAIMS = {
  openid: ["sub"],
  email: ["email", "email_verified"],
  profile: ["name", "given_name", "family_name", "picture"],
  groups: ["groups"],
};
const requirePkce = () => true;

/** Starts one on a free port of 127.0.0.1. */
export async function startOidcProvider(options: OidcProviderOptions = {}): Promise<OidcProvider> {
  const { clientId = "arbor" } = options;
  const clientSecret = options.clientSecret === undefined ? "a secret: 100 % of + & = /" : options.clientSecret;
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const redirects = new Set(options.redirectUris);
  const requests: string[] = [];
  const traceparents: (string | undefined)[] = [];
  const state: Pick<OidcProvider, "account" | "answerUserInfo"> = {
    account: options.account,
    answerUserInfo: undefined,
  };

  const server = createServer();
  const proxy = options.stripIss ? createServer((req, res) => forwardWithoutIss(req, res, portOf(server))) : undefined;
  for (const one of [server, proxy])
    await new Promise<void>((resolve) => one?.listen(0, "127.0.0.1", resolve) ?? resolve());
  const issuer = `http://127.0.0.1:${portOf(proxy ?? server)}`;
  const { userInfo, secretMethod = "client_secret_basic", announced = [secretMethod] } = options;
  const client = { clientId, clientSecret, userInfo, secretMethod, announced };
  const provider = createProvider(issuer, client, privateKey, () => state.account);
  provider.Client.prototype.redirectUriAllowed = (uri) => redirects.has(uri);
  const response = provider.callback();

  async function interact(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { account } = state;
    const result = account ? { login: { accountId: account.subject } } : { error: "access_denied" };
    await provider.interactionFinished(req, res, result);
  }

  server.on("request", (req: IncomingMessage, res: ServerResponse) => {
    const path = new URL(req.url ?? "/", issuer).pathname;
    requests.push(path);
    traceparents.push(req.headers.traceparent?.toString());
    if (path === USER_INFO && state.answerUserInfo !== undefined) return state.answerUserInfo(res);
    if (path === "/token" && isRejected(req, options.secretMethod)) return rejectClient(req, res);
    if (!path.startsWith("/interaction/")) return void response(req, res);
    interact(req, res).catch((error: unknown) => res.writeHead(500).end(String(error)));
  });

  return {
    issuer,
    clientId,
    clientSecret: clientSecret ?? undefined,
    requests,
    traceparents,
    get account() {
      return state.account;
    },
    set account(account) {
      state.account = account;
    },
    get answerUserInfo() {
      return state.answerUserInfo;
    },
    set answerUserInfo(answer) {
      state.answerUserInfo = answer;
    },
    allowRedirect: (uri) => redirects.add(uri),
    async signIdToken(claims) {
      const now = Math.floor(Date.now() / 1000);
      return new SignJWT({ iss: issuer, aud: clientId, iat: now, exp: now + 3600, ...claims })
        .setProtectedHeader({ alg: "ES256", kid: KEY_ID, typ: "JWT" })
        .sign(privateKey);
    },
    async stop() {
      for (const one of [proxy, server]) {
        const closed = new Promise((resolve) => one?.close(resolve) ?? resolve(undefined));
        one?.closeAllConnections();
        await closed;
      }
    },
  };
}

// A secret in a header is the only reason for the field `Authorization`.
function isRejected({ headers }: IncomingMessage, method: SecretMethod | undefined): boolean {
  return method !== undefined && (method === "client_secret_basic") !== (headers.authorization !== undefined);
}

// RFC 6749, section 5.2: the header field is owed to clients that used it.
function rejectClient({ headers }: IncomingMessage, res: ServerResponse): void {
  const challenge = headers.authorization === undefined ? {} : { "www-authenticate": 'Basic realm="test"' };
  res.writeHead(401, { "content-type": "application/json", ...challenge });
  res.end(JSON.stringify({ error: "invalid_client" }));
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

function createProvider(
  issuer: string,
  {
    clientId,
    clientSecret,
    userInfo,
    secretMethod,
    announced,
  }: Required<Pick<OidcProviderOptions, "userInfo" | "clientId" | "clientSecret">> & {
    readonly secretMethod: SecretMethod;
    readonly announced: readonly SecretMethod[];
  },
  privateKey: KeyObject,
  account: () => OidcAccount | undefined,
): Provider {
  const jwk = { ...privateKey.export({ format: "jwk" }), kid: KEY_ID, alg: "ES256", use: "sig" };
  return new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        redirect_uris: ["https://never.invalid/"],
        grant_types: ["authorization_code"],
        response_types: ["code"],
        id_token_signed_response_alg: "ES256",
        ...(userInfo === "jwt" && { userinfo_signed_response_alg: "ES256" }),
        ...(clientSecret === null
          ? { token_endpoint_auth_method: "none" }
          : { client_secret: clientSecret, token_endpoint_auth_method: secretMethod }),
      },
    ],
    clientAuthMethods: [...announced, "none"],
    jwks: { keys: [jwk] },
    cookies: { keys: ["a key of the cookies"] },
    // Seconds; long enough for any test.
    ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 3600 },
    pkce: { required: requirePkce },
    features: { devInteractions: { enabled: false }, jwtUserinfo: { enabled: userInfo === "jwt" } },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    ...(userInfo === undefined
      ? { claims: { openid: CLAIMS, email: [], profile: [], groups: [] }, conformIdTokenClaims: false }
      : { claims: SCOPED_CLAIMS }),
    enabledJWA: { idTokenSigningAlgValues: ["ES256"], userinfoSigningAlgValues: ["ES256"] },
    findAccount: (_ctx, sub) => ({
      accountId: sub,
      claims: () => ({ ...(account()?.subject === sub && account()?.claims), sub }),
    }),
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client?.clientId ?? "",
        accountId: oidc.session?.accountId ?? "",
      });
      grant.addOIDCScope("openid email profile groups");
      await grant.save();
      return grant;
    },
  });
}
