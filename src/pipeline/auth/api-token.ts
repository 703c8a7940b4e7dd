// API tokens: JWTs that this service signs and only this service verifies. The verifier accepts exactly what the
// signer makes, byte for byte; whatever else JOSE allows is rejected (RFC 8725).
import { type KeyObject, verify } from "node:crypto";
import {
  algorithmOf,
  encodeJwt,
  SIGNATURE_LENGTHS,
  type SigningKey,
  signingOptions,
  tokenAlgorithms,
  type UnsignedJwt,
} from "../../kernel/jws.js";
import type { Principal, TokenLimit } from "../../kernel/principal.js";
import type { RejectReason } from "../../kernel/reject-reason.js";
import { isUidp } from "../../kernel/uidp.js";

/** The header `typ` of API tokens (RFC 9068). */
const TYPE = "at+jwt";
/** The longest life of an API token in seconds (docs/api-rules.md#tokens). */
export const MAX_TOKEN_LIFE_S = 3600;
/** How far clocks may differ, in seconds. */
export const LEEWAY_S = 30;
/** The longest API token, in characters. */
export const MAX_TOKEN_LENGTH = 8192;
/** The largest number of audiences of a token. */
export const MAX_AUDIENCES = 8;
/** At most this many groups limit a token. */
export const MAX_SCOPES = 32;
/** At most this many mappings of a directory's groups count in a token. */
export const MAX_MAPPINGS = 32;

export interface TokenClaims {
  readonly issuer: string;
  /** One audience, or several. */
  readonly audience: string | readonly string[];
  /** The uid of the identity. */
  readonly subject: string;
  readonly tokenId: string;
  /** Epoch seconds. */
  readonly issuedAt: number;
  /** See {@link Principal.revokeTimeMs}; left out for 0. */
  readonly revokeTimeMs?: number | undefined;
  /** Seconds, at most {@link MAX_TOKEN_LIFE_S}. */
  readonly lifeS: number;
  /** What its bearer may use it for; everything unless set. */
  readonly limit?: TokenLimit | undefined;
  /** The uids of the mappings that the groups of its bearer's directory satisfy. */
  readonly mappings?: readonly string[] | undefined;
  /** Further claims for readers of the token, such as `act` and `email`; no decision depends on them. */
  readonly informative?: Readonly<Record<string, unknown>> | undefined;
}

/** Encodes an API token, which `signJwt` signs. */
export function encodeApiToken(claims: TokenClaims, key: SigningKey): UnsignedJwt {
  const { issuer, audience, subject, tokenId, issuedAt, revokeTimeMs, lifeS, limit, mappings, informative } = claims;
  const payload = {
    ...informative,
    iss: issuer,
    sub: subject,
    aud: audience,
    iat: issuedAt,
    exp: issuedAt + Math.min(lifeS, MAX_TOKEN_LIFE_S),
    jti: tokenId,
    ...(revokeTimeMs && { rev: revokeTimeMs }),
    ...(limit && { lim: limit }),
    ...(mappings?.length && { map: mappings }),
  };
  return encodeJwt(TYPE, payload, key);
}

/** Who may have issued a token, and for whom. */
export interface TokenPolicy {
  readonly issuer: string;
  /** Any of these, a trailing slash more or less. */
  readonly audiences: readonly string[];
}

/** The rule that a token breaks. */
export type TokenFault = Extract<
  RejectReason,
  "token_malformed" | "token_signature" | "token_issuer" | "token_audience" | "token_claims" | "token_expired"
>;

/** Parses the key id in the header of a token; undefined unless the token has the form of an API token. */
export function parseKeyId(token: string): string | undefined {
  if (token.length > MAX_TOKEN_LENGTH) return undefined;
  const parts = token.split(".");
  if (parts.length !== 3 || parts.some((part) => !isCanonicalBase64url(part))) return undefined;
  const header = parseCanonical(parts[0] ?? "");
  if (header === undefined || Object.keys(header).sort().join() !== "alg,kid,typ") return undefined;
  const { alg, kid, typ } = header;
  const algorithm = tokenAlgorithms.find((one) => one === alg);
  // Another length is another algorithm or another encoding.
  if (algorithm === undefined || parts[2]?.length !== SIGNATURE_LENGTHS[algorithm]) return undefined;
  if (typeof kid !== "string" || typeof typ !== "string" || typ.toLowerCase() !== TYPE) return undefined;
  return kid;
}

/**
 * Verifies a token with the key that its {@link parseKeyId} names. The type of the key decides the algorithm.
 *
 * @param nowMs epoch milliseconds
 * @returns who bears it, or the first rule that it breaks; `token_expired` when nothing else is wrong with it
 */
export function verifyApiToken(
  token: string,
  key: KeyObject,
  policy: TokenPolicy,
  nowMs: number,
): Principal | TokenFault {
  const end = token.lastIndexOf(".");
  const signature = Buffer.from(token.slice(end + 1), "base64url");
  const input = Buffer.from(token.slice(0, end));
  const algorithm = algorithmOf(key);
  // The header must name the algorithm that is used, so that other verifiers judge the token alike.
  if (parseCanonical(token.slice(0, token.indexOf(".")))?.alg !== algorithm) return "token_malformed";
  if (!verify("sha256", input, { key, ...signingOptions[algorithm] }, signature)) return "token_signature";
  const claims = parseCanonical(token.slice(token.indexOf(".") + 1, end));
  if (claims === undefined) return "token_malformed";
  if (claims.iss !== policy.issuer) return "token_issuer";
  if (!admitsAudience(claims.aud, policy.audiences)) return "token_audience";
  const { exp, iat, nbf = 0, sub, jti } = claims;
  if (![exp, iat, nbf].every((time) => Number.isSafeInteger(time))) return "token_claims";
  const [expiresAt, issuedAt, notBefore] = [Number(exp), Number(iat), Number(nbf)];
  const now = nowMs / 1000;
  if (issuedAt > now + LEEWAY_S || notBefore > now + LEEWAY_S) return "token_claims";
  if (expiresAt - issuedAt > MAX_TOKEN_LIFE_S || expiresAt <= issuedAt) return "token_claims";
  if (typeof sub !== "string" || !isUidp(sub) || typeof jti !== "string" || jti === "" || jti.length > 128)
    return "token_claims";
  const revokeTimeMs = claims.rev;
  if (revokeTimeMs !== undefined && !(Number.isSafeInteger(revokeTimeMs) && Number(revokeTimeMs) > 0))
    return "token_claims";
  const limit = claims.lim === undefined ? undefined : parseTokenLimit(claims.lim);
  // A limit that this version cannot parse must not be taken for no limit.
  if (limit === null || (claims.map !== undefined && !areUids(claims.map, MAX_MAPPINGS))) return "token_claims";
  const principal: Principal = {
    identityUid: sub,
    tokenId: jti,
    issuedAt,
    expiresAt,
    ...(revokeTimeMs !== undefined && { revokeTimeMs: Number(revokeTimeMs) }),
    ...(limit && { limit }),
    ...(claims.map !== undefined && { mappings: claims.map }),
  };
  return isExpired(principal, nowMs) ? "token_expired" : principal;
}

function parseTokenLimit(lim: unknown): TokenLimit | null {
  if (typeof lim !== "object" || lim === null) return null;
  const { cap, scope, ...rest } = lim as Record<string, unknown>;
  if (Object.keys(rest).length > 0 || (cap === undefined && scope === undefined)) return null;
  if (cap !== undefined && !(typeof cap === "string" && /^[0-9a-f]{64}$/.test(cap))) return null;
  if (scope !== undefined && !areUids(scope, MAX_SCOPES)) return null;
  return { ...(cap !== undefined && { cap }), ...(scope !== undefined && { scope }) };
}

function areUids(value: unknown, most: number): value is string[] {
  return Array.isArray(value) && value.length <= most && value.every((uid) => typeof uid === "string" && isUidp(uid));
}

/** Whether a verified token has run out since, the leeway included. */
export function isExpired(principal: Principal, nowMs: number): boolean {
  return nowMs / 1000 > principal.expiresAt + LEEWAY_S;
}

function admitsAudience(aud: unknown, accepted: readonly string[]): boolean {
  const given: unknown[] = Array.isArray(aud) ? aud : [aud];
  if (given.length > MAX_AUDIENCES) return false;
  return given.some((one) => typeof one === "string" && accepted.some((ours) => trimSlash(ours) === trimSlash(one)));
}

function trimSlash(audience: string): string {
  return audience.endsWith("/") ? audience.slice(0, -1) : audience;
}

function isCanonicalBase64url(text: string): boolean {
  return text !== "" && Buffer.from(text, "base64url").toString("base64url") === text;
}

// Parses a JSON object that is spelled as JSON.stringify spells it. This excludes duplicate keys, which parsers read
// differently.
function parseCanonical(part: string): Record<string, unknown> | undefined {
  const bytes = Buffer.from(part, "base64url");
  const text = bytes.toString();
  // Decoding replaces whatever is not UTF-8, so the text must encode to the same bytes.
  if (!Buffer.from(text).equals(bytes)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    return JSON.stringify(value) === text ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
