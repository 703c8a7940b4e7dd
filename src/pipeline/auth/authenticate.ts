import type { KeyObject } from "node:crypto";
import { LRUCache } from "lru-cache";
import { tokenExpired, unauthenticated } from "../../kernel/errors.js";
import type { Principal } from "../../kernel/principal.js";
import type { Clock } from "../../kernel/time.js";
import type { TraceSpan } from "../../kernel/trace.js";
import type { AuthRule } from "../method-table.js";
import { isExpired, keyIdOf, type TokenPolicy, verifyApiToken } from "./api-token.js";

/**
 * Verifies the token in the value of the Authorization header. A token that was verified before is answered
 * synchronously. Whether the identity still exists is read later, with every call.
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
  method: { readonly auth: AuthRule; readonly access?: "read" | "write"; readonly mounted?: unknown },
  authorization: string | undefined,
  trace?: TraceSpan | undefined,
) => Principal | undefined | Promise<Principal | undefined>;

/**
 * Creates it.
 *
 * @param requireRoom throws where the database has no time for a unit of work that begins now. Every front end
 * authenticates the caller before it reads the body, so this comes before both.
 */
export function createAuthenticateCaller(
  authenticate: Authenticate,
  requireRoom: (access: "read" | "write") => void = () => {},
): AuthenticateCaller {
  return (method, authorization, trace) => {
    // A mounted method does not tell what it does with the database.
    requireRoom(method.mounted === undefined && method.access === "write" ? "write" : "read");
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
  verifying(kid: string): KeyObject | undefined;
  /** Looks for new keys; resolves to whether anything changed. */
  refresh(): Promise<boolean>;
}

/** What authentication needs. */
export interface AuthenticateDeps {
  readonly keys: VerifyingKeys;
  readonly policy: TokenPolicy;
  readonly clock: Clock;
  /** Counts lookups in the cache of verified tokens. */
  readonly cache?: CacheCounts;
}

/** Counts of a cache. */
export interface CacheCounts {
  hits: number;
  misses: number;
  entries: number;
}

/** Creates counts of nothing. */
export function createCacheCounts(): CacheCounts {
  return { hits: 0, misses: 0, entries: 0 };
}

/** How many verified tokens are remembered: one costs about 1 KB, verifying it again 70 µs. */
const REMEMBERED = 20_000;

/** Tokens are looked up by this many characters of their signature: all of one would take ten times as long. */
const TAIL = 32;

interface Remembered {
  readonly authorization: string;
  readonly principal: Principal;
  readonly key: KeyObject;
  readonly kid: string;
}

/** Creates the authenticator of API tokens. */
export function createAuthenticate({ keys, policy, clock, cache }: AuthenticateDeps): Authenticate {
  // Created with the first token: it is as large as it may get from the beginning.
  let remembered: LRUCache<string, Remembered> | undefined;

  function verify(authorization: string): Principal | Promise<Principal> {
    const token = bearerTokenOf(authorization);
    const kid = token && keyIdOf(token);
    if (!token || !kid) throw unauthenticated(undefined, "token_malformed");
    const key = keys.verifying(kid);
    return key === undefined ? verifyAnew(authorization, token, kid) : verifyWith(key, kid, token, authorization);
  }

  // Another node may have made a key since this one looked.
  async function verifyAnew(authorization: string, token: string, kid: string): Promise<Principal> {
    const key = (await keys.refresh()) ? keys.verifying(kid) : undefined;
    if (key === undefined) throw unauthenticated(undefined, "token_unknown_key");
    return verifyWith(key, kid, token, authorization);
  }

  function verifyWith(key: KeyObject, kid: string, token: string, authorization: string): Principal {
    const principal = verifyApiToken(token, key, policy, clock());
    if (principal === "token_expired") throw tokenExpired();
    if (typeof principal === "string") throw unauthenticated(undefined, principal);
    remembered ??= new LRUCache({ max: REMEMBERED });
    remembered.set(authorization.slice(-TAIL), { authorization, principal, key, kid });
    if (cache) cache.entries = remembered.size;
    return principal;
  }

  return (authorization) => {
    if (authorization === undefined) throw unauthenticated(undefined, "token_missing");
    const known = remembered?.get(authorization.slice(-TAIL));
    // A key that was withdrawn takes with it what it verified.
    if (known?.authorization === authorization && keys.verifying(known.kid) === known.key) {
      if (cache) cache.hits++;
      if (isExpired(known.principal, clock())) throw tokenExpired();
      return known.principal;
    }
    if (cache) cache.misses++;
    return verify(authorization);
  };
}

// RFC 6750: the scheme in any case, one blank, the token and nothing else.
function bearerTokenOf(authorization: string): string | undefined {
  const scheme = authorization.slice(0, 7);
  const token = authorization.slice(7);
  return scheme.toLowerCase() === "bearer " && /^[A-Za-z0-9_.-]+$/.test(token) ? token : undefined;
}
