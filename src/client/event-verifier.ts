// Verification of the events that the service delivers to a sink: who has signed one, for which subscription, and
// that its data and its attributes are what was signed.
import { createHash } from "node:crypto";
import { types } from "node:util";
import type { JWTVerifyGetKey } from "jose";
import { assertMayCarryToken, serviceUrl } from "./token-source.js";

/** How old the token of an event may be, in seconds: the service makes one for each attempt. */
const MAX_AGE_SECONDS = 300;
/** How far the clocks of the service and of this machine may differ unless set, in seconds. */
const TOLERANCE_SECONDS = 300;
/** How long the discovery document of the issuer may take, in milliseconds. */
const DISCOVERY_MS = 10_000;
/** The audience of all tokens of events. */
const AUDIENCE = "customer";
/** The algorithms with which the service signs. Others, such as `none` or a shared secret, are never accepted. */
const ALGORITHMS = ["RS256", "ES256"];

/** The options of {@link eventVerifier}. */
export interface EventVerifierOptions {
  /** The issuer of the service, as its discovery document names it: https, or http on this machine. */
  readonly issuer: string;
  /** The uid of the group that the subscription is in. */
  readonly group: string;
  /** The uid of the subscription. With it, a token for another subscription of the group is refused. */
  readonly subscription?: string;
  /**
   * Whether to refuse tokens that prove neither the attributes nor the subscription: those of a service before version 1.8.
   * Unless set they are accepted, and of their events only the data is proven.
   */
  readonly requireAttributes?: boolean;
  /** How far the clocks of the service and of this machine may differ in either direction, in seconds; 300 unless set. */
  readonly toleranceSeconds?: number;
  /** Tells the time in epoch milliseconds; tests replace it. */
  readonly clock?: () => number;
}

/** The headers of a request: those of Node, or of fetch. */
export type EventHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** An event that the service has sent to this subscription. */
export interface VerifiedEvent {
  /** The id, the same in all attempts and for all subscriptions. */
  readonly id: string;
  /** Such as `dev.chainguard.api.iam.group.created.v1`. */
  readonly type: string;
  readonly source: string;
  /** The uid of what was changed; empty where nothing has one. */
  readonly subject: string;
  /** When the change was recorded, in RFC 3339. */
  readonly time: string;
  /** The extension attributes, such as `group`, `actor` and `bodytype`. */
  readonly extensions: Readonly<Record<string, string>>;
  /** The data: who has made the change, and the resource. */
  readonly data: EventData;
  /** Whether this verifier has seen the event within the last minutes: it is sent again until it is accepted. */
  readonly repeated: boolean;
}

/** The data of an event. */
export interface EventData {
  readonly actor?: { readonly subject?: string; readonly act?: Readonly<Record<string, string>> };
  /** The resource after the change, or the request of a deletion, in the JSON of the message `bodytype`. */
  readonly body?: unknown;
}

/** Why a request is not accepted as an event. */
export class EventRejected extends Error {
  override readonly name = "EventRejected";
  /**
   * The HTTP status to answer: 400 for what is no event, 401 without a token, 403 for a token that does not prove the
   * event, 503 while the keys of the issuer cannot be read, so that the service tries again.
   */
  readonly status: 400 | 401 | 403 | 503;

  constructor(status: EventRejected["status"], message: string, cause?: unknown) {
    super(message, { cause });
    this.status = status;
  }
}

/**
 * Verifies a request.
 *
 * @param body the raw body, exactly as it was received: not what a parser made of it
 * @throws EventRejected for a request that is no event of the service for the group
 */
export type VerifyEvent = (headers: EventHeaders, body: Uint8Array | string) => Promise<VerifiedEvent>;

/**
 * Creates a function that verifies events. It reads the keys of the issuer when it first needs them, and again when
 * they change. It remembers for some minutes which tokens it has accepted, and accepts none twice; each attempt of the
 * service has its own.
 *
 * @throws TypeError for an issuer whose keys could be replaced on the way, for an empty uid, and for a tolerance that is no
 * number of seconds
 */
export function eventVerifier(options: EventVerifierOptions): VerifyEvent {
  const { issuer, group, subscription, requireAttributes = false } = options;
  const { toleranceSeconds = TOLERANCE_SECONDS, clock = Date.now } = options;
  assertMayCarryToken(serviceUrl(issuer, "issuer"), "issuer");
  if (group === "") throw new TypeError("group must be the uid of a group");
  if (subscription === "") throw new TypeError("subscription must be the uid of a subscription");
  if (!(toleranceSeconds >= 0 && toleranceSeconds < Number.POSITIVE_INFINITY))
    throw new TypeError("toleranceSeconds must be a number of seconds from 0");
  const getKey = createKeySource(issuer);
  // No token is accepted for longer.
  const rememberMs = (MAX_AGE_SECONDS + 2 * toleranceSeconds) * 1_000;
  const tokens = new RecentTexts(rememberMs);
  const ids = new RecentTexts(rememberMs);

  return async function verifyEvent(headers, body) {
    if (typeof body !== "string" && !types.isUint8Array(body))
      throw new EventRejected(400, "verifyEvent needs the raw body, as bytes or text: this one was parsed already");
    const received = listHeaders(headers);
    const token = readToken(received.find(([name]) => name === "authorization")?.[1]);
    const attributes = readAttributes(received);
    const { specversion, id, source, type, subject = "", time = "", ...extensions } = Object.fromEntries(attributes);
    if (specversion !== "1.0") throw new EventRejected(400, "ce-specversion must be 1.0");
    if (!id || !source || !type) throw new EventRejected(400, "ce-id, ce-source and ce-type are required");
    const nowMs = clock();
    assertProven(await verifyToken(token, nowMs), body, attributes);
    // Only after all other checks, so that nobody fills the memory with tokens of their own.
    // The signature is left out: whoever has one can write others that are valid, such as with ES256.
    const unsigned = token.slice(0, token.lastIndexOf("."));
    if (tokens.has(unsigned, nowMs)) throw new EventRejected(403, "the token was used before");
    const data = parseData(body);
    tokens.add(unsigned, nowMs);
    const repeated = ids.has(id, nowMs);
    ids.add(id, nowMs);
    return { id, type, source, subject, time, extensions, data, repeated };
  };

  function assertProven(claim: WebhookClaim, body: Uint8Array | string, attributes: Attributes): void {
    if (claim.digest !== digestOf(body)) throw new EventRejected(403, "the data is not what was signed");
    if (requireAttributes && (claim.attributes === undefined || claim.subscription === undefined))
      throw new EventRejected(403, "the token does not prove the attributes: the service is older than version 1.8");
    if (claim.attributes !== undefined && claim.attributes !== digestOf(formatAttributes(attributes)))
      throw new EventRejected(403, "the attributes are not what was signed");
    if (subscription !== undefined && claim.subscription !== undefined && claim.subscription !== subscription)
      throw new EventRejected(403, "the token is for another subscription of the group");
  }

  async function verifyToken(token: string, nowMs: number): Promise<WebhookClaim> {
    // Loaded only where there is something to verify: most programs that use the client make calls.
    const { jwtVerify } = await import("jose");
    try {
      const { payload } = await jwtVerify<{ readonly webhook?: WebhookClaim }>(token, getKey, {
        ...{ issuer, audience: AUDIENCE, subject: `webhook:${group}`, algorithms: ALGORITHMS },
        ...{ maxTokenAge: MAX_AGE_SECONDS, clockTolerance: toleranceSeconds, requiredClaims: ["exp"] },
        currentDate: new Date(nowMs),
      });
      return payload.webhook ?? {};
    } catch (error) {
      if (error instanceof EventRejected) throw error;
      throw new EventRejected(403, describeTokenError(error), error);
    }
  }
}

/** What a token proves. Services before version 1.8 have the digest of the data alone. */
interface WebhookClaim {
  readonly digest?: unknown;
  readonly attributes?: unknown;
  readonly subscription?: unknown;
}

/** The values of attributes by their names; those that are empty are absent. */
type Attributes = ReadonlyMap<string, string>;

function describeTokenError(error: unknown): string {
  const { code, claim } = error as { readonly code?: unknown; readonly claim?: unknown };
  if (code === "ERR_JWT_EXPIRED") return "the token has expired";
  if (code === "ERR_JWT_CLAIM_VALIDATION_FAILED") return `the token has another ${claim}`;
  return "the token is not one of the issuer";
}

// RFC 6750, section 2.1. The scheme is case-insensitive.
function readToken(authorization = ""): string {
  const token = /^bearer +([\w.~+/-]+=*)$/i.exec(authorization)?.[1];
  if (token === undefined) throw new EventRejected(401, "authorization must be a bearer token");
  return token;
}

type Header = readonly [name: string, value: string];

function listHeaders(headers: EventHeaders): Header[] {
  const pairs = headers instanceof Headers ? [...headers] : Object.entries(headers);
  return pairs.flatMap(([name, values = []]) => [values].flat().map((value) => [name.toLowerCase(), value] as const));
}

// CloudEvents HTTP binding 1.0, section 3.1.3: names have the prefix `ce-`, and values are percent-encoded. An attribute has
// one value: of two, the one that is verified might not be the one that another reader of the request takes.
function readAttributes(headers: readonly Header[]): Attributes {
  const attributes = new Map<string, string>();
  for (const [header, value] of headers) {
    if (!header.startsWith("ce-")) continue;
    const name = header.slice("ce-".length);
    if (attributes.has(name)) throw new EventRejected(400, `${header} has more than one value`);
    attributes.set(name, decode(value));
  }
  // An empty value is none, but two of which one is empty are two.
  return new Map([...attributes].filter(([, value]) => value !== ""));
}

// The form is that of docs/events.md: one line for each attribute, with the length of its value before that.
function formatAttributes(attributes: Attributes): string {
  const sorted = [...attributes].sort(([one], [other]) => (one < other ? -1 : 1));
  return sorted.map(([name, value]) => `${name}=${Buffer.byteLength(value)}:${value}\n`).join("");
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function digestOf(body: Uint8Array | string): string {
  return `sha256:${createHash("sha256").update(body).digest("hex")}`;
}

function parseData(body: Uint8Array | string): EventData {
  try {
    const data: unknown = JSON.parse(typeof body === "string" ? body : Buffer.from(body).toString("utf8"));
    if (typeof data === "object" && data !== null) return data;
  } catch {
    // Falls through: the error of the parser would repeat the data.
  }
  throw new EventRejected(400, "the data is no JSON object");
}

/** Reads the keys of an issuer by its discovery document, which is read once. */
function createKeySource(issuer: string): JWTVerifyGetKey {
  let found: Promise<JWTVerifyGetKey> | undefined;
  return async (header, token) => {
    try {
      found ??= discover(issuer);
      return await (await found)(header, token);
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (code === "ERR_JWKS_NO_MATCHING_KEY" || code === "ERR_JWKS_MULTIPLE_MATCHING_KEYS") throw error;
      found = undefined;
      throw new EventRejected(503, `the keys of ${issuer} cannot be read`, error);
    }
  };
}

async function discover(issuer: string): Promise<JWTVerifyGetKey> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(DISCOVERY_MS) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  const document = (await response.json()) as { readonly issuer?: unknown; readonly jwks_uri?: unknown };
  if (document.issuer !== issuer) throw new Error(`${url} is of another issuer`);
  const keys = serviceUrl(String(document.jwks_uri), "jwks_uri");
  assertMayCarryToken(keys, "jwks_uri");
  const { createRemoteJWKSet } = await import("jose");
  return createRemoteJWKSet(keys);
}

/** Texts that were added within the last minutes, as hashes: a text may be long. */
class RecentTexts {
  readonly #rememberMs: number;
  // In the order in which they were added.
  readonly #until = new Map<string, number>();

  constructor(rememberMs: number) {
    this.#rememberMs = rememberMs;
  }

  has(text: string, nowMs: number): boolean {
    return (this.#until.get(hash(text)) ?? 0) > nowMs;
  }

  add(text: string, nowMs: number): void {
    for (const [old, untilMs] of this.#until) {
      if (untilMs > nowMs) break;
      this.#until.delete(old);
    }
    const key = hash(text);
    this.#until.delete(key);
    this.#until.set(key, nowMs + this.#rememberMs);
  }
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
