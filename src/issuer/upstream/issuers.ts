// The keys of other issuers (OpenID Connect Discovery 1.0), cached in memory. No token is valid while the keys of its
// issuer cannot be fetched. Callers can cause at most one request per 30 s to an issuer with cached keys.

import { type ApiError, unavailable } from "../../kernel/errors.js";
import { parseJsonObject } from "../../kernel/strict-json.js";
import type { Clock } from "../../kernel/time.js";
import type { TraceSpan } from "../../kernel/trace.js";
import { type GuardedFetch, GuardedFetchError, type GuardedRequest } from "../../outbound/guarded-fetch.js";
import { OutboundError } from "../../outbound/http-request.js";
import type { CacheCounts } from "../../pipeline/auth/authenticate.js";
import { createIssuerCache, type IssuerCache, type IssuerEntry } from "./issuer-cache.js";
import { parseJwks, type UsableKeys, verifyWithKeys } from "./jwks.js";
import { assertTimes, invalidToken, MAX_ISSUER_LENGTH, type ParsedToken, type VerifiedToken } from "./token.js";

/** Keys up to this age are used without a request, in milliseconds. */
const FRESH_MS = 10 * 60_000;
/** Keys up to this age are used while the issuer cannot be reached, in milliseconds. */
const STALE_MS = 60 * 60_000;
/** The pause between two requests to an issuer, for an unknown kid or after a failure, in milliseconds. */
const PAUSE_MS = 30_000;
/** When to retry after too many concurrent requests, in milliseconds. */
const BUSY_MS = 1_000;
/** How many values the documents of an issuer may hold, nested ones included. */
const MAX_VALUES = 4_096;

/** How an issuer is registered for the use of a token. */
export interface Registration {
  /**
   * The root group of the organisation that registered it; undefined for the operator. Organisations share neither
   * fetched keys nor request slots.
   */
  readonly organisation: string | undefined;
  /** Whether it matches a pattern, so that the bearer of any token can choose it. */
  readonly byPattern?: boolean;
  /** The span of the call. Where concurrent calls share a request, it is part of the first one's trace. */
  readonly trace?: TraceSpan | undefined;
}

/** The issuers of tokens of other services. */
export interface Issuers {
  /**
   * Verifies a token with the keys of its issuer, synchronously when they are cached. The caller must have checked
   * that this issuer is registered for the use of the token, because only such issuers may be requested.
   *
   * @param nowMs the time, in epoch milliseconds
   * @throws ApiError UNAUTHENTICATED with one text for every invalid token, UNAVAILABLE when the keys cannot be
   * fetched; thrown or as a rejection
   */
  verify(token: ParsedToken, registration: Registration, nowMs?: number): Promise<VerifiedToken> | VerifiedToken;
}

export interface IssuersOptions {
  readonly fetch: GuardedFetch;
  readonly clock: Clock;
  /** Whether an issuer is this service, whose tokens could be exchanged without end. */
  readonly isOwnIssuer: (issuer: string) => boolean;
  /** Called with an issuer whose keys could not be fetched and the reason, for the operator's log. */
  readonly onProblem?: (issuer: string, reason: string) => void;
  readonly cache?: IssuerCache;
  /** Counts the verifications that had the keys, and those that requested them first. */
  readonly counts?: CacheCounts;
}

type FetchContext = Pick<GuardedRequest, "organisation" | "unproven" | "trace">;

/** Creates the issuers with an empty cache. */
export function createIssuers({
  fetch,
  clock,
  isOwnIssuer,
  onProblem,
  cache = createIssuerCache(),
  counts,
}: IssuersOptions): Issuers {
  const running = new Map<string, Promise<void>>();

  // A time in the future means that the clock was set back, so the age is unknown.
  const isWithin = (sinceMs: number | undefined, spanMs: number) => {
    if (sinceMs === undefined) return false;
    const age = clock() - sinceMs;
    return age >= 0 && age < spanMs;
  };

  async function attempt(issuer: string, fetchContext: FetchContext): Promise<void> {
    try {
      const keys = await discover(issuer, (url) => fetchObject(url, fetch, { ...fetchContext, issuer }));
      const nowMs = clock();
      const proven = cache.find(fetchContext.organisation, issuer)?.proven ?? false;
      cache.set(fetchContext.organisation, issuer, { keys, fetchedMs: nowMs, attemptMs: nowMs, failed: false, proven });
      if (!keys.any) onProblem?.(issuer, "it has no usable keys");
    } catch (error) {
      // The issuer was not requested, so its state is unchanged.
      if (error instanceof GuardedFetchError && error.isBusy) return;
      onProblem?.(issuer, error instanceof OutboundError ? error.message : "it cannot be reached");
      const known = cache.find(fetchContext.organisation, issuer);
      const { keys, fetchedMs = 0, proven = false } = known ?? {};
      cache.set(fetchContext.organisation, issuer, { keys, fetchedMs, attemptMs: clock(), failed: true, proven });
    }
  }

  // Fetches the keys unless that happened a moment ago; concurrent callers share one request.
  async function refresh(issuer: string, { organisation, byPattern, trace }: Registration): Promise<void> {
    const known = cache.find(organisation, issuer);
    const unproven = byPattern === true && known?.proven !== true;
    const name = JSON.stringify([organisation, unproven, issuer]);
    let attempting = running.get(name);
    if (attempting === undefined) {
      if (isWithin(known?.attemptMs, PAUSE_MS)) return;
      attempting = attempt(issuer, { organisation, unproven, trace }).finally(() => running.delete(name));
      running.set(name, attempting);
    }
    await attempting;
  }

  function issuerUnavailable(entry: IssuerEntry | undefined): ApiError {
    const retryMs = entry?.failed ? entry.attemptMs + PAUSE_MS - clock() : BUSY_MS;
    return unavailable("the keys of the token's issuer cannot be obtained", retryMs);
  }

  async function verifyAfterRefresh(token: ParsedToken, registration: Registration, nowMs: number) {
    await refresh(token.issuer, registration);
    if (counts) counts.entries = cache.size();
    const entry = cache.find(registration.organisation, token.issuer);
    if (entry?.keys === undefined || !isWithin(entry.fetchedMs, STALE_MS)) throw issuerUnavailable(entry);
    // The issuer may have a new key, which cannot be fetched now.
    if (lacksKey(token, entry.keys) && entry.failed) throw issuerUnavailable(entry);
    return verifyAndProve(token, registration, entry, entry.keys, nowMs);
  }

  function verifyAndProve(
    token: ParsedToken,
    { organisation }: Registration,
    entry: IssuerEntry,
    keys: UsableKeys,
    nowMs: number,
  ): VerifiedToken {
    const verified = verifyWithKeys(token, keys, nowMs);
    if (!entry.proven) cache.set(organisation, token.issuer, { ...entry, proven: true });
    return verified;
  }

  return {
    verify(token, registration, nowMs = clock()) {
      if (isOwnIssuer(token.issuer)) throw invalidToken("token_issuer", "is one of ours");
      assertTimes(token, nowMs);
      const entry = cache.find(registration.organisation, token.issuer);
      if (entry?.keys === undefined || !isWithin(entry.fetchedMs, FRESH_MS) || lacksKey(token, entry.keys)) {
        if (counts) counts.misses++;
        return verifyAfterRefresh(token, registration, nowMs);
      }
      if (counts) counts.hits++;
      return verifyAndProve(token, registration, entry, entry.keys, nowMs);
    },
  };
}

function lacksKey({ header: { kid } }: ParsedToken, keys: UsableKeys): boolean {
  return kid !== undefined && !keys.has(kid);
}

type Document = Readonly<Record<string, unknown>>;

async function discover(issuer: string, fetchObject: (url: string) => Promise<Document>): Promise<UsableKeys> {
  if (!isIssuer(issuer)) throw new OutboundError("it is not written as issuers are");
  const base = issuer.endsWith("/") ? issuer.slice(0, -1) : issuer;
  const metadata = await fetchObject(`${base}/.well-known/openid-configuration`);
  // Compared byte by byte: another spelling is another issuer (OpenID Connect Discovery 1.0, section 4.3).
  if (metadata.issuer !== issuer) throw new OutboundError("its metadata are of another issuer");
  if (typeof metadata.jwks_uri !== "string") throw new OutboundError("its metadata have no jwks_uri");
  const jwks = await fetchObject(metadata.jwks_uri);
  // An empty list replaces the cached keys; a missing list is an error.
  if (!Array.isArray(jwks.keys)) throw new OutboundError("its jwks_uri leads to no JWK Set");
  return parseJwks(jwks);
}

// Where a pattern registers issuers, the token determines the rest of the URL. So the URL must have its canonical
// spelling, with a host and a path only.
function isIssuer(text: string): boolean {
  if (text.length > MAX_ISSUER_LENGTH || !URL.canParse(text)) return false;
  const { href, username, password, pathname } = new URL(text);
  if ((href !== text && href !== `${text}/`) || username !== "" || password !== "") return false;
  return !/[?#]/.test(text) && !/\/\/|%[01]|%7f/i.test(pathname);
}

async function fetchObject(
  url: string,
  fetch: GuardedFetch,
  fetchContext: FetchContext & { readonly issuer: string },
): Promise<Document> {
  const { status, headers, bytes } = await fetch(url, { headers: { accept: "application/json" }, ...fetchContext });
  if (status !== 200) throw new OutboundError(`it answered with status ${status}`);
  // File stores serve these documents with all kinds of content types, but never as HTML.
  if (/html/i.test(headers.get("content-type") ?? "")) throw new OutboundError("it answered with a page");
  const object = parseJsonObject(bytes, MAX_VALUES);
  if (object === undefined) throw new OutboundError("it did not answer with a plain JSON object");
  return object;
}
