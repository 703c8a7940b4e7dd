import type { Ids } from "../kernel/ids.js";
import { signApiToken, type TokenClaims } from "../pipeline/auth/api-token.js";
import type { KeyRing } from "./keys/key-ring.js";

/** A token to issue: its claims but for those that follow from the moment. */
export interface TokenRequest extends Omit<TokenClaims, "subject" | "tokenId" | "issuedAt"> {
  /** The uid of the identity it speaks for. */
  readonly identity: string;
  readonly nowMs: number;
}

/** Signs an API token with the key in use (spec section 5). */
export function issueToken(request: TokenRequest, keys: Pick<KeyRing, "signing">, ids: Ids): string {
  const { identity, nowMs, ...claims } = request;
  return signApiToken(
    { ...claims, subject: identity, tokenId: ids.newId(), issuedAt: Math.floor(nowMs / 1000) },
    keys.signing(),
  );
}
