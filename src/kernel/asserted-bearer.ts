/**
 * What the bearer of another issuer's token asks for, and what the token says. Nothing of it is verified: it is for the
 * log of refused requests alone.
 */
export interface AssertedBearer {
  /** The uid of the identity to assume; empty for the person who is the token's subject. */
  readonly identity: string;
  /** The uid of the organisation's provider of that person; empty where the request names none. */
  readonly identityProvider: string;
  /** Undefined of a request that is signed for AWS. */
  readonly issuer?: string;
  readonly subject?: string;
  readonly audiences?: readonly string[];
  /** The name of the custom claim that the identity requires and the token lacks. */
  readonly claim?: string;
  /** The first condition that the claims of a verified token do not satisfy. Never a value of it or of the token. */
  readonly condition?: NotedCondition;
}

/** A condition that is not satisfied, without values. */
export interface NotedCondition {
  /** The path and the test, such as `repository_id equals`. */
  readonly condition: string;
  /** The type that the claim must have. */
  readonly wanted: string;
  /** The type that it has. */
  readonly found: string;
}

/** Where the bearer of a request is noted, such as the record of the request. */
export interface BearerNote {
  bearer: AssertedBearer | undefined;
}
