// The keys of other issuers (OpenID Connect Discovery 1.0), kept in memory. An
// issuer that cannot be reached never makes a token valid, and nobody can make us
// ask one whose keys are known more often than every 30 s.
import type { Clock } from "../../kernel/clock.js";
import { type ApiError, unavailable } from "../../kernel/errors.js";
import { parseJsonObject } from "../../kernel/strict-json.js";
import { FetchRefused, type GuardedFetch, type GuardedRequest } from "../../outbound/guarded-fetch.js";
import { Refusal } from "../../outbound/http-request.js";
import { createIssuerCache, type IssuerCache, type IssuerEntry } from "./issuer-cache.js";
import { type UsableKeys, usableKeys, verifyWithKeys } from "./jwks.js";
import { checkTimes, MAX_ISSUER_LENGTH, type ParsedToken, refused, type VerifiedToken } from "./token.js";

/** Keys of this age are used without asking, in milliseconds. */
const FRESH_MS = 10 * 60_000;
/** Keys of this age are used when the issuer cannot be reached, in milliseconds; older ones never. */
const STALE_MS = 60 * 60_000;
/** Between two attempts at one issuer, whether for a key id that is not known or after a failure, in milliseconds. */
const PAUSE_MS = 30_000;
/** When to try again after too many other requests were under way, in milliseconds. */
const BUSY_MS = 1_000;
/** How many values the documents of an issuer may hold, nested ones included. */
const MAX_VALUES = 4_096;

/** How an issuer is registered for what a token is used for. */
export interface Registration {
  /**
   * The root group of the organisation that registered it; undefined: the operator. What one causes to
   * be fetched is neither used for nor delays another.
   */
  readonly organisation: string | undefined;
  /** Whether it is not named but matches a pattern, so that the bearer of any token can choose it. */
  readonly byPattern?: boolean;
}

/** The issuers of foreign tokens. */
export interface Issuers {
  /**
   * Verifies a token with the keys of its issuer: at once when they are in memory. The caller has made
   * sure that this issuer is registered for what the token is used for; nothing else may cause a fetch.
   *
   * @param nowMs the time, in epoch milliseconds
   * @throws ApiError UNAUTHENTICATED with one text for every fault of the token, UNAVAILABLE when the
   * keys cannot be had. Thrown, or what the promise rejects with.
   */
  verify(token: ParsedToken, registration: Registration, nowMs?: number): Promise<VerifiedToken> | VerifiedToken;
}

/** What the issuers need. */
export interface IssuersOptions {
  readonly fetch: GuardedFetch;
  readonly clock: Clock;
  /** Whether an issuer is this service: its tokens could be exchanged for ever. */
  readonly isOurs: (issuer: string) => boolean;
  /** Told of an issuer whose keys could not be had, and why: for the operator's log. */
  readonly onProblem?: (issuer: string, reason: string) => void;
  readonly cache?: IssuerCache;
}

type Lane = Pick<GuardedRequest, "organisation" | "unproven">;

/** Creates the issuers, none of them known yet. */
export function createIssuers({
  fetch,
  clock,
  isOurs,
  onProblem,
  cache = createIssuerCache(),
}: IssuersOptions): Issuers {
  const running = new Map<string, Promise<void>>();

  // A time that lies ahead means that the clock was set back: then nothing is known of any age.
  const isWithin = (sinceMs: number | undefined, spanMs: number) => {
    if (sinceMs === undefined) return false;
    const age = clock() - sinceMs;
    return age >= 0 && age < spanMs;
  };

  async function attempt(issuer: string, lane: Lane): Promise<void> {
    try {
      const keys = await discover(issuer, (url) => objectAt(url, fetch, { ...lane, issuer }));
      const nowMs = clock();
      const proven = cache.get(lane.organisation, issuer)?.proven ?? false;
      cache.set(lane.organisation, issuer, { keys, fetchedMs: nowMs, attemptMs: nowMs, failed: false, proven });
      if (!keys.any) onProblem?.(issuer, "it has no usable keys");
    } catch (error) {
      // The issuer was not asked: that says nothing about it.
      if (error instanceof FetchRefused && error.isBusy) return;
      onProblem?.(issuer, error instanceof Refusal ? error.message : "it cannot be reached");
      const known = cache.get(lane.organisation, issuer);
      const { keys, fetchedMs = 0, proven = false } = known ?? {};
      cache.set(lane.organisation, issuer, { keys, fetchedMs, attemptMs: clock(), failed: true, proven });
    }
  }

  // Asks the issuer unless that was done a moment ago; all who want it at a time wait for one attempt.
  async function refresh(issuer: string, { organisation, byPattern }: Registration): Promise<void> {
    const known = cache.get(organisation, issuer);
    const unproven = byPattern === true && known?.proven !== true;
    const name = JSON.stringify([organisation, unproven, issuer]);
    let attempting = running.get(name);
    if (attempting === undefined) {
      if (isWithin(known?.attemptMs, PAUSE_MS)) return;
      attempting = attempt(issuer, { organisation, unproven }).finally(() => running.delete(name));
      running.set(name, attempting);
    }
    await attempting;
  }

  function unreachable(entry: IssuerEntry | undefined): ApiError {
    const retryMs = entry?.failed ? entry.attemptMs + PAUSE_MS - clock() : BUSY_MS;
    return unavailable("the keys of the token's issuer cannot be obtained", retryMs);
  }

  async function verifyAfterRefresh(token: ParsedToken, registration: Registration, nowMs: number) {
    await refresh(token.issuer, registration);
    const entry = cache.get(registration.organisation, token.issuer);
    if (entry?.keys === undefined || !isWithin(entry.fetchedMs, STALE_MS)) throw unreachable(entry);
    // The key may be one that the issuer, were it there, would tell us of.
    if (lacksKeyOf(token, entry.keys) && entry.failed) throw unreachable(entry);
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
      if (isOurs(token.issuer)) throw refused("is one of ours");
      checkTimes(token, nowMs);
      const entry = cache.get(registration.organisation, token.issuer);
      if (entry?.keys === undefined || !isWithin(entry.fetchedMs, FRESH_MS) || lacksKeyOf(token, entry.keys)) {
        return verifyAfterRefresh(token, registration, nowMs);
      }
      return verifyAndProve(token, registration, entry, entry.keys, nowMs);
    },
  };
}

function lacksKeyOf({ header: { kid } }: ParsedToken, keys: UsableKeys): boolean {
  return kid !== undefined && !keys.has(kid);
}

type Document = Readonly<Record<string, unknown>>;

async function discover(issuer: string, objectAt: (url: string) => Promise<Document>): Promise<UsableKeys> {
  if (!isIssuer(issuer)) throw new Refusal("it is not written as issuers are");
  const base = issuer.endsWith("/") ? issuer.slice(0, -1) : issuer;
  const metadata = await objectAt(`${base}/.well-known/openid-configuration`);
  // Byte by byte: another spelling is another issuer (OpenID Connect Discovery 1.0, section 4.3).
  if (metadata.issuer !== issuer) throw new Refusal("its metadata are of another issuer");
  if (typeof metadata.jwks_uri !== "string") throw new Refusal("its metadata have no jwks_uri");
  const jwks = await objectAt(metadata.jwks_uri);
  // An empty list is an answer, and takes the place of what was known; no list is none.
  if (!Array.isArray(jwks.keys)) throw new Refusal("its jwks_uri leads to no JWK Set");
  return usableKeys(jwks);
}

// Where issuers are registered by a pattern, the rest of the text is the token's: it must be a URL in
// its one spelling, of which nothing but a host and a path is taken.
function isIssuer(text: string): boolean {
  if (text.length > MAX_ISSUER_LENGTH || !URL.canParse(text)) return false;
  const { href, username, password, pathname } = new URL(text);
  if ((href !== text && href !== `${text}/`) || username !== "" || password !== "") return false;
  return !/[?#]/.test(text) && !/\/\/|%[01]|%7f/i.test(pathname);
}

async function objectAt(url: string, fetch: GuardedFetch, lane: Lane & { readonly issuer: string }): Promise<Document> {
  const { status, headers, bytes } = await fetch(url, { headers: { accept: "application/json" }, ...lane });
  if (status !== 200) throw new Refusal(`it answered with status ${status}`);
  // Stores that serve these files give them all kinds of types; a page for people is none of them.
  if (/html/i.test(headers.get("content-type") ?? "")) throw new Refusal("it answered with a page");
  const object = parseJsonObject(bytes, MAX_VALUES);
  if (object === undefined) throw new Refusal("it did not answer with a plain JSON object");
  return object;
}
