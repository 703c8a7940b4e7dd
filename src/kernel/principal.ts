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
}
