// What a token says that a service has refused. Services do not tell callers why, but whoever holds the token may know what
// it says of itself. Nothing is verified, and the token itself is never part of the text.
import { formatTime } from "../../output/time.js";
import { decodePart, isTime } from "./token-claims.js";

/** How much of a claim is printed, in characters. */
const MAX_CLAIM = 200;

/** Where a token was sent. */
export interface TokenUse {
  /** The audience that the service expects. */
  readonly audience: string;
  /** Whether the token was that of another issuer, in exchange for one of the service. */
  readonly isUpstream: boolean;
  /** The issuer of the service's own tokens, where it is known. */
  readonly issuer?: string;
  /** Whether the service has named its reason, so that it knows the token. */
  readonly isVerified?: boolean;
}

/**
 * Describes what a refused token says of itself, in words that go on from what it is in.
 *
 * @returns the reasons why it may have been refused, the surest first; or else who it is for
 */
export function describeToken(token: string, use: TokenUse, nowMs: number): string[] {
  const { audience, isUpstream, issuer, isVerified = false } = use;
  const text = token.trim();
  if (text === "") return ["is empty"];
  const claims = decodeClaims(text);
  if (claims === undefined) {
    return [
      "does not hold a JWT, which is three parts with dots between them: is it the whole token, and nothing but the token?",
    ];
  }
  const { iss, sub, aud, exp, nbf, iat } = claims;
  // All else follows from this: the token is for an exchange.
  if (!isUpstream && issuer !== undefined && iss !== undefined && iss !== issuer) return [describeForeign(iss)];
  const faults: string[] = [];
  const missing = ["iss", "sub", "exp"].filter((name) => claims[name] === undefined);
  if (missing.length > 0) faults.push(`has a token without the claim ${missing.join(", ")}`);
  if (isTime(exp) && exp * 1000 <= nowMs) faults.push(`has a token that expired at ${formatTime(exp * 1000)}`);
  const startS = [nbf, iat].find((time) => isTime(time) && time * 1000 > nowMs);
  if (isTime(startS)) {
    faults.push(`has a token that is valid from ${formatTime(startS * 1000)} on: is the clock of this machine right?`);
  }
  const audiences = [aud].flat().filter((one) => typeof one === "string");
  if (!audiences.some((one) => trimUrl(one) === trimUrl(audience))) {
    const found = audiences.length === 0 ? "no audience" : `the audience ${audiences.map(quote).join(", ")}`;
    const exception = isUpstream ? ", unless the identity names another" : "";
    faults.push(`has a token with ${found}; expected is ${audience}${exception}`);
  }
  if (faults.length > 0) return faults;
  if (!isUpstream) {
    return issuer === undefined || isVerified
      ? []
      : ["has a token that this service did not sign, or that was revoked"];
  }
  return [`has a token of the issuer ${quote(iss)} with the subject ${quote(sub)}: is the identity for exactly these?`];
}

function describeForeign(issuer: unknown): string {
  const how = "arbor auth login --identity UID --identity-token FILE";
  return `has a token of the issuer ${quote(issuer)}, not of this service: exchange it with: ${how}`;
}

/** The claims of a JWT (RFC 7519); undefined for any other text. */
function decodeClaims(token: string): Readonly<Record<string, unknown>> | undefined {
  const claims = decodePart(token, 1);
  const isJwt =
    token.split(".").length === 3 && decodePart(token, 0).alg !== undefined && Object.keys(claims).length > 0;
  return isJwt ? claims : undefined;
}

// As the service compares them.
function trimUrl(audience: string): string {
  return audience.replace(/\/$/, "").replace(/^https?:\/\//, "");
}

function quote(claim: unknown): string {
  return JSON.stringify(typeof claim === "string" ? claim.slice(0, MAX_CLAIM) : claim);
}
