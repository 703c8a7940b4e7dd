import { timestampMs } from "@bufbuild/protobuf/wkt";
import { LRUCache } from "lru-cache";
import type { Identity_StaticKeys } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { MAX_STATIC_KEY_VALUES } from "../../iam/identities/relationship.js";
import { hasFewValues } from "../../kernel/strict-json.js";
import { type UsableKeys, usableKeys, verifyWithDecoy, verifyWithKeys } from "../upstream/jwks.js";
import { type ParsedToken, refused, type VerifiedToken } from "../upstream/token.js";
import { notAssumable, requireAudience, requireForeignIssuer } from "./audience.js";

/** Texts whose keys are kept, in bytes together. */
const MAX_PARSED = 16 * 1024 * 1024;
const parsed = new LRUCache<string, UsableKeys>({
  maxSize: MAX_PARSED,
  sizeCalculation: (keys, text) => 2 * text.length + keys.bytes + 256,
});

/** How long a token may live that serves as a password, in seconds: as long as the keys of an identity may. */
export const MAX_PASSWORD_LIFE_S = 365 * 24 * 3600;

/**
 * Verifies a token with the keys that stand on the identity it is to be exchanged for; nothing is
 * fetched. Issuer, subject and a stated audience are compared byte for byte, and those first that need
 * no keys, so that a token for another identity is told nothing about these.
 *
 * @param ownAudiences the URLs of this service: its issuer and its base URL
 * @param identityUid the uid of the identity that is to be assumed
 * @param nowMs the time, in epoch milliseconds
 * @param maxLifeS how long the token may live, in seconds; a day unless given. It ends with the keys anyway
 * @throws ApiError PERMISSION_DENIED, with the text of an unknown identity, when issuer, subject or the
 * stated audience differs; UNAUTHENTICATED when the keys have expired or do not verify the token, when
 * none are readable, and when the token is by this service or, no audience being stated, not for it.
 */
export function verifyStaticKeys(
  keys: Identity_StaticKeys,
  token: ParsedToken,
  ownAudiences: readonly string[],
  identityUid: string,
  nowMs: number,
  maxLifeS?: number,
): VerifiedToken {
  const { issuer, subject, issuerKeys, expirationTime, audiences } = keys;
  requireForeignIssuer(token.issuer, ownAudiences);
  if (token.issuer !== issuer || token.subject !== subject) {
    verifyWithDecoy(token);
    throw notAssumable(identityUid);
  }
  if (expirationTime === undefined || nowMs >= timestampMs(expirationTime)) {
    verifyWithDecoy(token);
    throw refused("is for an identity whose keys have expired");
  }
  const verified = verifyWithKeys(token, keysIn(issuerKeys), nowMs, maxLifeS);
  const stated = audiences.length === 0 ? undefined : (audience: string) => audiences.includes(audience);
  requireAudience(verified.audiences, stated, ownAudiences, identityUid);
  return verified;
}

// Any text may stand on an identity; only with the first token does it matter whether it holds keys.
function keysIn(text: string): UsableKeys {
  let keys = parsed.get(text);
  if (keys === undefined) {
    keys = usableKeys(keySetOf(text));
    parsed.set(text, keys);
  }
  return keys;
}

function keySetOf(text: string): unknown {
  // Texts that were stored before they were limited.
  if (!hasFewValues(text, MAX_STATIC_KEY_VALUES)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
