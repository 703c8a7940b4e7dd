import { signApiToken } from "../auth/api-token.js";
import type { Ids } from "../kernel/ids.js";
import type { KeyRing } from "./key-ring.js";

/** A token to issue. */
export interface TokenRequest {
  readonly issuer: string;
  readonly audience: string;
  /** The uid of the identity it speaks for. */
  readonly identity: string;
  /** Life in seconds; never more than an hour. */
  readonly lifeS: number;
  readonly nowMs: number;
}

/** Signs an API token with the key in use (spec section 5). */
export function issueToken(request: TokenRequest, keys: KeyRing, ids: Ids): Promise<string> {
  const { issuer, audience, identity, lifeS, nowMs } = request;
  const issuedAt = Math.floor(nowMs / 1000);
  const claims = { issuer, audience, subject: identity, tokenId: ids.newId(), issuedAt, lifeS };
  return signApiToken(claims, keys.signing());
}
