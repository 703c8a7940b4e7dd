// How the library that does the work of the demo's provider is set up.
import { type KeyObject, randomBytes } from "node:crypto";
import type { Provider } from "oidc-provider";
import { wrongPage } from "./pages.js";
import { people } from "./people.js";

type Library = typeof import("oidc-provider");

/** The id of the one key. */
export const KEY_ID = "demo";
/** How long somebody may take to sign in, and an ID token lives, in seconds. */
const LOGIN_S = 600;
const TOKEN_S = 3600;
const CLAIMS = ["email", "email_verified", "name"];

/** What a provider is made of. */
export interface ProviderOptions {
  readonly issuer: string;
  /** The name of the provider as people see it. */
  readonly host: string;
  /** Signs its tokens: ES256. */
  readonly privateKey: KeyObject;
  /** Its one client, and where that lets people come back to. */
  readonly clientId: string;
  readonly redirectUri: string;
}

/** Loads the library, which nothing else needs, and returns what makes a provider with it. */
export async function loadProviderMaker(): Promise<(options: ProviderOptions) => Provider> {
  const library = await withoutWarnings(() => import("oidc-provider"));
  return (options) => withoutWarnings(() => makeProvider(library, options));
}

function makeProvider(library: Library, options: ProviderOptions): Provider {
  const { issuer, host, privateKey, clientId, redirectUri } = options;
  const jwk = { ...privateKey.export({ format: "jwk" }), kid: KEY_ID, alg: "ES256", use: "sig" };
  return new library.Provider(issuer, {
    // Public, as whoever can read a secret of the demo can sign in without.
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
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    claims: { openid: ["sub", ...CLAIMS], email: [], profile: [] },
    // The service reads ID tokens alone, so everything is in there.
    conformIdTokenClaims: false,
    findAccount(_ctx, subject) {
      const { email, name } = people.find((one) => one.subject === subject) ?? {};
      return { accountId: subject, claims: () => ({ sub: subject, email, email_verified: true, name }) };
    },
    // The one client needs nobody's consent.
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session?.accountId ?? "" });
      grant.addOIDCScope("openid email profile");
      await grant.save();
      return grant;
    },
    renderError(ctx, { error, error_description: description = error }) {
      const { headers = {}, body } = wrongPage(host, ctx.status, `${description}.`);
      for (const [name, value] of Object.entries(headers)) ctx.set(name, String(value));
      ctx.body = body;
    },
  });
}

// They are of its store, which is in memory as it should be here, and of versions of Node that it works
// with all the same.
function withoutWarnings<T>(work: () => T): T {
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
