// The client of OpenID Providers (OpenID Connect Core 1.0, section 3.1): authorization code, PKCE, nonce, an ID token
// whose signature is verified, and UserInfo for claims that the ID token lacks.

import { LRUCache } from "lru-cache";
import type * as client from "openid-client";
import { rootOf } from "../../kernel/uidp.js";
import { type GuardedFetch, GuardedFetchError, toFetch } from "../../outbound/guarded-fetch.js";
import type { CacheCounts } from "../../pipeline/auth/authenticate.js";
import { type OAuthError, oauthError } from "./oauth-error.js";
import type { Provider, SecretMethod } from "./provider-selection.js";
import type { LoginPrompt } from "./state.js";
import { type Claims, lacksClaims, pickAddedClaims } from "./user-info.js";

/** The longest ID token, in characters. It is stored until the person decides on the consent page. */
const MAX_ID_TOKEN = 24 * 1024;
/** The timeout of each request to a provider, in seconds. */
const TIMEOUT_S = 10;
/** The code of openid-client for a UserInfo response about another subject than the ID token. */
const OTHER_SUBJECT = "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED";

/** The code of openid-client for a response with `WWW-Authenticate`. */
const CHALLENGE = "OAUTH_WWW_AUTHENTICATE_CHALLENGE";

/** Responses to `prompt=none` that the provider would have to ask the person (OpenID Connect Core 1.0, section 3.1.2.6). */
const MUST_ASK = new Set(["login_required", "interaction_required", "account_selection_required", "consent_required"]);

/** The values that bind the response of a provider to one login. */
export interface LoginSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** A person whom a provider has authenticated: an ID token whose signature and claims were verified, and UserInfo. */
export interface VerifiedIdToken {
  readonly idToken: string;
  readonly subject: string;
  /** The claims of the ID token, and `added`. */
  readonly claims: Claims;
  /** What UserInfo adds to the claims of the ID token. */
  readonly added: Claims;
  /** Whether claims may be missing because UserInfo could not be read. */
  readonly isPartial: boolean;
}

interface OidcDeps {
  /** All requests to providers go through it. */
  readonly fetch: GuardedFetch;
  /** Writes to the operator's log. */
  readonly onProblem: (problem: string) => void;
  /** Counts lookups in the cache of their metadata. */
  readonly providerCache?: CacheCounts;
}

/** Authenticates people at OpenID Providers. */
export type OidcClient = ReturnType<typeof createOidcClient>;

// Loaded at the first login: a start does not need it.
const loadClient = () => import("openid-client");

export function createOidcClient({ fetch, onProblem, providerCache }: OidcDeps) {
  const fetchConfiguration = (provider: Provider) => {
    const { issuer } = provider;
    const guarded = toFetch((url, init) => fetch(url, { ...init, issuer }), organisationOf(provider));
    return discover(provider, guarded as client.CustomFetch);
  };
  const configurations = createConfigurationCache(fetchConfiguration, TIMES, providerCache);

  function getConfiguration(provider: Provider): Promise<client.Configuration> {
    const { id, issuer, clientId, clientSecret = "", secretMethods } = provider;
    const key = JSON.stringify([id, issuer, clientId, clientSecret, secretMethods]);
    return configurations(organisationOf(provider), key, provider);
  }

  function reportFailure({ id }: Provider, error: unknown): OAuthError {
    onProblem(`signing in with ${id} failed: ${describeReason(error)}`);
    if (isUnreached(error)) {
      return oauthError("temporarily_unavailable", "the login provider could not be reached", 503);
    }
    const rule = isClientRejected(error)
      ? "the login provider rejected the client id or secret of this service, or how the secret was sent"
      : "the login provider did not answer as it should";
    return oauthError("server_error", rule, 502);
  }

  /**
   * Asks UserInfo for the claims that an ID token lacks (OpenID Connect Core 1.0, section 5.3). Without its response the
   * login goes on with the claims of the ID token.
   *
   * @throws the error of a response about another subject
   */
  async function readUserInfo(
    provider: Provider,
    configuration: client.Configuration,
    accessToken: string,
    { sub, ...claims }: Claims & { readonly sub: string },
  ): Promise<Pick<VerifiedIdToken, "added" | "isPartial">> {
    const isOffered = configuration.serverMetadata().userinfo_endpoint !== undefined;
    if (!isOffered || !lacksClaims(provider, claims)) return { added: {}, isPartial: false };
    const { fetchUserInfo } = await loadClient();
    try {
      const userInfo = await fetchUserInfo(configuration, accessToken, sub);
      return { added: pickAddedClaims(provider, claims, userInfo), isPartial: false };
    } catch (error) {
      if ((error as { readonly code?: unknown }).code === OTHER_SUBJECT) throw error;
      onProblem(`the UserInfo of ${provider.id} is not used: ${describeReason(error)}`);
      return { added: {}, isPartial: true };
    }
  }

  return {
    /**
     * Builds the URL to redirect the browser to; an error when the provider cannot be reached or its metadata are wrong.
     *
     * @param prompt whether the provider asks the person; its own decision unless given
     */
    async authorizationUrl(
      provider: Provider,
      redirectUri: string,
      { state, nonce, verifier }: LoginSecrets,
      prompt?: LoginPrompt,
    ): Promise<string | OAuthError> {
      try {
        const [client, configuration] = [await loadClient(), await getConfiguration(provider)];
        return client.buildAuthorizationUrl(configuration, {
          redirect_uri: redirectUri,
          scope: provider.scopes.join(" "),
          state,
          nonce,
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: "S256",
          ...(prompt && { prompt }),
        }).href;
      } catch (error) {
        return reportFailure(provider, error);
      }
    },

    /**
     * Exchanges the code in an authorization response for an ID token, verifies it, and asks UserInfo for what it lacks.
     *
     * @param callback the URL that the browser was redirected to, with its query
     * @param prompt what the provider was asked with; after `none` its refusal to do without the person is returned
     */
    async exchangeCode(
      provider: Provider,
      callback: URL,
      { state, nonce, verifier }: LoginSecrets,
      prompt?: LoginPrompt,
    ): Promise<VerifiedIdToken | OAuthError> {
      const client = await loadClient();
      try {
        const configuration = await getConfiguration(provider);
        const response = await client.authorizationCodeGrant(configuration, callback, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const claims = response.claims();
        const idToken = response.id_token;
        // The library accepts some issuers in another spelling. People are stored with this one.
        if (claims === undefined || idToken === undefined || claims.iss !== provider.issuer) {
          throw new TypeError("the ID token is of another issuer");
        }
        if (idToken.length > MAX_ID_TOKEN) throw new TypeError("the ID token is too long");
        const { added, isPartial } = await readUserInfo(provider, configuration, response.access_token, claims);
        return { idToken, subject: claims.sub, claims: { ...claims, ...added }, added, isPartial };
      } catch (error) {
        if (error instanceof client.AuthorizationResponseError && error.error === "access_denied") {
          return oauthError("access_denied", "the login was cancelled, or refused by the login provider", 403);
        }
        if (prompt === "none" && error instanceof client.AuthorizationResponseError && MUST_ASK.has(error.error)) {
          return oauthError(error.error, "the login provider must ask the person", 403);
        }
        return reportFailure(provider, error);
      }
    },
  };
}

function isUnreached(error: unknown): boolean {
  const { code, cause } = error as { readonly [key: string]: unknown };
  return error instanceof GuardedFetchError || cause instanceof GuardedFetchError || code === "OAUTH_TIMEOUT";
}

// Whether the token endpoint did not authenticate the client (RFC 6749, section 5.2).
function isClientRejected(error: unknown): boolean {
  const { code, error: errorCode } = error as { readonly [key: string]: unknown };
  return errorCode === "invalid_client" || code === CHALLENGE;
}

// Codes and fixed texts only: other parts of these errors may hold tokens.
function describeReason(error: unknown): string {
  if (isUnreached(error)) return "it could not be reached";
  const { name, code, error: errorCode } = error as { readonly [key: string]: unknown };
  return [name, code, errorCode].filter(Boolean).join(" ").slice(0, 200);
}

function organisationOf({ providerUid }: Provider): string | undefined {
  return providerUid === undefined ? undefined : rootOf(providerUid);
}

async function discover(provider: Provider, fetch: client.CustomFetch): Promise<client.Configuration> {
  const { issuer, clientId, clientSecret, secretMethods } = provider;
  const client = await loadClient();
  // The token may be passed on to others, so its signature is verified although it comes straight from the provider.
  const execute = [client.enableNonRepudiationChecks];
  // Only an operator can configure an issuer without TLS, and the guarded fetch rejects those that are not trusted.
  if (issuer.startsWith("http:")) execute.push(client.allowInsecureRequests);
  const configuration = await client.discovery(
    new URL(issuer),
    clientId,
    {},
    clientSecret === undefined ? client.None() : authenticateWithSecret(client, clientSecret, secretMethods),
    { [client.customFetch]: fetch, execute, timeout: TIMEOUT_S },
  );
  // Compared byte by byte: another spelling is another issuer (OpenID Connect Discovery 1.0, section 4.3).
  if (configuration.serverMetadata().issuer !== issuer) throw new TypeError("the metadata are of another issuer");
  return configuration;
}

function authenticateWithSecret(
  { ClientSecretBasic, ClientSecretPost }: typeof client,
  secret: string,
  methods: readonly SecretMethod[],
): client.ClientAuth {
  const proofs = { client_secret_basic: ClientSecretBasic(secret), client_secret_post: ClientSecretPost(secret) };
  return (server, metadata, body, headers) => {
    // The default of OpenID Connect Discovery 1.0, section 3.
    const announced = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const method = methods.find((one) => announced.includes(one)) ?? methods.at(-1) ?? "client_secret_basic";
    proofs[method](server, metadata, body, headers);
  };
}

/** How long provider metadata are used, in milliseconds. */
export interface ConfigurationTimes {
  /** Without a new request. */
  readonly freshMs: number;
  /** Between two requests to a provider that fails. */
  readonly pauseMs: number;
  /** While requests to the provider fail. */
  readonly staleMs: number;
}

const TIMES: ConfigurationTimes = { freshMs: 60_000, pauseMs: 10_000, staleMs: 60 * 60_000 };
/** How many organisations are cached, and how many providers of each organisation and of the operator. */
const MAX_ORGANISATIONS = 500;
const MAX_PROVIDERS = 20;

interface Partition<T> {
  readonly current: LRUCache<string, Promise<T>>;
  readonly last: LRUCache<string, { readonly value: T }>;
}

/**
 * Creates a cache of provider metadata, with a separate partition for each organisation and for the operator.
 *
 * @param fetchConfiguration requests the metadata from the provider
 * @returns a function of the organisation (undefined for the operator), a key of the provider and its settings, and
 * the provider. It rejects as `fetchConfiguration` does when the provider did not answer within the last hour
 */
export function createConfigurationCache<P, T extends object>(
  fetchConfiguration: (provider: P) => Promise<T>,
  times = TIMES,
  counts?: CacheCounts,
) {
  const operator = newPartition<T>(times);
  const organisations = new LRUCache<string, Partition<T>>({ max: MAX_ORGANISATIONS });

  function partitionOf(organisation: string | undefined): Partition<T> {
    if (organisation === undefined) return operator;
    const found = organisations.get(organisation) ?? newPartition<T>(times);
    organisations.set(organisation, found);
    return found;
  }

  const countEntries = () =>
    [operator, ...organisations.values()].reduce((count, partition) => count + partition.current.size, 0);

  return (organisation: string | undefined, key: string, provider: P): Promise<T> => {
    const { current, last } = partitionOf(organisation);
    const found = current.get(key);
    if (counts) counts[found === undefined ? "misses" : "hits"]++;
    if (found !== undefined) return found;
    const pending = fetchConfiguration(provider).then(
      (value) => {
        last.set(key, { value });
        return value;
      },
      (error: unknown) => {
        current.set(key, pending, { ttl: times.pauseMs });
        const known = last.get(key);
        if (known === undefined) throw error;
        return known.value;
      },
    );
    current.set(key, pending);
    if (counts) counts.entries = countEntries();
    return pending;
  };
}

function newPartition<T>({ freshMs, staleMs }: ConfigurationTimes): Partition<T> {
  return {
    current: new LRUCache({ max: MAX_PROVIDERS, ttl: freshMs }),
    last: new LRUCache({ max: MAX_PROVIDERS, ttl: staleMs }),
  };
}
