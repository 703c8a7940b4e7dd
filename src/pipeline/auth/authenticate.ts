import type { KeyObject } from "node:crypto";
import { LRUCache } from "lru-cache";
import { parseBearer } from "../../kernel/bearer.js";
import { tokenExpired, unauthenticated } from "../../kernel/errors.js";
import type { Principal } from "../../kernel/principal.js";
import type { Clock } from "../../kernel/time.js";
import type { TraceSpan } from "../../kernel/trace.js";
import type { AuthRule } from "../method-table.js";
import { isExpired, parseKeyId, type TokenPolicy, verifyApiToken } from "./api-token.js";

/**
 * Verifies the token in the value of the Authorization header. A token that was verified before is answered
 * synchronously. Whether the identity and the key of the token still exist is read later, with every call.
 *
 * @throws ApiError UNAUTHENTICATED, with one text for every cause but the expiry of a token of this service.
 */
export type Authenticate = (authorization: string | undefined) => Principal | Promise<Principal>;

/**
 * Authenticates the caller of a method from the value of the Authorization header; undefined for a method that needs
 * no authenticated caller. Transports call it before they read the request body.
 *
 * @param trace the span of the call
 * @throws ApiError UNAUTHENTICATED
 */
export type AuthenticateCaller = (
  method: { readonly auth: AuthRule },
  authorization: string | undefined,
  trace?: TraceSpan | undefined,
) => Principal | undefined | Promise<Principal | undefined>;

export function createAuthenticateCaller(authenticate: Authenticate): AuthenticateCaller {
  return (method, authorization, trace) => {
    if (method.auth.mode !== "guarded") return undefined;
    return trace?.isRecording ? traceAuthentication(authenticate, authorization, trace) : authenticate(authorization);
  };
}

function traceAuthentication(
  authenticate: Authenticate,
  authorization: string | undefined,
  trace: TraceSpan,
): Principal | Promise<Principal> {
  const span = trace.startChild("authenticate");
  const end = (principal: Principal) => {
    span.end();
    return principal;
  };
  const fail = (error: unknown): never => {
    span.fail(error);
    throw error;
  };
  try {
    const principal = authenticate(authorization);
    return principal instanceof Promise ? principal.then(end, fail) : end(principal);
  } catch (error) {
    return fail(error);
  }
}

/** The public keys that verify API tokens. */
export interface VerifyingKeys {
  findVerifyingKey(kid: string): KeyObject | undefined;
  /** Reads the keys again: then they are at least those that were acknowledged before the call. */
  refresh(): Promise<void>;
}

export interface AuthenticateDeps {
  readonly keys: VerifyingKeys;
  readonly policy: TokenPolicy;
  readonly clock: Clock;
  /** Counts lookups in the cache of verified tokens. */
  readonly cache?: CacheCounts;
}

export interface CacheCounts {
  hits: number;
  misses: number;
  entries: number;
}

export function createCacheCounts(): CacheCounts {
  return { hits: 0, misses: 0, entries: 0 };
}

/** How many verified tokens are cached. One takes about 1 KB. */
const MAX_VERIFIED = 20_000;

/** The cache is keyed by the last characters of the signature. */
const CACHE_KEY_LENGTH = 32;

interface VerifiedToken {
  readonly authorization: string;
  readonly principal: Principal;
  readonly key: KeyObject;
  readonly kid: string;
}

/** Creates the authenticator of API tokens. */
export function createAuthenticate({ keys, policy, clock, cache }: AuthenticateDeps): Authenticate {
  // Created with the first token, because a cache allocates its full size at once.
  let verified: LRUCache<string, VerifiedToken> | undefined;

  function verify(authorization: string): Principal | Promise<Principal> {
    const token = parseBearer(authorization);
    const kid = token && parseKeyId(token);
    if (!token || !kid) throw unauthenticated(undefined, "token_malformed");
    const key = keys.findVerifyingKey(kid);
    return key === undefined
      ? verifyAfterRefresh(authorization, token, kid)
      : verifyWith(key, kid, token, authorization);
  }

  // Another process may have created the key since this one read them.
  async function verifyAfterRefresh(authorization: string, token: string, kid: string): Promise<Principal> {
    await keys.refresh();
    const key = keys.findVerifyingKey(kid);
    if (key === undefined) throw unauthenticated(undefined, "token_unknown_key");
    return verifyWith(key, kid, token, authorization);
  }

  function verifyWith(key: KeyObject, kid: string, token: string, authorization: string): Principal {
    const verifiedToken = verifyApiToken(token, key, policy, clock());
    if (verifiedToken === "token_expired") throw tokenExpired();
    if (typeof verifiedToken === "string") throw unauthenticated(undefined, verifiedToken);
    const principal: Principal = { ...verifiedToken, keyId: kid };
    verified ??= new LRUCache({ max: MAX_VERIFIED });
    verified.set(authorization.slice(-CACHE_KEY_LENGTH), { authorization, principal, key, kid });
    if (cache) cache.entries = verified.size;
    return principal;
  }

  return (authorization) => {
    if (authorization === undefined) throw unauthenticated(undefined, "token_missing");
    const known = verified?.get(authorization.slice(-CACHE_KEY_LENGTH));
    // A cached result is valid only while the key that verified it is.
    if (known?.authorization === authorization && keys.findVerifyingKey(known.kid) === known.key) {
      if (cache) cache.hits++;
      if (isExpired(known.principal, clock())) throw tokenExpired();
      return known.principal;
    }
    if (cache) cache.misses++;
    return verify(authorization);
  };
}
