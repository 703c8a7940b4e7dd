// The keys of other issuers (OpenID Connect Discovery 1.0), cached in memory. No token is valid while the keys of its
// issuer cannot be fetched. An issuer may have a new key since a second ago, so a token whose key is not known causes a
// request; all tokens together cause at most five in 30 s to an issuer with cached keys.
import { sha256 } from "../../kernel/digest.js";
import { ApiError, unavailable } from "../../kernel/errors.js";
import type { RejectReason } from "../../kernel/reject-reason.js";
import { parseJsonObject } from "../../kernel/strict-json.js";
import type { Clock } from "../../kernel/time.js";
import type { TraceSpan } from "../../kernel/trace.js";
import { type GuardedFetch, GuardedFetchError, type GuardedRequest } from "../../outbound/guarded-fetch.js";
import { OutboundError } from "../../outbound/outbound-error.js";
import type { CacheCounts } from "../../pipeline/auth/authenticate.js";
import { createIssuerCache, type IssuerCache, type IssuerEntry } from "./issuer-cache.js";
import { parseJwks, type UsableKeys, verifyWithKeys } from "./jwks.js";
import type { OperatorKeys } from "./operator-keys.js";
import { assertTimes, invalidToken, MAX_ISSUER_LENGTH, type ParsedToken, type VerifiedToken } from "./token.js";

/** Keys up to this age are used without a request, in milliseconds. */
const FRESH_MS = 10 * 60_000;
/** Keys up to this age are used while the issuer cannot be reached, in milliseconds. */
const STALE_MS = 60 * 60_000;
/** The pause after a failed request to an issuer, and between two for the same unknown key, in milliseconds. */
const PAUSE_MS = 30_000;
/** The requests for unknown keys to an issuer in that time, with the one that fetched its keys. */
const MAX_REQUESTS = 5;
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
  /** The longest life of a token, in seconds. */
  readonly maxTokenLifeS: number;
  /** The keys that the operator gives, in place of those that issuers publish. */
  readonly operatorKeys?: OperatorKeys;
  readonly cache?: IssuerCache;
  /** Counts the verifications that had the keys, and those that requested them first. */
  readonly counts?: CacheCounts;
}

type FetchContext = Pick<GuardedRequest, "organisation" | "unproven" | "trace" | "issuer" | "forKeys">;

/** Creates the issuers with an empty cache. */
export function createIssuers({
  fetch,
  clock,
  isOwnIssuer,
  onProblem,
  maxTokenLifeS,
  operatorKeys,
  cache = createIssuerCache(),
  counts,
}: IssuersOptions): Issuers {
  const running = new Map<string, Promise<boolean>>();

  // A time in the future means that the clock was set back, so the age is unknown.
  const isWithin = (sinceMs: number | undefined, spanMs: number) => {
    if (sinceMs === undefined) return false;
    const age = clock() - sinceMs;
    return age >= 0 && age < spanMs;
  };

  const findRecent = (entry: IssuerEntry | undefined) =>
    entry?.attempts.filter(({ atMs }) => isWithin(atMs, PAUSE_MS)) ?? [];

  // Whether the issuer was requested.
  async function attempt(issuer: string, sought: string, fetchContext: FetchContext): Promise<boolean> {
    const { organisation } = fetchContext;
    const find = () => cache.find(organisation, issuer);
    const addAttempt = () => [...findRecent(find()), { atMs: clock(), sought }];
    try {
      const url = operatorKeys?.urlOf(issuer);
      const keys = await (url === undefined
        ? discover(issuer, fetch, fetchContext)
        : fetchKeys(url, fetch, fetchContext));
      const proven = find()?.proven ?? false;
      cache.set(organisation, issuer, { keys, fetchedMs: clock(), attempts: addAttempt(), failed: false, proven });
      if (!keys.any) onProblem?.(issuer, "it has no usable keys");
    } catch (error) {
      // The issuer was not requested, so its state is unchanged.
      if (error instanceof GuardedFetchError && error.isBusy) return false;
      onProblem?.(issuer, error instanceof OutboundError ? error.message : "it cannot be reached");
      const { keys, fetchedMs = 0, proven = false } = find() ?? {};
      cache.set(organisation, issuer, { keys, fetchedMs, attempts: addAttempt(), failed: true, proven });
    }
    return true;
  }

  function mayRequest(entry: IssuerEntry | undefined, sought: string): boolean {
    const recent = findRecent(entry);
    if (recent.length === 0) return true;
    if (!isFetched(entry) || entry.failed) return false;
    return recent.length < MAX_REQUESTS && recent.every((one) => one.sought !== sought);
  }

  // Requests the keys, unless a request runs already, which concurrent callers share, or none may be made now.
  async function refresh(
    issuer: string,
    sought: string,
    { organisation, byPattern, trace }: Registration,
  ): Promise<"requested" | "shared" | "limited"> {
    const known = cache.find(organisation, issuer);
    const unproven = byPattern === true && known?.proven !== true;
    const name = JSON.stringify([organisation, unproven, issuer]);
    const shared = running.get(name);
    if (shared !== undefined) return shared.then(() => "shared");
    if (!mayRequest(known, sought)) return "limited";
    const attempting = attempt(issuer, sought, { organisation, unproven, trace }).finally(() => running.delete(name));
    running.set(name, attempting);
    return (await attempting) ? "requested" : "limited";
  }

  function issuerUnavailable(entry: IssuerEntry | undefined): ApiError {
    const recent = findRecent(entry);
    const awaited = entry?.failed ? recent.at(-1) : recent.at(-MAX_REQUESTS);
    if (awaited === undefined) return new KeysUnavailable(BUSY_MS);
    // Tokens with keys that nobody knows caused it, and not a fault of the issuer: it counts as a failed attempt.
    const rejection = entry?.failed ? undefined : "token_unknown_key";
    return new KeysUnavailable(awaited.atMs + PAUSE_MS - clock(), rejection);
  }

  // `rejection`: why the keys that were known before do not verify the token, if they were tried.
  async function verifyAfterRefresh(
    token: ParsedToken,
    registration: Registration,
    nowMs: number,
    rejection: unknown,
  ): Promise<VerifiedToken> {
    const { kid } = token.header;
    const sought = describeSought(token);
    for (;;) {
      const outcome = await refresh(token.issuer, sought, registration);
      if (counts) counts.entries = cache.size();
      const entry = cache.find(registration.organisation, token.issuer);
      if (!isFetched(entry) || !isWithin(entry.fetchedMs, STALE_MS)) throw issuerUnavailable(entry);
      const wasSought = !entry.failed && findRecent(entry).some((one) => one.sought === sought);
      if (rejection !== undefined && outcome === "limited") throw wasSought ? rejection : issuerUnavailable(entry);
      try {
        if (wasSought || !lacksKey(token, entry.keys)) return verifyAndProve(token, registration, entry, nowMs);
      } catch (error) {
        if (wasSought || kid !== undefined) throw error;
      }
      // A request that ran already may have begun before the key was published, so another one follows it.
      if (entry.failed || outcome !== "shared") throw issuerUnavailable(entry);
    }
  }

  function verifyAndProve(
    token: ParsedToken,
    { organisation }: Registration,
    entry: Fetched,
    nowMs: number,
  ): VerifiedToken {
    const verified = verifyWithKeys(token, entry.keys, nowMs, maxTokenLifeS);
    if (!entry.proven) cache.set(organisation, token.issuer, { ...entry, proven: true });
    return verified;
  }

  return {
    verify(token, given, nowMs = clock()) {
      if (isOwnIssuer(token.issuer)) throw invalidToken("token_issuer", "is one of ours");
      assertTimes(token, nowMs, maxTokenLifeS);
      const filed = operatorKeys?.find(token.issuer);
      if (filed !== undefined) {
        if (counts) counts.hits++;
        return verifyWithKeys(token, filed, nowMs, maxTokenLifeS);
      }
      // What the operator gives is the same for all organisations.
      const isGiven = operatorKeys?.urlOf(token.issuer) !== undefined;
      const registration = isGiven ? { ...given, organisation: undefined, byPattern: false } : given;
      const entry = cache.find(registration.organisation, token.issuer);
      // Without a kid, a key that is not known yet may verify the token.
      let rejection: unknown;
      if (isFetched(entry) && isWithin(entry.fetchedMs, FRESH_MS) && !lacksKey(token, entry.keys)) {
        try {
          const verified = verifyAndProve(token, registration, entry, nowMs);
          if (counts) counts.hits++;
          return verified;
        } catch (error) {
          if (token.header.kid !== undefined) throw error;
          rejection = error;
        }
      }
      if (counts) counts.misses++;
      return verifyAfterRefresh(token, registration, nowMs, rejection);
    },
  };
}

/** UNAVAILABLE: the keys of a token's issuer cannot be obtained now. */
export class KeysUnavailable extends ApiError {
  /** @param retryAfterMs when to retry, in milliseconds */
  constructor(retryAfterMs: number, rejection?: RejectReason) {
    const { code, reason, message, details } = unavailable(KEYS_UNAVAILABLE, retryAfterMs);
    super(code, reason, message, details, undefined, rejection);
  }
}

/** What {@link KeysUnavailable} says, without a full stop. */
export const KEYS_UNAVAILABLE = "the keys of the token's issuer cannot be obtained";

/** An issuer whose keys were fetched. */
type Fetched = IssuerEntry & { readonly keys: UsableKeys };

function isFetched(entry: IssuerEntry | undefined): entry is Fetched {
  return entry?.keys !== undefined;
}

function lacksKey({ header: { kid } }: ParsedToken, keys: UsableKeys): boolean {
  return kid !== undefined && !keys.has(kid);
}

// The key that the token names; of a token that names none, the token itself.
function describeSought({ header: { kid }, signature }: ParsedToken): string {
  return kid === undefined ? `token ${sha256(signature).toString("base64url")}` : `kid ${kid}`;
}

type Document = Readonly<Record<string, unknown>>;

async function discover(issuer: string, fetch: GuardedFetch, context: FetchContext): Promise<UsableKeys> {
  if (!isIssuer(issuer)) throw new OutboundError("it is not written as issuers are");
  const base = issuer.endsWith("/") ? issuer.slice(0, -1) : issuer;
  const metadata = await fetchObject(`${base}/.well-known/openid-configuration`, fetch, { ...context, issuer });
  // Compared byte by byte: another spelling is another issuer (OpenID Connect Discovery 1.0, section 4.3).
  if (metadata.issuer !== issuer) throw new OutboundError("its metadata are of another issuer");
  if (typeof metadata.jwks_uri !== "string") throw new OutboundError("its metadata have no jwks_uri");
  return fetchKeys(metadata.jwks_uri, fetch, { ...context, issuer, forKeys: true });
}

async function fetchKeys(url: string, fetch: GuardedFetch, context: FetchContext): Promise<UsableKeys> {
  const jwks = await fetchObject(url, fetch, context);
  // An empty list replaces the cached keys; a missing list is an error.
  if (!Array.isArray(jwks.keys)) throw new OutboundError("its keys are not a JWK Set");
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

async function fetchObject(url: string, fetch: GuardedFetch, context: FetchContext): Promise<Document> {
  const { status, headers, bytes } = await fetch(url, { headers: { accept: "application/json" }, ...context });
  if (status !== 200) throw new OutboundError(`it answered with status ${status}`);
  // File stores serve these documents with all kinds of content types, but never as HTML.
  if (/html/i.test(headers.get("content-type") ?? "")) throw new OutboundError("it answered with a page");
  const object = parseJsonObject(bytes, MAX_VALUES);
  if (object === undefined) throw new OutboundError("it did not answer with a plain JSON object");
  return object;
}
