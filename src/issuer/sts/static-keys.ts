import { timestampMs } from "@bufbuild/protobuf/wkt";
import { LRUCache } from "lru-cache";
import type { Identity_StaticKeys } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import type { RejectReason } from "../../kernel/reject-reason.js";
import { hasFewValues } from "../../kernel/strict-json.js";
import { MAX_STATIC_KEY_VALUES } from "../../kernel/trust-rules.js";
import { parseJwks, type UsableKeys, verifyWithDummyKey, verifyWithKeys } from "../upstream/jwks.js";
import { invalidToken, type ParsedToken, type TokenClaims, type VerifiedToken } from "../upstream/token.js";
import { notAssumable, requireAudience } from "./audience.js";

/** The size of the cache of parsed key sets, in bytes. */
const MAX_CACHED_BYTES = 16 * 1024 * 1024;
const parsedKeys = new LRUCache<string, UsableKeys>({
  maxSize: MAX_CACHED_BYTES,
  sizeCalculation: (keys, text) => 2 * text.length + keys.bytes + 256,
});

/** The longest life of a token that is used as a password, in seconds: as long as an identity's keys may live. */
export const MAX_PASSWORD_LIFE_S = 365 * 24 * 3600;

/**
 * Verifies a token with the static keys of the identity; nothing is fetched. Issuer, subject and a stated audience are
 * compared byte for byte. Issuer and subject are compared first, so that a token for another identity reveals nothing
 * about the keys.
 *
 * @param ownAudiences what the `aud` of a token for this service may be
 * @param identityUid the uid of the identity to assume
 * @param nowMs the time, in epoch milliseconds
 * @param maxLifeS the longest life of the token, in seconds. It never outlives the keys
 * @throws ApiError PERMISSION_DENIED, with the text of an unknown identity, when issuer, subject or the stated
 * audience differs; UNAUTHENTICATED when the keys have expired, cannot be parsed or do not verify the token, and when no
 * audience is stated and the token is not for this service
 */
export function verifyStaticKeys(
  keys: Identity_StaticKeys,
  token: ParsedToken,
  ownAudiences: readonly string[],
  identityUid: string,
  nowMs: number,
  maxLifeS: number,
): VerifiedToken {
  const { issuerKeys, expirationTime } = keys;
  const mismatch = findMismatch(keys, token);
  if (mismatch !== undefined) {
    verifyWithDummyKey(token);
    throw notAssumable(identityUid, mismatch);
  }
  if (expirationTime === undefined || nowMs >= timestampMs(expirationTime)) {
    verifyWithDummyKey(token);
    throw invalidToken("token_unknown_key", "is for an identity whose keys have expired");
  }
  const verified = verifyWithKeys(token, parseKeys(issuerKeys), nowMs, maxLifeS);
  requireStatedAudience(keys, verified, ownAudiences, identityUid);
  return verified;
}

/**
 * Requires the issuer, the subject and the audience that {@link verifyStaticKeys} requires, and nothing else.
 *
 * @throws ApiError as {@link verifyStaticKeys}
 */
export function requireStaticClaims(
  keys: Identity_StaticKeys,
  claims: TokenClaims,
  ownAudiences: readonly string[],
  identityUid: string,
): void {
  const mismatch = findMismatch(keys, claims);
  if (mismatch !== undefined) throw notAssumable(identityUid, mismatch);
  requireStatedAudience(keys, claims, ownAudiences, identityUid);
}

function findMismatch(keys: Identity_StaticKeys, { issuer, subject }: TokenClaims): RejectReason | undefined {
  if (issuer !== keys.issuer) return "match_issuer";
  return subject === keys.subject ? undefined : "match_subject";
}

function requireStatedAudience(
  { audiences }: Identity_StaticKeys,
  token: TokenClaims,
  ownAudiences: readonly string[],
  identityUid: string,
): void {
  const stated = audiences.length === 0 ? undefined : (audience: string) => audiences.includes(audience);
  requireAudience(token.audiences, stated, ownAudiences, identityUid);
}

// An identity may store any text as its keys; it is parsed with the first token.
function parseKeys(text: string): UsableKeys {
  let keys = parsedKeys.get(text);
  if (keys === undefined) {
    keys = parseJwks(parseJwkSet(text));
    parsedKeys.set(text, keys);
  }
  return keys;
}

function parseJwkSet(text: string): unknown {
  // Texts that were stored before the limit existed can be larger.
  if (!hasFewValues(text, MAX_STATIC_KEY_VALUES)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
