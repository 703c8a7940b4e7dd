// Signing in with an OpenID Provider (OpenID Connect Core 1.0, section 3.1):
// authorization code, PKCE, nonce, and an ID token whose signature is verified.

import { LRUCache } from "lru-cache";
import * as client from "openid-client";
import { rootOf } from "../../kernel/uidp.js";
import { asFetch, FetchRefused, type GuardedFetch } from "../../outbound/guarded-fetch.js";
import { type Failure, failure } from "./oauth-error.js";
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

interface OidcDeps {
  /** The only way by which providers are asked. */
  readonly fetch: GuardedFetch;
  /** Writes to the operator's log. */
  readonly onProblem: (problem: string) => void;
}

/** Creates the client of all providers. */
export function createOidc({ fetch, onProblem }: OidcDeps): Oidc {
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

/** How long what was fetched is used, in milliseconds. */
export interface ConfigurationTimes {
  /** Without asking again. */
  readonly freshMs: number;
  /** Between two attempts at a provider that fails. */
  readonly pauseMs: number;
  /** While the provider fails. */
  readonly staleMs: number;
}

const TIMES: ConfigurationTimes = { freshMs: 60_000, pauseMs: 10_000, staleMs: 60 * 60_000 };
/** How many organisations, and providers of each of them or of the operator, are kept. */
const MAX_ORGANISATIONS = 500;
const MAX_PROVIDERS = 20;

interface Partition<T> {
  readonly current: LRUCache<string, Promise<T>>;
  readonly last: LRUCache<string, { readonly value: T }>;
}

/**
 * Keeps what login providers publish of themselves, apart for each organisation and for the operator.
 *
 * @param fetchOf asks the provider
 * @returns a function of the organisation, undefined for the operator, and of what names the provider and
 * its settings. It rejects as `fetchOf` does when the provider has never answered within the last hour.
 */
export function createProviderConfigurations<P, T extends object>(fetchOf: (provider: P) => Promise<T>, times = TIMES) {
  const operator = newPartition<T>(times);
  const organisations = new LRUCache<string, Partition<T>>({ max: MAX_ORGANISATIONS });

  function partitionOf(organisation: string | undefined): Partition<T> {
    if (organisation === undefined) return operator;
    const found = organisations.get(organisation) ?? newPartition<T>(times);
    organisations.set(organisation, found);
    return found;
  }

  return (organisation: string | undefined, key: string, provider: P): Promise<T> => {
    const { current, last } = partitionOf(organisation);
    const found = current.get(key);
    if (found !== undefined) return found;
    const made = fetchOf(provider).then(
      (value) => {
        last.set(key, { value });
        return value;
      },
      (error: unknown) => {
        current.set(key, made, { ttl: times.pauseMs });
        const known = last.get(key);
        if (known === undefined) throw error;
        return known.value;
      },
    );
    current.set(key, made);
    return made;
  };
}

function newPartition<T>({ freshMs, staleMs }: ConfigurationTimes): Partition<T> {
  return {
    current: new LRUCache({ max: MAX_PROVIDERS, ttl: freshMs }),
    last: new LRUCache({ max: MAX_PROVIDERS, ttl: staleMs }),
  };
}
