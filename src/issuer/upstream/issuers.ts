// The keys and metadata of other issuers (OpenID Connect Discovery 1.0), kept
// in memory. An issuer that cannot be reached never makes a token valid, and
// nobody can make us ask one more often than every 30 s.
import { LRUCache } from "lru-cache";
import type { Clock } from "../../kernel/clock.js";
import { unavailable } from "../../kernel/errors.js";
import type { GuardedFetch } from "../../outbound/guarded-fetch.js";
import { jsonObjectIn } from "./json-object.js";
import { type UsableKeys, usableKeys, verifyWithKeys } from "./keys.js";
import { Refusal } from "../../outbound/refusal.js";
import { checkTimes, type ParsedToken, refused, type VerifiedToken } from "./token.js";

/** Keys of this age are used without asking, in milliseconds. */
const FRESH_MS = 10 * 60_000;
/** Keys of this age are used when the issuer cannot be reached, in milliseconds; older ones never. */
const STALE_MS = 60 * 60_000;
/** Between two attempts at one issuer, whether for a key id that is not known or after a failure, in milliseconds. */
const PAUSE_MS = 30_000;
/** How many issuers are kept. */
const MAX_ISSUERS = 200;
/** How many attempts are remembered: more, so that issuers which fail do not push out those which do not. */
const MAX_ATTEMPTS = 2_000;
const MAX_ISSUER_LENGTH = 255;

/** What another issuer publishes of itself. */
export type IssuerMetadata = Readonly<Record<string, unknown>>;

/** The issuers of foreign tokens. */
export interface Issuers {
  /**
   * Verifies a token with the keys of its issuer: at once when they are in memory. The caller has made
   * sure that this issuer is registered for what the token is used for; nothing else may cause a fetch.
   *
   * @throws ApiError UNAUTHENTICATED with one text for every fault of the token, UNAVAILABLE when the
   * keys cannot be had. Thrown, or what the promise rejects with.
   */
  verify(token: ParsedToken, nowMs?: number): Promise<VerifiedToken> | VerifiedToken;
  /**
   * The OpenID Provider metadata of a registered issuer; `issuer` and `jwks_uri` in it were checked.
   *
   * @throws ApiError UNAVAILABLE
   */
  metadata(issuer: string): Promise<IssuerMetadata>;
}

/** What the issuers need. */
export interface IssuersOptions {
  readonly fetch: GuardedFetch;
  readonly clock: Clock;
  /** Whether an issuer is this service: its tokens could be exchanged for ever. */
  readonly isOurs: (issuer: string) => boolean;
  /** Told of an issuer whose keys could not be had, and why: for the operator's log. */
  readonly onProblem?: (issuer: string, reason: string) => void;
}

interface Known {
  readonly metadata: IssuerMetadata;
  readonly keys: UsableKeys;
  readonly atMs: number;
}

interface Attempt {
  readonly atMs: number;
  readonly failed: boolean;
}

/** Creates the issuers, none of them known yet. */
export function createIssuers({ fetch, clock, isOurs, onProblem }: IssuersOptions): Issuers {
  const known = new LRUCache<string, Known>({ max: MAX_ISSUERS });
  const attempts = new LRUCache<string, Attempt>({ max: MAX_ATTEMPTS });
  const running = new Map<string, Promise<void>>();

  // A time that lies ahead means that the clock was set back: then nothing is known of any age.
  const isWithin = (sinceMs: number | undefined, spanMs: number) => {
    if (sinceMs === undefined) return false;
    const age = clock() - sinceMs;
    return age >= 0 && age < spanMs;
  };

  function freshOf(issuer: string): Known | undefined {
    const found = known.get(issuer);
    return isWithin(found?.atMs, FRESH_MS) ? found : undefined;
  }

  async function attempt(issuer: string): Promise<void> {
    let failed = false;
    try {
      const found = await discover(issuer, fetch);
      known.set(issuer, { ...found, atMs: clock() });
      if (found.keys.size === 0) onProblem?.(issuer, "it has no usable keys");
    } catch (error) {
      failed = true;
      onProblem?.(issuer, error instanceof Refusal ? error.message : "it cannot be reached");
    }
    attempts.set(issuer, { atMs: clock(), failed });
  }

  // Asks the issuer unless that was done a moment ago; all who want it at a time wait for one attempt.
  async function refresh(issuer: string): Promise<void> {
    let attempting = running.get(issuer);
    if (attempting === undefined) {
      if (isWithin(attempts.get(issuer)?.atMs, PAUSE_MS)) return;
      attempting = attempt(issuer).finally(() => running.delete(issuer));
      running.set(issuer, attempting);
    }
    await attempting;
  }

  async function usable(issuer: string): Promise<Known> {
    await refresh(issuer);
    const found = known.get(issuer);
    if (found === undefined || !isWithin(found.atMs, STALE_MS)) throw unreachable(issuer);
    return found;
  }

  function unreachable(issuer: string) {
    const { atMs } = attempts.get(issuer) ?? { atMs: clock() };
    return unavailable("the keys of the token's issuer cannot be obtained", atMs + PAUSE_MS - clock());
  }

  async function verifyAfterRefresh(token: ParsedToken, nowMs: number): Promise<VerifiedToken> {
    const { keys } = await usable(token.issuer);
    // The key may be one that the issuer, were it there, would tell us of.
    if (lacksKeyOf(token, keys) && attempts.get(token.issuer)?.failed) throw unreachable(token.issuer);
    return verifyWithKeys(token, keys, nowMs);
  }

  return {
    verify(token, nowMs = clock()) {
      if (isOurs(token.issuer)) throw refused("is one of ours");
      checkTimes(token, nowMs);
      const fresh = freshOf(token.issuer);
      if (fresh === undefined || lacksKeyOf(token, fresh.keys)) return verifyAfterRefresh(token, nowMs);
      return verifyWithKeys(token, fresh.keys, nowMs);
    },
    async metadata(issuer) {
      if (isOurs(issuer)) throw unreachable(issuer);
      const { metadata } = freshOf(issuer) ?? (await usable(issuer));
      return metadata;
    },
  };
}

function lacksKeyOf({ header: { kid } }: ParsedToken, keys: UsableKeys): boolean {
  return kid !== undefined && !keys.byKid.has(kid);
}

async function discover(issuer: string, fetch: GuardedFetch): Promise<Omit<Known, "atMs">> {
  if (!isIssuer(issuer)) throw new Refusal("it is not written as issuers are");
  const base = issuer.endsWith("/") ? issuer.slice(0, -1) : issuer;
  const metadata = await objectAt(`${base}/.well-known/openid-configuration`, issuer, fetch);
  // Byte by byte: another spelling is another issuer (OpenID Connect Discovery 1.0, section 4.3).
  if (metadata.issuer !== issuer) throw new Refusal("its metadata are of another issuer");
  if (typeof metadata.jwks_uri !== "string") throw new Refusal("its metadata have no jwks_uri");
  const jwks = await objectAt(metadata.jwks_uri, issuer, fetch);
  // An empty list is an answer, and takes the place of what was known; no list is none.
  if (!Array.isArray(jwks.keys)) throw new Refusal("its jwks_uri leads to no JWK Set");
  return { metadata, keys: usableKeys(jwks) };
}

// Where issuers are registered by a pattern, the rest of the text is the token's: it must be a URL in
// its one spelling, of which nothing but a host and a path is taken.
function isIssuer(text: string): boolean {
  if (text.length > MAX_ISSUER_LENGTH || !URL.canParse(text)) return false;
  const { href, username, password, pathname } = new URL(text);
  if ((href !== text && href !== `${text}/`) || username !== "" || password !== "") return false;
  return !/[?#]/.test(text) && !/\/\/|%[01]|%7f/i.test(pathname);
}

async function objectAt(url: string, issuer: string, fetch: GuardedFetch): Promise<IssuerMetadata> {
  const { status, headers, bytes } = await fetch(url, { issuer, headers: { accept: "application/json" } });
  if (status !== 200) throw new Refusal(`it answered with status ${status}`);
  // Stores that serve these files give them all kinds of types; a page for people is none of them.
  if (/html/i.test(headers.get("content-type") ?? "")) throw new Refusal("it answered with a page");
  const object = jsonObjectIn(bytes);
  if (object === undefined) throw new Refusal("it did not answer with a plain JSON object");
  return object;
}
