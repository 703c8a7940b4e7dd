// Tokens of other issuers (RFC 7519; OpenID Connect Core 1.0, section 2). They
// are read strictly, cheapest checks first, before anything is looked up: what
// two readers could understand differently, or what asks for a key of its own
// choice, is refused (RFC 8725).
import { type ApiError, unauthenticated } from "../../kernel/errors.js";
import { parseJsonObject } from "../../kernel/strict-json.js";
import { algorithms } from "./algorithms.js";

const MAX_TOKEN_LENGTH = 16 * 1024;
/** The longest issuer, in characters. */
export const MAX_ISSUER_LENGTH = 255;
const MAX_SUBJECT_LENGTH = 1024;
const MAX_AUDIENCES = 16;
/** How far the clocks of two installations may differ, in seconds. */
const LEEWAY_S = 60;
/**
 * The longest life of a token in seconds. Anything meant to be exchanged lives minutes; a day admits
 * the tokens that clusters mount into workloads, and refuses what is in truth a password.
 */
const MAX_LIFE_S = 24 * 3600;

/** Header parameters that bring a key along, say where one is, or change how the token is read. */
const FORBIDDEN = ["crit", "jwk", "jku", "x5c", "x5u"];
/** Kinds of token that may be exchanged. Others (`logout+jwt`, `secevent+jwt`) were signed for other ends. */
const TYPES: ReadonlySet<string> = new Set(["jwt", "at+jwt", "jose"]);

/** A foreign token, decoded strictly but not verified. Times are in epoch seconds, perhaps with a fraction. */
export interface ParsedToken {
  readonly header: { readonly alg: string; readonly kid?: string | undefined };
  /** Every claim, those below included; neither it nor the objects in it have a prototype. */
  readonly claims: Readonly<Record<string, unknown>>;
  readonly issuer: string;
  readonly subject: string;
  /** At least one. */
  readonly audiences: readonly string[];
  readonly expiresAt: number;
  readonly issuedAt: number | undefined;
  /** What the signature is over (RFC 7515, section 5.1). */
  readonly signingInput: Buffer;
  readonly signature: Buffer;
}

/** The part a decision may rely on, after the signature and the times were checked. */
export type VerifiedToken = Pick<ParsedToken, "issuer" | "subject" | "audiences" | "claims" | "expiresAt" | "issuedAt">;

/**
 * Reads a token in the compact serialization (RFC 7515, section 7.1). Nothing of it may be believed yet.
 *
 * @throws ApiError UNAUTHENTICATED, with one text for every cause.
 */
export function parseUpstreamToken(text: string): ParsedToken {
  if (text.length > MAX_TOKEN_LENGTH) throw refused("is too long");
  const first = text.indexOf(".");
  const second = text.indexOf(".", first + 1);
  if (first < 0 || second < 0 || text.indexOf(".", second + 1) >= 0) throw refused("is not of three parts");
  const header = headerOf(bytesOf(text.slice(0, first)));
  const claims = parseJsonObject(bytesOf(text.slice(first + 1, second)));
  const signature = bytesOf(text.slice(second + 1));
  if (claims === undefined) throw refused("has claims that are not a plain JSON object");
  const { iss, sub, aud, exp, iat, nbf } = claims;
  if (typeof iss !== "string" || iss === "") throw refused("has no issuer");
  if (iss.length > MAX_ISSUER_LENGTH) throw refused("has an issuer that is too long");
  if (typeof sub !== "string" || sub === "" || sub.length > MAX_SUBJECT_LENGTH) throw refused("has no usable subject");
  if (typeof exp !== "number") throw refused("has no expiry");
  if (iat !== undefined && typeof iat !== "number") throw refused("has an iat that is no number");
  if (nbf !== undefined && typeof nbf !== "number") throw refused("has an nbf that is no number");
  return {
    header,
    claims,
    issuer: iss,
    subject: sub,
    audiences: audiencesOf(aud),
    expiresAt: exp,
    issuedAt: iat,
    signingInput: Buffer.from(text.slice(0, second), "latin1"),
    signature,
  };
}

/**
 * Checks the times of a token against the clock, with a minute's leeway: that it has begun, has not
 * run out, and never had longer to live than a day. A token without `iat` may have no more than a day
 * left. So none that is older than a day passes, whatever its `exp`; how young within that it must be
 * is for its issuer to say.
 *
 * @param maxLifeS another longest life, in seconds
 * @throws ApiError UNAUTHENTICATED
 */
export function checkTimes(token: ParsedToken, nowMs: number, maxLifeS = MAX_LIFE_S): void {
  const now = nowMs / 1000;
  const { expiresAt, issuedAt, claims } = token;
  if (now > expiresAt + LEEWAY_S) throw refused("has expired");
  if (typeof claims.nbf === "number" && claims.nbf > now + LEEWAY_S) throw refused("is not valid yet");
  if (issuedAt !== undefined && issuedAt > now + LEEWAY_S) throw refused("was issued in the future");
  if (issuedAt !== undefined && issuedAt > expiresAt) throw refused("expired before it was issued");
  if (expiresAt - (issuedAt ?? now) > maxLifeS) throw refused("lives longer than a day");
}

/** UNAUTHENTICATED for a token that breaks a rule. The caller sees one text; the log sees `rule`. */
export function refused(rule: string): ApiError {
  return unauthenticated(new Error(`the upstream token ${rule}`));
}

function headerOf(bytes: Buffer): ParsedToken["header"] {
  const header = parseJsonObject(bytes);
  if (header === undefined) throw refused("has a header that is not a plain JSON object");
  const { alg, kid, typ } = header;
  if (typeof alg !== "string" || !algorithms.has(alg))
    throw refused("is signed with an algorithm that is not accepted");
  if (kid !== undefined && typeof kid !== "string") throw refused("has a kid that is no string");
  if (FORBIDDEN.some((name) => name in header)) throw refused("has a header parameter that is not accepted");
  // RFC 7515, section 4.1.9: a media type in any case, of which "application/" may be left out.
  const type = typeof typ === "string" ? typ.toLowerCase().replace(/^application\//, "") : typ;
  if (type !== undefined && !(typeof type === "string" && TYPES.has(type))) throw refused("is of another type");
  return { alg, kid };
}

function audiencesOf(aud: unknown): readonly string[] {
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (audiences.length === 0 || audiences.length > MAX_AUDIENCES || !audiences.every((one) => typeof one === "string"))
    throw refused("has no usable audience");
  return audiences;
}

// Base64url in the one spelling that has no padding and no stray bits, so that a token has one too.
function bytesOf(part: string): Buffer {
  const bytes = Buffer.from(part, "base64url");
  if (part === "" || bytes.toString("base64url") !== part) throw refused("is not in canonical base64url");
  return bytes;
}
