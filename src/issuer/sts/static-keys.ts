import { timestampMs } from "@bufbuild/protobuf/wkt";
import { LRUCache } from "lru-cache";
import type { Identity_StaticKeys } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { MAX_STATIC_KEY_VALUES } from "../../iam/identities/relationship.js";
import { hasFewValues } from "../../kernel/strict-json.js";
import { parseJwks, type UsableKeys, verifyWithDummyKey, verifyWithKeys } from "../upstream/jwks.js";
import { invalidToken, type ParsedToken, type VerifiedToken } from "../upstream/token.js";
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
  const { issuer, subject, issuerKeys, expirationTime, audiences } = keys;
  if (token.issuer !== issuer || token.subject !== subject) {
    verifyWithDummyKey(token);
    throw notAssumable(identityUid, token.issuer === issuer ? "match_subject" : "match_issuer");
  }
  if (expirationTime === undefined || nowMs >= timestampMs(expirationTime)) {
    verifyWithDummyKey(token);
    throw invalidToken("token_unknown_key", "is for an identity whose keys have expired");
  }
  const verified = verifyWithKeys(token, parseKeys(issuerKeys), nowMs, maxLifeS);
  const stated = audiences.length === 0 ? undefined : (audience: string) => audiences.includes(audience);
  requireAudience(verified.audiences, stated, ownAudiences, identityUid);
  return verified;
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
