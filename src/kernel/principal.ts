import type { CapabilitySet } from "./capability-set.js";

/** What a token may be used for. It only ever takes away from what its bearer may do. */
export interface TokenLimit {
  /** The capabilities it is good for; all unless set. */
  readonly cap?: CapabilitySet;

  /** The groups that it is good for, with what lies below them; all unless set. */
  readonly scope?: readonly string[];
}

/** What a verified API token says of its bearer. */
export interface Principal {
  /** The uid of the identity that calls (the token's `sub`). */
  readonly identityUid: string;

  /** The id of the token (`jti`), recorded in the audit log. */
  readonly tokenId: string;

  /** When the token was issued, in epoch seconds; compared with the identity's `notBefore`. */
  readonly issuedAt: number;

  /** When the token stops being valid, in epoch seconds, without leeway. */
  readonly expiresAt: number;

  /** What the token may be used for; everything unless set. */
  readonly limit?: TokenLimit;

  /** The uids of the mappings that the groups of the bearer's directory satisfied when it signed in. */
  readonly mappings?: readonly string[];
}
