// Tokens of other issuers (RFC 7519; OpenID Connect Core 1.0, section 2). They are parsed strictly, with the cheapest
// checks first, before any key is fetched. What two parsers could read differently, and tokens that choose their own
// key, are rejected (RFC 8725).
import { type ApiError, unauthenticated } from "../../kernel/errors.js";
import type { RejectReason } from "../../kernel/reject-reason.js";
import { parseJsonObject } from "../../kernel/strict-json.js";
import { algorithms } from "./algorithms.js";

const MAX_TOKEN_LENGTH = 16 * 1024;
/** The longest issuer, in characters. */
export const MAX_ISSUER_LENGTH = 255;
/** The longest subject, in characters. */
export const MAX_SUBJECT_LENGTH = 1024;
export const MAX_AUDIENCES = 16;
/** How far the clocks of two installations may differ, in seconds. */
const LEEWAY_S = 60;
/** The longest key id, in characters, of tokens and of listed keys. */
export const MAX_KID_LENGTH = 1_024;

/** Header parameters that contain or reference a key, or change how the token is read. */
const FORBIDDEN = ["crit", "jwk", "jku", "x5c", "x5u"];
/** The types of tokens that may be exchanged. Others (`logout+jwt`, `secevent+jwt`) have other purposes. */
const TYPES: ReadonlySet<string> = new Set(["jwt", "at+jwt", "jose"]);

/** A parsed token, not verified. Times are in epoch seconds and may have a fraction. */
export interface ParsedToken {
  readonly header: { readonly alg: string; readonly kid?: string | undefined };
  /** All claims. Neither this object nor the objects in it have a prototype. */
  readonly claims: Readonly<Record<string, unknown>>;
  readonly issuer: string;
  readonly subject: string;
  /** At least one. */
  readonly audiences: readonly string[];
  readonly expiresAt: number;
  readonly issuedAt: number | undefined;
  /** The signed text (RFC 7515, section 5.1). */
  readonly signingInput: Buffer;
  readonly signature: Buffer;
}

/** What the relationship of an identity is compared with. */
export type TokenClaims = Pick<ParsedToken, "issuer" | "subject" | "audiences" | "claims">;

/** The part of a token that decisions may use, after signature and times were verified. */
export type VerifiedToken = Pick<ParsedToken, "issuer" | "subject" | "audiences" | "claims" | "expiresAt" | "issuedAt">;

/**
 * Parses a token in the compact serialization (RFC 7515, section 7.1). Nothing in it is verified.
 *
 * @throws ApiError UNAUTHENTICATED, with one text for every cause.
 */
export function parseUpstreamToken(text: string): ParsedToken {
  if (text.length > MAX_TOKEN_LENGTH) throw invalidToken("token_malformed", "is too long");
  const first = text.indexOf(".");
  const second = text.indexOf(".", first + 1);
  if (first < 0 || second < 0 || text.indexOf(".", second + 1) >= 0)
    throw invalidToken("token_malformed", "is not of three parts");
  const header = parseHeader(decodeBase64url(text.slice(0, first)));
  const claims = parseJsonObject(decodeBase64url(text.slice(first + 1, second)));
  const signature = decodeBase64url(text.slice(second + 1));
  if (claims === undefined) throw invalidToken("token_malformed", "has claims that are not a plain JSON object");
  const { iss, sub, aud, exp, iat, nbf } = claims;
  if (typeof iss !== "string" || iss === "") throw invalidToken("token_claims", "has no issuer");
  if (!isIssuerClaim(iss)) throw invalidToken("token_claims", "has an issuer that is too long");
  if (!isSubjectClaim(sub)) throw invalidToken("token_claims", "has no usable subject");
  if (typeof exp !== "number") throw invalidToken("token_claims", "has no expiry");
  if (iat !== undefined && typeof iat !== "number") throw invalidToken("token_claims", "has an iat that is no number");
  if (nbf !== undefined && typeof nbf !== "number") throw invalidToken("token_claims", "has an nbf that is no number");
  const audiences = findAudiences(aud);
  if (audiences === undefined) throw invalidToken("token_audience", "has no usable audience");
  return {
    header,
    claims,
    issuer: iss,
    subject: sub,
    audiences,
    expiresAt: exp,
    issuedAt: iat,
    signingInput: Buffer.from(text.slice(0, second), "latin1"),
    signature,
  };
}

/**
 * Requires that a token is valid now, with a leeway of one minute, and that it does not live longer than allowed. Of a
 * token without `iat`, what is left of its life is compared.
 *
 * @param maxLifeS the longest life, in seconds
 * @throws ApiError UNAUTHENTICATED
 */
export function assertTimes(token: ParsedToken, nowMs: number, maxLifeS: number): void {
  const now = nowMs / 1000;
  const { expiresAt, issuedAt, claims } = token;
  if (now > expiresAt + LEEWAY_S) throw invalidToken("token_expired", "has expired");
  if (typeof claims.nbf === "number" && claims.nbf > now + LEEWAY_S)
    throw invalidToken("token_claims", "is not valid yet");
  if (issuedAt !== undefined && issuedAt > now + LEEWAY_S)
    throw invalidToken("token_claims", "was issued in the future");
  if (issuedAt !== undefined && issuedAt > expiresAt)
    throw invalidToken("token_claims", "expired before it was issued");
  if (expiresAt - (issuedAt ?? now) > maxLifeS) throw invalidToken("token_claims", "lives longer than allowed");
}

/**
 * Builds the UNAUTHENTICATED error of an invalid token. The caller gets one text for every cause.
 *
 * @param rejection what the access log and the metrics get
 * @param rule the cause of the error, for those who debug
 */
export function invalidToken(rejection: RejectReason, rule: string): ApiError {
  return unauthenticated(new UpstreamTokenError(rule), rejection);
}

/** The cause of an UNAUTHENTICATED error about an invalid token. */
export class UpstreamTokenError extends Error {
  /** What is wrong with the token, as the end of a sentence without a full stop. */
  readonly rule: string;

  constructor(rule: string) {
    super(`the upstream token ${rule}`);
    this.name = "UpstreamTokenError";
    this.rule = rule;
  }
}

/** Whether a token with this `iss` is read. */
export function isIssuerClaim(iss: unknown): iss is string {
  return typeof iss === "string" && iss !== "" && iss.length <= MAX_ISSUER_LENGTH;
}

/** Whether a token with this `sub` is read. */
export function isSubjectClaim(sub: unknown): sub is string {
  return typeof sub === "string" && sub !== "" && sub.length <= MAX_SUBJECT_LENGTH;
}

/** Finds the audiences in `aud`, which is a text or a list; undefined where a token with it is not read. */
export function findAudiences(aud: unknown): readonly string[] | undefined {
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  const isUsable =
    audiences.length > 0 && audiences.length <= MAX_AUDIENCES && audiences.every((one) => typeof one === "string");
  return isUsable ? audiences : undefined;
}

function parseHeader(bytes: Buffer): ParsedToken["header"] {
  const header = parseJsonObject(bytes);
  if (header === undefined) throw invalidToken("token_malformed", "has a header that is not a plain JSON object");
  const { alg, kid, typ } = header;
  if (typeof alg !== "string" || !algorithms.has(alg))
    throw invalidToken("token_signature", "is signed with an algorithm that is not accepted");
  if (kid !== undefined && typeof kid !== "string")
    throw invalidToken("token_malformed", "has a kid that is no string");
  if (kid !== undefined && kid.length > MAX_KID_LENGTH)
    throw invalidToken("token_malformed", "has a kid that is too long");
  if (FORBIDDEN.some((name) => name in header))
    throw invalidToken("token_malformed", "has a header parameter that is not accepted");
  // RFC 7515, section 4.1.9: a media type in any case, with or without "application/".
  const type = typeof typ === "string" ? typ.toLowerCase().replace(/^application\//, "") : typ;
  if (type !== undefined && !(typeof type === "string" && TYPES.has(type)))
    throw invalidToken("token_malformed", "is of another type");
  return { alg, kid };
}

// Accepts base64url without padding and stray bits only, so that a token has one spelling.
function decodeBase64url(text: string): Buffer {
  const bytes = Buffer.from(text, "base64url");
  if (text === "" || bytes.toString("base64url") !== text)
    throw invalidToken("token_malformed", "is not in canonical base64url");
  return bytes;
}
