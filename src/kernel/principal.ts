import type { CapabilitySet } from "./capability-set.js";

/** What a token may be used for: a restriction of what its bearer may do. */
export interface TokenLimit {
  /** The allowed capabilities; all unless set. */
  readonly cap?: CapabilitySet;

  /** The groups where it may be used, with their descendants; all unless set. */
  readonly scope?: readonly string[];
}

/** The claims of a verified API token. */
export interface Principal {
  /** The uid of the calling identity (the token's `sub`). */
  readonly identityUid: string;

  /** The id of the token (`jti`), recorded in the audit log. */
  readonly tokenId: string;

  /** The key that signed the token (its `kid`); absent where the caller brought no API token. */
  readonly keyId?: string;

  /** When the token was issued, in epoch seconds; compared with the identity's `notBefore`. */
  readonly issuedAt: number;

  /**
   * When all tokens of the identity had been revoked last, as the issuer of this one read it, in epoch milliseconds; absent
   * for never. A token is valid until the next such revocation, whatever the clocks say.
   */
  readonly revokeTimeMs?: number;

  /** When the token expires, in epoch seconds, without leeway. */
  readonly expiresAt: number;

  /** What the token may be used for; no restriction unless set. */
  readonly limit?: TokenLimit;

  /** The uids of the mappings that the bearer's directory groups satisfied at sign-in. */
  readonly mappings?: readonly string[];
}
