// Says which condition of the token exchange failed, to callers who may change the identity. The errors of the exchange
// name their reason for the log only.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Condition, type TestClaimsResponseSchema } from "#gen/arbor/access/v1/access_pb.js";
import type { Relationship } from "../../iam/identities/relationship.js";
import { formatClaimPath, formatCondition } from "../../kernel/claim-condition.js";
import { ApiError } from "../../kernel/errors.js";
import type { RejectReason } from "../../kernel/reject-reason.js";
import { KEYS_UNAVAILABLE, KeysUnavailable } from "../upstream/issuers.js";
import { type TokenClaims, UpstreamTokenError } from "../upstream/token.js";
import { InvalidClaim } from "./audience.js";
import { AwsMismatch, type AwsOutcome, AwsRequestError } from "./aws.js";
import { ConditionMismatch, findClaim, noteCondition } from "./conditions.js";

export type TestResult = MessageInitShape<typeof TestClaimsResponseSchema>;

/** What was tested. */
export interface Tested {
  readonly relationship: Relationship;
  /** Whether the identity is a person. */
  readonly isPerson: boolean;
  /** Undefined of a request that is signed for AWS. */
  readonly claims: TokenClaims | undefined;
  /** The usual audience of a token for this service. */
  readonly audience: string;
}

/** The reasons that the exchange has for the token of an identity that exists. */
type Reason = Exclude<
  Extract<RejectReason, `token_${string}` | `match_${string}` | "identity_relationship">,
  "token_missing" | "token_revoked" | "match_claim" | "match_aws"
>;

const conditions: Readonly<Record<Reason, Condition>> = {
  token_malformed: Condition.FORM,
  token_expired: Condition.TIME,
  // Of a token that can be read, nothing but its times.
  token_claims: Condition.TIME,
  token_unknown_key: Condition.SIGNATURE,
  token_signature: Condition.SIGNATURE,
  token_issuer: Condition.ISSUER,
  token_audience: Condition.AUDIENCE,
  identity_relationship: Condition.RELATIONSHIP,
  match_issuer: Condition.ISSUER,
  match_subject: Condition.SUBJECT,
  match_audience: Condition.AUDIENCE,
  match_condition: Condition.ON_CLAIMS,
  match_guard: Condition.ISSUER_GUARD,
};

/** The conditions of a signed request to AWS, and what fails. */
const awsConditions: Readonly<Record<AwsOutcome, readonly [Condition, string]>> = {
  "invalid encoding": [Condition.FORM, "The token is neither a JWT nor a signed request to AWS"],
  "invalid request": [Condition.FORM, "The signed request to AWS is not accepted"],
  "unsigned binding headers": [
    Condition.SIGNATURE,
    "The signature does not cover host, x-amz-date, chainguard-audience and chainguard-identity",
  ],
  "audience mismatch": [Condition.AUDIENCE, "The chainguard-audience of the signed request is not this service"],
  "identity mismatch": [Condition.AUDIENCE, "The chainguard-identity of the signed request is another identity"],
  "future-dated": [Condition.TIME, "The signed request is dated in the future"],
  expired: [Condition.TIME, "The signed request has expired"],
  "rejected by AWS": [Condition.SIGNATURE, "AWS rejects the signed request"],
};

/**
 * Describes the condition that failed, with the error of the exchange.
 *
 * @throws the error itself where it is about no condition, such as a fault of the database
 */
export function describeFailure(error: unknown, tested: Tested): TestResult {
  if (!(error instanceof ApiError)) throw error;
  const { cause, rejection } = error;
  if (error instanceof KeysUnavailable) return fail(Condition.ISSUER_KEYS, sentence(KEYS_UNAVAILABLE));
  if (cause instanceof AwsRequestError) return describeAwsFailure(cause, tested);
  if (cause instanceof AwsMismatch) {
    const { what, expected, actual } = cause;
    return { ...fail(Condition.SUBJECT, `The ${what} that AWS names is not that of the identity.`), expected, actual };
  }
  if (cause instanceof ConditionMismatch) return describeMismatch(cause, tested);
  if (error instanceof InvalidClaim) return describeClaim(error, tested);
  if (!isReason(rejection)) throw error;
  const condition = conditions[rejection];
  return { ...fail(condition, explain(rejection, cause, tested)), ...compareClaim(condition, tested) };
}

/**
 * Describes a token that cannot be read.
 *
 * @throws the error itself where it is about something else
 */
export function describeUnreadable(error: unknown): TestResult {
  if (!(error instanceof ApiError && error.cause instanceof UpstreamTokenError)) throw error;
  return fail(Condition.FORM, sentence(`the token ${error.cause.rule}`));
}

function fail(failed: Condition, message: string) {
  return { accepted: false, failed, message };
}

function isReason(rejection: RejectReason | undefined): rejection is Reason {
  return rejection !== undefined && Object.hasOwn(conditions, rejection);
}

function describeAwsFailure({ outcome, detail }: AwsRequestError, { audience }: Tested): TestResult {
  const [condition, text] = awsConditions[outcome];
  const expected = outcome === "audience mismatch" ? audience : "";
  return { ...fail(condition, sentence(detail === undefined ? text : `${text}: ${detail}`)), expected };
}

// What the guard requires is for those who may read it; the token is known to whoever tests it.
function describeMismatch({ condition, ofGuard }: ConditionMismatch, { claims: tested }: Tested): TestResult {
  const claims = tested?.claims ?? {};
  const { wanted, found } = noteCondition(condition, claims);
  const claim = formatClaimPath(condition.path);
  const by = ofGuard ? "the issuer guard of the organisation" : "the identity";
  const isOtherType = found !== wanted && wanted !== "any" && wanted !== "missing";
  const rule =
    found === "missing"
      ? "is missing"
      : isOtherType
        ? `is of the type ${found}, and must be of the type ${wanted}`
        : "is not what it accepts";
  return {
    ...fail(
      ofGuard ? Condition.ISSUER_GUARD : Condition.ON_CLAIMS,
      `A condition of ${by}: the claim ${claim} ${rule}.`,
    ),
    claim,
    expected: ofGuard ? "" : formatCondition(condition),
    actual: formatActual(findClaim(claims, condition.path)),
  };
}

function formatActual(value: unknown): string {
  if (Number.isNaN(value)) return "a number that a double does not hold";
  return value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
}

function describeClaim({ claim, expected }: InvalidClaim, { claims }: Tested): TestResult {
  const value = Object.hasOwn(claims?.claims ?? {}, claim) ? claims?.claims[claim] : undefined;
  const actual = formatActual(value);
  const isComparable = typeof value === "string" || typeof value === "boolean";
  const rule =
    value === undefined
      ? "is missing"
      : isComparable
        ? "is not what the identity accepts"
        : "is neither text nor boolean";
  return { ...fail(Condition.CLAIM, `The claim ${claim} ${rule}.`), claim, expected, actual };
}

/** The claim of a condition: its name, what the identity accepts and what the token has. */
function compareClaim(
  condition: Condition,
  { relationship, claims, audience }: Tested,
): Pick<TestResult, "claim" | "expected" | "actual"> {
  const { issuer, subject, audiences } = claims ?? { issuer: "", subject: "", audiences: [] };
  const accepted = findAccepted(relationship);
  switch (condition) {
    case Condition.ISSUER:
      return { claim: "iss", expected: accepted.issuer ?? "", actual: issuer };
    case Condition.ISSUER_GUARD:
      return relationship.case === "claimMatch" ? { claim: "iss", actual: issuer } : {};
    case Condition.SUBJECT:
      return { claim: "sub", expected: accepted.subject ?? "", actual: subject };
    case Condition.AUDIENCE:
      return { claim: "aud", expected: accepted.audience ?? audience, actual: audiences.join(", ") };
    default:
      return {};
  }
}

interface AcceptedClaims {
  readonly issuer?: string | undefined;
  readonly subject?: string | undefined;
  /** Undefined where the token must be for this service. */
  readonly audience?: string | undefined;
}

function findAccepted(relationship: Relationship): AcceptedClaims {
  if (relationship.case === "claimMatch") {
    const { iss, sub, aud } = relationship.value;
    return { issuer: iss.value, subject: sub.value, audience: aud.value };
  }
  if (relationship.case !== "staticKeys") return {};
  const { issuer, subject, audiences } = relationship.value;
  return { issuer, subject, audience: audiences.join(", ") || undefined };
}

function explain(reason: Reason, cause: unknown, tested: Tested): string {
  switch (reason) {
    case "identity_relationship":
      return explainRelationship(tested);
    case "match_issuer":
      return "The issuer of the token is not the one that the identity accepts.";
    case "match_subject":
      return "The subject of the token is not one that the identity accepts.";
    case "match_audience":
      return "The token has no audience that the identity accepts.";
    case "match_guard":
      return explainGuard(tested);
    case "token_audience":
      return "The token is for another audience than this service, and the identity accepts no other.";
    default:
      return sentence(`the token ${cause instanceof UpstreamTokenError ? cause.rule : "is not accepted"}`);
  }
}

function explainGuard({ relationship }: Tested): string {
  return relationship.case === "claimMatch"
    ? "The issuer guard of the organisation does not allow the issuer of the token."
    : "The issuer guard of the organisation does not allow identities that are assumed in this way.";
}

function explainRelationship({ relationship, isPerson }: Tested): string {
  switch (relationship.case) {
    case "claimMatch":
      return "The identity is assumed with a token whose claims match, and not with a request that is signed for AWS.";
    case "staticKeys":
      return "The identity is assumed with a token that its keys verify, and not with a request that is signed for AWS.";
    case "awsIdentity":
      return "The identity is assumed with a GetCallerIdentity request that an AWS user or role has signed.";
    case "servicePrincipal":
      return "The identity is that of a component of the service, and no token assumes it.";
    default:
      return isPerson
        ? "The identity is a person, who signs in with a login provider, and no token assumes it."
        : "The identity has no relationship, so that no token assumes it.";
  }
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
