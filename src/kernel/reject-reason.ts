/** Why requests are rejected: a closed list, so that logs and metrics have the same words and metrics a bound. */
export const rejectReasons = [
  /** The request has no credential where one is required. */
  "token_missing",
  /** The Authorization header or the token in it does not have the form of one. */
  "token_malformed",
  /** The token was valid and has expired. */
  "token_expired",
  /** No key of its issuer has the id that the token names. */
  "token_unknown_key",
  /** The signature is not that of the key, or of an algorithm that is not accepted. */
  "token_signature",
  /** The token is of another issuer, or in an exchange of this service. */
  "token_issuer",
  "token_audience",
  /** The token has claims that are not accepted, such as a time in the future. */
  "token_claims",
  /** The tokens of the identity were revoked after this one was issued. */
  "token_revoked",
  /** The identity that the token names does not exist any more. */
  "identity_deleted",
  /** The directory of the provider has deactivated or deleted the person. */
  "person_deactivated",
  /** The identity that an exchange names does not exist. */
  "identity_unknown",
  /** The identity that an exchange names cannot be assumed with such a credential. */
  "identity_relationship",
  /** The token's issuer is not that of the identity; and so on. */
  "match_issuer",
  "match_subject",
  "match_audience",
  /** A custom claim is not the one that the identity requires. */
  "match_claim",
  /** A condition of the identity on the claims of the token is not satisfied. */
  "match_condition",
  /** The issuer guard of the organisation does not allow the issuer, its claims, or such an identity. */
  "match_guard",
  /** The signer of a request to AWS is not the account, user or role of the identity. */
  "match_aws",
  /** The identity provider that an exchange names does not exist. */
  "provider_unknown",
  /** The person whom a login provider asserts is not registered, or may not register. */
  "person_unknown",
  /** The request that is signed for AWS is not for this service and identity, or AWS rejects it. */
  "aws_request",
  /** Another credential is wrong: a refresh token, an OAuth code, an ID token of this service. */
  "credential",
  /** A quota is reached. */
  "quota",
  /** Too many requests of this caller or address failed before. */
  "rate",
  /** The request or its response is larger than allowed. */
  "size",
  /** The bytes that requests and responses may hold are used up. */
  "buffers",
  /** Too many streams are open. */
  "streams",
  /** The request has waited for its turn for as long as it may. */
  "max_wait",
  /** As many requests wait as may, most of them of the address of this one. */
  "queue_full",
  /** The bodies of waiting requests are larger than allowed together. */
  "unread_bytes",
  /** The unit of work has waited for the database for as long as it may. */
  "database",
  "address_requests",
  "address_connections",
  /** As many connections are open as the process may have. */
  "connections",
  /** The body comes in more pieces than it may. */
  "pieces",
  /** The request is not valid HTTP. */
  "malformed",
  "headers_too_large",
  "request_timeout",
] as const;

/** Why a request was rejected. */
export type RejectReason = (typeof rejectReasons)[number];
