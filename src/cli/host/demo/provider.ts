// The OpenID Provider of the demo. People choose who they are without a password, so it listens on loopback only.
import { generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT } from "jose";
import type { Provider } from "oidc-provider";
import { html } from "../../../issuer/oauth/html.js";
import { renderPage } from "../../../issuer/oauth/page.js";
import type { WebResponse } from "../../../kernel/web.js";
import { people } from "./organisation.js";

type Library = typeof import("oidc-provider");

const HOST = "127.0.0.1";
const KEY_ID = "demo";
/** How long a login may take, in seconds. */
const LOGIN_S = 600;
/** How long an ID token lives, in seconds. */
const TOKEN_S = 3600;
const CLAIMS = ["email", "email_verified", "name"];
const requirePkce = () => true;

/** A running provider. */
export interface DemoProvider {
  readonly issuer: string;
  readonly port: number;
  /** Registers the one client. */
  serve(clientId: string, redirectUri: string): void;
  /** Signs a token with these claims and `iss`, `iat` and `exp`. */
  sign(claims: { readonly sub: string; readonly aud: string }, lifeS: number): Promise<string>;
  stop(): Promise<void>;
}

/**
 * Starts the provider.
 *
 * @param port 0 for a free port
 * @throws Error when the port is taken
 */
export async function startDemoProvider(port: number): Promise<DemoProvider> {
  const library = await suppressWarnings(() => import("oidc-provider"));
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  let provider: Provider | undefined;
  const server = createServer((req, res) => {
    handle(req, res).catch((error: unknown) => {
      if (!res.headersSent) send(res, renderErrorPage(host, 400, describeError(error)));
    });
  });
  server.listen(port, HOST);
  await once(server, "listening");
  const host = `${HOST}:${(server.address() as AddressInfo).port}`;
  const issuer = `http://${host}`;

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(req.url ?? "/", issuer);
    // Against DNS rebinding: another name may resolve to this address.
    if (req.headers.host !== host) return send(res, renderErrorPage(host, 421, `This is ${host} and nothing else.`));
    if (provider === undefined) return send(res, renderErrorPage(host, 503, "The demo has not begun yet."));
    if (pathname.startsWith("/interaction/")) return interact(provider, searchParams.get("person"), req, res);
    // Without the session cookie the provider asks at each login who the person is.
    req.headers.cookie = removeCookie("_session", req.headers.cookie);
    await provider.callback()(req, res);
  }

  async function interact(signingIn: Provider, subject: string | null, req: IncomingMessage, res: ServerResponse) {
    // Throws when this browser has no login in progress.
    await signingIn.interactionDetails(req, res);
    if (subject === null) return send(res, renderPeoplePage(host));
    const person = people.find((one) => one.subject === subject);
    const result = person ? { login: { accountId: person.subject } } : { error: "access_denied" };
    await signingIn.interactionFinished(req, res, result);
  }

  return {
    issuer,
    port: Number(new URL(issuer).port),
    serve(clientId, redirectUri) {
      provider = suppressWarnings(() => createProvider(library, { issuer, host, privateKey, clientId, redirectUri }));
    },
    sign: (claims, lifeS) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: "ES256", kid: KEY_ID, typ: "JWT" })
        .setIssuer(issuer)
        .setIssuedAt()
        .setExpirationTime(`${lifeS}s`)
        .sign(privateKey),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function removeCookie(prefix: string, header = ""): string {
  const cookies = header.split("; ").filter((cookie) => !cookie.startsWith(prefix));
  return cookies.join("; ");
}

function describeError(error: unknown): string {
  return error instanceof Error && error.name === "SessionNotFound"
    ? "This login is over, or was begun in another browser."
    : "Something went wrong in the demo.";
}

function send(res: ServerResponse, { status, headers, body = "" }: WebResponse): void {
  res.writeHead(status, { ...headers } as Record<string, string>).end(body);
}

interface ProviderOptions {
  readonly issuer: string;
  /** The name of the provider on its pages. */
  readonly host: string;
  /** Signs its tokens: ES256. */
  readonly privateKey: KeyObject;
  /** The one client and its redirect URI. */
  readonly clientId: string;
  readonly redirectUri: string;
}

function createProvider(library: Library, options: ProviderOptions): Provider {
  const { issuer, host, privateKey, clientId, redirectUri } = options;
  const jwk = { ...privateKey.export({ format: "jwk" }), kid: KEY_ID, alg: "ES256", use: "sig" };
  return new library.Provider(issuer, {
    // A public client: a user of this machine who could read a secret can sign in without one as well.
    clients: [
      {
        client_id: clientId,
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
        id_token_signed_response_alg: "ES256",
      },
    ],
    jwks: { keys: [jwk] },
    cookies: { keys: [randomBytes(32).toString("base64url")] },
    ttl: { Interaction: LOGIN_S, Session: LOGIN_S, Grant: LOGIN_S, AccessToken: LOGIN_S, IdToken: TOKEN_S },
    enabledJWA: { idTokenSigningAlgValues: ["ES256"] },
    pkce: { required: requirePkce },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    claims: { openid: ["sub", ...CLAIMS], email: [], profile: [] },
    // The service reads ID tokens only, so all claims are in them.
    conformIdTokenClaims: false,
    findAccount(_ctx, subject) {
      const { email, name } = people.find((one) => one.subject === subject) ?? {};
      return { accountId: subject, claims: () => ({ sub: subject, email, email_verified: true, name }) };
    },
    // The one client needs no consent.
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session?.accountId ?? "" });
      grant.addOIDCScope("openid email profile");
      await grant.save();
      return grant;
    },
    renderError(ctx, { error, error_description: description = error }) {
      const { headers = {}, body } = renderErrorPage(host, ctx.status, `${description}.`);
      for (const [name, value] of Object.entries(headers)) ctx.set(name, String(value));
      ctx.body = body;
    },
  });
}

// The library warns about its store in memory, which is right for a demo, and about versions of Node that work.
function suppressWarnings<T>(work: () => T): T {
  const { warn } = console;
  const restore = () => {
    console.warn = warn;
  };
  console.warn = () => {};
  const result = work();
  if (result instanceof Promise) void result.finally(restore).catch(() => {});
  else restore();
  return result;
}

// People are links, because the content security policy of the pages forbids forms that redirect to another site.
function renderPeoplePage(host: string): WebResponse {
  const choices = people.map(
    ({ subject, name, about }) => html`<li><a class="button" href="?person=${subject}">${name}, ${about}</a></li>`,
  );
  const body = html`<p>This is the login of a demo on your own machine. It asks for no password.</p>
<ul class="choices">${choices}
<li><a class="button plain" href="?person=">Nobody: cancel the login</a></li></ul>`;
  return renderPage({ title: "Who are you?", body, host });
}

function renderErrorPage(host: string, status: number, text: string): WebResponse {
  const body = html`<p>${text}</p><p>Go back to the program and start again.</p>`;
  return renderPage({ title: "This cannot be done", body, host, status });
}
