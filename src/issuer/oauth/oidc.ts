// Signing in with an OpenID Provider (OpenID Connect Core 1.0, section 3.1):
// authorization code, PKCE, nonce, and an ID token whose signature is verified.
import * as client from "openid-client";
import { rootOf } from "../../kernel/uidp.js";
import { asFetch, FetchRefused } from "../../outbound/guarded-fetch.js";
import type { LoginDeps } from "./deps.js";
import { type Failure, failure } from "./failure.js";
import { createProviderConfigurations } from "./provider-configurations.js";
import type { Provider } from "./provider-selection.js";

/** The longest ID token, in characters: it is kept while somebody decides on the login. */
const MAX_ID_TOKEN = 24 * 1024;
/** For each request to a provider, in seconds. */
const TIMEOUT_S = 10;

/** What one login is held together by. */
export interface Proofs {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** Somebody whom a provider vouches for. */
export interface Vouched {
  readonly idToken: string;
  readonly subject: string;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** Signs people in. */
export interface Oidc {
  /** Where to send the browser; a failure when the provider cannot be reached or is not what it should be. */
  authorizationUrl(provider: Provider, redirectUri: string, proofs: Proofs): Promise<string | Failure>;
  /**
   * Changes the code that the browser brought back.
   *
   * @param callback the address it came to, with its query
   */
  finish(provider: Provider, callback: URL, proofs: Proofs): Promise<Vouched | Failure>;
}

/** Creates it. */
export function createOidc({ fetch, onProblem }: Pick<LoginDeps, "fetch" | "onProblem">): Oidc {
  const configurations = createProviderConfigurations((provider: Provider) => {
    const { issuer } = provider;
    const guarded = asFetch((url, init) => fetch(url, { ...init, issuer }), organisationOf(provider));
    return discover(provider, guarded as client.CustomFetch);
  });

  function configurationOf(provider: Provider): Promise<client.Configuration> {
    const { id, issuer, clientId, clientSecret = "" } = provider;
    const key = JSON.stringify([id, issuer, clientId, clientSecret]);
    return configurations(organisationOf(provider), key, provider);
  }

  // Codes and our own words alone: what these errors carry besides may hold tokens.
  function failed({ id }: Provider, error: unknown): Failure {
    const { name, code, error: said, cause } = error as { readonly [key: string]: unknown };
    const isUnreached = error instanceof FetchRefused || cause instanceof FetchRefused || code === "OAUTH_TIMEOUT";
    const reason = isUnreached ? "it could not be reached" : [name, code, said].filter(Boolean).join(" ").slice(0, 200);
    onProblem(`signing in with ${id} failed: ${reason}`);
    return isUnreached
      ? failure("temporarily_unavailable", "the login provider could not be reached", 503)
      : failure("server_error", "the login provider did not answer as it should", 502);
  }

  return {
    async authorizationUrl(provider, redirectUri, { state, nonce, verifier }) {
      try {
        const configuration = await configurationOf(provider);
        return client.buildAuthorizationUrl(configuration, {
          redirect_uri: redirectUri,
          scope: provider.scopes.join(" "),
          state,
          nonce,
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: "S256",
        }).href;
      } catch (error) {
        return failed(provider, error);
      }
    },

    async finish(provider, callback, { state, nonce, verifier }) {
      try {
        const configuration = await configurationOf(provider);
        const answer = await client.authorizationCodeGrant(configuration, callback, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const claims = answer.claims();
        const idToken = answer.id_token;
        // The library allows some issuers another spelling; people are known by this one.
        if (claims === undefined || idToken === undefined || claims.iss !== provider.issuer) {
          throw new TypeError("the ID token is of another issuer");
        }
        if (idToken.length > MAX_ID_TOKEN) throw new TypeError("the ID token is too long");
        return { idToken, subject: claims.sub, claims };
      } catch (error) {
        if (error instanceof client.AuthorizationResponseError && error.error === "access_denied") {
          return failure("access_denied", "the login was cancelled, or refused by the login provider", 403);
        }
        return failed(provider, error);
      }
    },
  };
}

function organisationOf({ providerUid }: Provider): string | undefined {
  return providerUid === undefined ? undefined : rootOf(providerUid);
}

async function discover(provider: Provider, fetch: client.CustomFetch): Promise<client.Configuration> {
  const { issuer, clientId, clientSecret } = provider;
  // The signature is verified although the token comes straight from the provider: the token may be
  // handed on, and then must be one that everybody else would accept.
  const execute = [client.enableNonRepudiationChecks];
  // Only an operator can name an issuer without TLS, and the fetch lets only trusted ones pass.
  if (issuer.startsWith("http:")) execute.push(client.allowInsecureRequests);
  const configuration = await client.discovery(
    new URL(issuer),
    clientId,
    {},
    clientSecret === undefined ? client.None() : secretProof(clientSecret),
    { [client.customFetch]: fetch, execute, timeout: TIMEOUT_S },
  );
  // Byte by byte: another spelling is another issuer (OpenID Connect Discovery 1.0, section 4.3).
  if (configuration.serverMetadata().issuer !== issuer) throw new TypeError("the metadata are of another issuer");
  return configuration;
}

// A provider that does not say takes the secret in the header (OpenID Connect Discovery 1.0, section 3).
function secretProof(secret: string): client.ClientAuth {
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)];
  return (server, metadata, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const proof = methods.includes("client_secret_basic") ? basic : post;
    proof(server, metadata, body, headers);
  };
}
