// What makes a token good, in the plainest terms and from the documents
// (docs/security.md, RFC 7519), not from the code that is tested. A mutation that
// happens to make another good token is found out here and not counted: a flipped
// bit may change the case of `at+jwt`, which is a media type, or turn one `jti`
// into another; and an edited subject may still fit a pattern.
import { createPublicKey, type KeyObject, verify } from "node:crypto";

/** What tokens must say to be good. */
export interface TokenRules {
  /** Characters. */
  readonly maxLength: number;
  /** Whether parts must be written as JSON.stringify writes them. */
  readonly oneSpelling: boolean;
  header(header: Claims): boolean;
  claims(claims: Claims, nowS: number): boolean;
  /** The private half of the key. */
  readonly key: KeyObject;
}

/** The members of a JSON object. */
export type Claims = Readonly<Record<string, unknown>>;

/**
 * Whether a time check that allows clocks to differ by `leewayS` is no certain rejection: within some
 * seconds of its limit the response depends on the moment, so a token there counts as good.
 */
export const withLeeway = (leewayS: number): number => leewayS + 5;

/** Whether a token is good. */
export function isGood(text: string, rules: TokenRules, nowS: number): boolean {
  const [first = "", second = "", third = "", ...more] = text.split(".");
  if (text.length > rules.maxLength || more.length > 0) return false;
  const [header, payload, signature] = [bytesOf(first), bytesOf(second), bytesOf(third)];
  if (header === undefined || payload === undefined || signature?.length !== signatureBytesOf(rules.key)) return false;
  const [fields, claims] = [objectIn(header, rules), objectIn(payload, rules)];
  if (fields === undefined || claims === undefined) return false;
  if (!rules.header(fields) || !rules.claims(claims, nowS)) return false;
  return verify(
    "sha256",
    Buffer.from(`${first}.${second}`),
    { key: publicHalf(rules.key), dsaEncoding: "ieee-p1363" },
    signature,
  );
}

// RFC 7518, sections 3.3 and 3.4: as long as the modulus, or two numbers of 32 bytes.
function signatureBytesOf(key: KeyObject): number {
  return key.asymmetricKeyType === "rsa" ? 256 : 64;
}

const publicHalves = new WeakMap<KeyObject, KeyObject>();

function publicHalf(key: KeyObject): KeyObject {
  const half = publicHalves.get(key) ?? createPublicKey(key);
  publicHalves.set(key, half);
  return half;
}

// RFC 7515, section 2: no padding, no line breaks; and of the spellings that a decoder takes only the
// one that an encoder gives.
function bytesOf(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, "base64url");
  return part !== "" && bytes.toString("base64url") === part ? bytes : undefined;
}

function objectIn(bytes: Buffer, { oneSpelling }: TokenRules): Claims | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    if (oneSpelling) return JSON.stringify(value) === text ? (value as Claims) : undefined;
    // What JSON.parse makes of a name given twice is one member: then fewer are left than were written.
    const written = text.replace(/"(?:[^"\\]|\\.)*"(\s*:)?/g, (_, colon?: string) => (colon ? "#" : "")).split("#");
    return isPlain(value) && written.length - 1 === membersIn(value) ? (value as Claims) : undefined;
  } catch {
    return undefined;
  }
}

/** RFC 7493: text of whole characters and numbers that a double holds, to a depth that any reader can bear. */
function isPlain(value: unknown, depth = 0): boolean {
  // Encoding puts the same replacement for every half of a surrogate pair.
  if (typeof value === "string") return Buffer.from(value).toString() === value && !value.includes("\u0000");
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  if (depth >= 64) return false;
  return Object.entries(value).every(([name, member]) => {
    return name !== "__proto__" && isPlain(name) && isPlain(member, depth + 1);
  });
}

function membersIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce<number>((sum, member) => sum + membersIn(member), own);
}

const UID = /^[0-9a-f]{40}(\/[0-9a-f]{16}){0,63}$/;

/** Whether this is a list of uids, at most `most`. */
function isUidList(value: unknown, most: number): boolean {
  return Array.isArray(value) && value.length <= most && value.every((uid) => typeof uid === "string" && UID.test(uid));
}

/** What API tokens of an installation must say. */
export interface ApiFacts {
  readonly alg: string;
  readonly kid: string;
  readonly key: KeyObject;
  readonly issuer: string;
  readonly audience: RegExp;
  /** The uids of all identities there are. */
  readonly identities: ReadonlySet<string>;
}

/** The rules of API tokens. */
export function apiRules({ alg, kid, key, issuer, audience, identities }: ApiFacts): TokenRules {
  return {
    maxLength: 8192,
    oneSpelling: true,
    key,
    header(header) {
      const typ = typeof header.typ === "string" && header.typ.toLowerCase() === "at+jwt";
      return typ && header.alg === alg && header.kid === kid && Object.keys(header).length === 3;
    },
    claims({ iss, sub, aud, iat, exp, nbf = 0, jti, lim, map }, nowS) {
      const audiences: unknown[] = Array.isArray(aud) ? aud : [aud];
      if (iss !== issuer || typeof sub !== "string" || !identities.has(sub)) return false;
      if (audiences.length > 8 || !audiences.some((one) => typeof one === "string" && audience.test(one))) return false;
      const times = [exp, iat, nbf].filter((time): time is number => Number.isSafeInteger(time));
      const [end = 0, start = 0, earliest = 0] = times;
      if (times.length !== 3 || end <= start || end - start > 3600) return false;
      const leeway = withLeeway(30);
      if (nowS > end + leeway || start > nowS + leeway || earliest > nowS + leeway) return false;
      if (typeof jti !== "string" || jti === "" || jti.length > 128) return false;
      return (lim === undefined || isLimit(lim)) && (map === undefined || isUidList(map, 32));
    },
  };
}

function isLimit(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { cap, scope } = value as Claims;
  const names = Object.keys(value);
  if (names.length === 0 || names.some((name) => name !== "cap" && name !== "scope")) return false;
  if (cap !== undefined && (typeof cap !== "string" || !/^[0-9a-f]{64}$/.test(cap))) return false;
  return scope === undefined || isUidList(scope, 32);
}

/** What tokens must say that may be exchanged for those of one identity. */
export interface ForeignFacts {
  readonly kid: string;
  readonly key: KeyObject;
  readonly issuer: string;
  readonly subject: RegExp;
  readonly audience: RegExp;
  /** Claims besides, and what each must be. */
  readonly more: Readonly<Record<string, RegExp>>;
}

/** The rules of foreign tokens. */
export function foreignRules({ kid, key, issuer, subject, audience, more }: ForeignFacts): TokenRules {
  return {
    maxLength: 16_384,
    oneSpelling: false,
    key,
    header(header) {
      const { alg, typ = "jwt" } = header;
      // The issuer has one key, which therefore need not be named.
      if (alg !== "ES256" || ("kid" in header && header.kid !== kid)) return false;
      if (["crit", "jwk", "jku", "x5c", "x5u"].some((name) => name in header)) return false;
      return typeof typ === "string" && /^(application\/)?(jwt|at\+jwt|jose)$/i.test(typ);
    },
    claims(claims, nowS) {
      const { iss, sub, aud, exp, iat, nbf } = claims;
      const audiences: unknown[] = Array.isArray(aud) ? aud : [aud];
      if (iss !== issuer || typeof sub !== "string" || sub.length > 1024 || !subject.test(sub)) return false;
      if (audiences.length > 16 || !audiences.every((one) => typeof one === "string")) return false;
      if (!audiences.some((one) => audience.test(String(one)))) return false;
      const leeway = withLeeway(60);
      if (typeof exp !== "number" || nowS > exp + leeway) return false;
      if (nbf !== undefined && (typeof nbf !== "number" || nbf > nowS + leeway)) return false;
      if (iat !== undefined && (typeof iat !== "number" || iat > nowS + leeway || iat > exp)) return false;
      // Of a token that does not say when it was issued, what is left counts, so here too the moment does.
      if (exp - (iat ?? nowS + 5) > 25 * 3600) return false;
      return Object.entries(more).every(([name, value]) => {
        const claim = Object.hasOwn(claims, name) ? claims[name] : undefined;
        return (typeof claim === "string" || typeof claim === "boolean") && value.test(String(claim));
      });
    },
  };
}
