// Identifies the bearer of another issuer's token: an identity that it may assume, or a person. What needs the network
// is verified before the transaction; the transaction decides with the rows that are stored then.
import { isDeepStrictEqual } from "node:util";
import type { Condition, IssuerGuard } from "#gen/arbor/trust/v1/trust_pb.js";
import { findAllowing, findIssuerGuard, findShutOut } from "../../iam/groups/issuer-guard.js";
import { conditionsFromJson } from "../../iam/identities/conditions.js";
import { type Relationship, relationshipFromJson } from "../../iam/identities/relationship.js";
import { oidcFromJson } from "../../iam/identity-providers/identity-provider.js";
import { derivePersonUid } from "../../iam/people/registration.js";
import { getKnownPerson } from "../../iam/people/sign-in.js";
import type { BearerNote } from "../../kernel/asserted-bearer.js";
import { invalidArgument, notPermitted, unauthenticated } from "../../kernel/errors.js";
import type { RejectReason } from "../../kernel/reject-reason.js";
import type { TraceSpan } from "../../kernel/trace.js";
import { isUidp, rootOf } from "../../kernel/uidp.js";
import type { GuardedFetch } from "../../outbound/guarded-fetch.js";
import { type IdentityRow, identityKind } from "../../store/iam/identities.js";
import { identityProviderKind } from "../../store/iam/identity-providers.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import { isLoginValid, type TokenGrant } from "../tokens.js";
import type { Issuers } from "../upstream/issuers.js";
import { verifyWithDummyKey } from "../upstream/jwks.js";
import {
  assertTimes,
  type ParsedToken,
  parseUpstreamToken,
  type TokenClaims,
  type VerifiedToken,
} from "../upstream/token.js";
import { addAudienceHint, InvalidClaim, isOwnUrl, notAssumable, requireForeignIssuer } from "./audience.js";
import { type AwsCaller, getCallerIdentity, parseAwsRequest, requireAwsMatch } from "./aws.js";
import { matchesIssuer, requireClaimMatch } from "./claim-match.js";
import { createIdentityBudget, type StepBudget } from "./claim-pattern.js";
import { ConditionMismatch, holds, noteCondition } from "./conditions.js";
import { isRejection } from "./failure-limiter.js";
import { MAX_PASSWORD_LIFE_S, requireStaticClaims, verifyStaticKeys } from "./static-keys.js";

/** The identity that a caller claims. */
export interface AssertedClaims {
  /** The uid of the identity to assume; empty for the person who is the token's subject. */
  readonly identity: string;
  /** The uid of the organisation's provider that issued the token; empty for login providers of the service. */
  readonly identityProvider: string;
  /**
   * Whether the token is used as a password, as pull tokens are. A token that is signed with static keys may then live
   * as long as the keys; for an exchange it must be short-lived.
   */
  readonly asPassword?: boolean;
  /** The span of the call, for the requests that verify the token. */
  readonly trace?: TraceSpan | undefined;
  /** The record of the request, whose log line says what the token says if the request is refused. */
  readonly record?: BearerNote | undefined;
}

/** A login provider of the service. */
export interface TrustedProvider {
  readonly issuer: string;
  readonly clientId: string;
}

/** The result of {@link verifyBearer}, outside the transaction. Only {@link decide} identifies the bearer. */
export type Proof =
  | {
      readonly by: "identity";
      readonly identity: string;
      readonly credential: IdentityCredential;
      /** The relationship that the credential was verified against, as it was stored. */
      readonly relationship: object;
      /** The record of the request, as in {@link AssertedClaims}. */
      readonly record?: BearerNote | undefined;
    }
  | { readonly by: "person"; readonly token: VerifiedToken; readonly providerUid: string | undefined };

/** The proof of a person by an ID token of this service, which only the exchange accepts. */
export interface IdTokenProof {
  readonly by: "id-token";
  readonly login: RedeemedLogin;
}

/** The login of an ID token of this service, which cannot be used again. */
export interface RedeemedLogin {
  readonly identityUid: string;
  /** What the token of the exchange is valid for. */
  readonly grant: TokenGrant;
  /** The time of the login, in epoch milliseconds. */
  readonly atMs: number;
  /** When all tokens of the identity had been revoked last, as the login read it; absent where a version before stored it. */
  readonly revokeTimeMs?: number | undefined;
}

/** The bearer of a token. */
export interface IdentifiedBearer {
  readonly identityUid: string;
  readonly mappings: readonly string[];
  /** Informative claims about the bearer, such as `act`. */
  readonly informative: Readonly<Record<string, unknown>>;
}

export interface IdentifyDeps {
  readonly store: Store;
  readonly issuers: Issuers;
  readonly fetch: GuardedFetch;
  readonly loginProviders: readonly TrustedProvider[];
  /** Origins of AWS security token services. */
  readonly stsOrigins: readonly string[];
  /** The URLs of this service. */
  readonly ownUrls: readonly string[];
  /** What the `aud` of a token for this service may be, besides its URLs. */
  readonly audiences: readonly string[];
  /** The longest life of another issuer's token, in seconds, unless it is used as a password. */
  readonly maxTokenLifeS: number;
}

/**
 * Verifies a bearer token. This may fetch the keys of its issuer, but only of an issuer that is registered for the
 * claimed identity or provider.
 *
 * @throws ApiError UNAUTHENTICATED for a token that is malformed or not valid at this time; PERMISSION_DENIED, with
 * one text, for an identity that does not exist or that the token, including its signature, does not match;
 * INVALID_ARGUMENT, also without an identity for a token of no login provider; UNAVAILABLE when the issuer cannot be reached
 */
export async function verifyBearer(
  asserted: AssertedClaims,
  bearer: string,
  nowMs: number,
  deps: IdentifyDeps,
): Promise<Proof> {
  const { identity, identityProvider, asPassword = false, trace, record } = asserted;
  for (const [field, uid] of Object.entries({ identity, identityProvider })) {
    if (uid !== "" && !isUidp(uid)) throw invalidArgument({ field, rule: "must be a uid" });
  }
  if (identity !== "" && identityProvider !== "") {
    const rule = "must be empty where identity is given";
    throw invalidArgument({ field: "identityProvider", rule });
  }
  // Both forms are parsed before anything is read, so that their errors are the same for every identity.
  if (record !== undefined) record.bearer = { identity, identityProvider };
  const token = identity === "" || isJwt(bearer) ? parseAssertedToken(asserted, bearer) : undefined;
  try {
    if (identity !== "") {
      const proof = await proveIdentity({ identity, asPassword, trace }, token ?? bearer, nowMs, deps);
      return { ...proof, record };
    }
    return await provePerson(token ?? parseUpstreamToken(bearer), { identityProvider, trace }, nowMs, deps);
  } catch (error) {
    if (error instanceof InvalidClaim && record?.bearer) record.bearer = { ...record.bearer, claim: error.claim };
    // Tokens of an organisation's provider are for its client, which nobody else may learn.
    throw token !== undefined && identityProvider === "" && isForOthers(token, deps, identity === "")
      ? addAudienceHint(error)
      : error;
  }
}

/** Whether the credential of an identity is read as a JWT, which has dots. A request that is signed for AWS has none. */
export function isJwt(bearer: string): boolean {
  return bearer.includes(".");
}

/** Parses a token, and notes what it says for the log. */
export function parseAssertedToken(
  { identity, identityProvider, record }: AssertedClaims,
  bearer: string,
): ParsedToken {
  const token = parseUpstreamToken(bearer);
  const { issuer, subject, audiences } = token;
  if (record !== undefined) record.bearer = { identity, identityProvider, issuer, subject, audiences };
  return token;
}

/** What the `aud` of a token for this service may be. */
function listAudiences({ ownUrls, audiences }: Pick<IdentifyDeps, "ownUrls" | "audiences">): readonly string[] {
  return [...ownUrls, ...audiences];
}

// Depends on the token alone, so that the hint reveals nothing. Tokens of people are for the client of a login
// provider.
function isForOthers(token: ParsedToken, deps: IdentifyDeps, ofPerson: boolean): boolean {
  const clients = ofPerson ? deps.loginProviders.filter(({ issuer }) => issuer === token.issuer) : [];
  const accepted = [...listAudiences(deps), ...clients.map(({ clientId }) => clientId)];
  return !token.audiences.some((audience) => isOwnUrl(audience, accepted));
}

async function proveIdentity(
  { identity, asPassword, trace }: Pick<AssertedClaims, "identity" | "asPassword" | "trace">,
  given: ParsedToken | string,
  nowMs: number,
  deps: IdentifyDeps,
): Promise<Extract<Proof, { by: "identity" }>> {
  const { store, issuers, fetch, stsOrigins, ownUrls, maxTokenLifeS } = deps;
  const maxLifeS = asPassword ? MAX_PASSWORD_LIFE_S : maxTokenLifeS;
  const audiences = listAudiences(deps);
  const token = typeof given === "string" ? undefined : given;
  if (token !== undefined) {
    requireForeignIssuer(token.issuer, ownUrls);
    assertTimes(token, nowMs, maxLifeS);
  }
  const expected = { stsHosts: stsOrigins, audiences, identity, nowMs };
  const request = typeof given === "string" ? parseAwsRequest(given, expected) : undefined;
  const { row, guard } = await store.read((tx) => findIdentity(tx, identity));
  const relationship = relationshipFromJson(row?.relationship ?? {});
  const organisation = rootOf(identity);
  // Before keys are fetched: none of an issuer that the organisation does not allow.
  const requireAllowed = () => {
    if (guard === undefined || allowsCredential(guard, relationship, token?.issuer)) return;
    if (token !== undefined) verifyWithDummyKey(token);
    throw notAssumable(identity, "match_guard");
  };
  const gatherCredential = async (): Promise<IdentityCredential> => {
    if (request !== undefined && relationship.case === "awsIdentity") {
      requireAllowed();
      const caller = await getCallerIdentity(request, fetch, { organisation, trace });
      return { by: "aws", caller, signedMs: request.signedMs };
    }
    if (token !== undefined && relationship.case === "staticKeys") {
      requireAllowed();
      return { by: "keys", token, maxLifeS };
    }
    if (token !== undefined && relationship.case === "claimMatch" && matchesIssuer(relationship.value, token.issuer)) {
      requireAllowed();
      const byPattern = relationship.value.iss.case === "issuerPattern";
      return { by: "claims", token: await issuers.verify(token, { organisation, byPattern, trace }, nowMs) };
    }
    if (token !== undefined) verifyWithDummyKey(token);
    if (row === undefined) throw notAssumable(identity, "identity_unknown");
    const isOtherIssuer = token !== undefined && relationship.case === "claimMatch";
    throw notAssumable(identity, isOtherIssuer ? "match_issuer" : "identity_relationship");
  };
  try {
    const credential = await gatherCredential();
    requireAssumable(relationship, credential, { identity, audiences, nowMs, budget: createIdentityBudget() });
    return { by: "identity", identity, credential, relationship: row?.relationship ?? {} };
  } catch (error) {
    throw maskIdentityError(error, identity, token?.audiences, audiences);
  }
}

// Errors that depend on the identity are the same for all, and as for an identity that does not exist.
function maskIdentityError(
  error: unknown,
  identity: string,
  audiences: readonly string[] | undefined,
  accepted: readonly string[],
) {
  if (!isRejection(error) || error instanceof InvalidClaim) return error;
  const forOthers = audiences !== undefined && !audiences.some((audience) => isOwnUrl(audience, accepted));
  return notAssumable(identity, error.rejection, forOthers, error.cause ?? error);
}

async function provePerson(
  token: ParsedToken,
  { identityProvider, trace }: Pick<AssertedClaims, "identityProvider" | "trace">,
  nowMs: number,
  { store, issuers, loginProviders, ownUrls }: IdentifyDeps,
): Promise<Proof> {
  let trusted = loginProviders.find(({ issuer }) => issuer === token.issuer);
  if (identityProvider === "" && trusted === undefined && !isOwnUrl(token.issuer, ownUrls)) {
    // Only login providers identify people; every other token is of a workload.
    throw invalidArgument({ field: "identity", subject: "", rule: "name the identity to assume" });
  }
  if (identityProvider !== "") {
    const row = await store.read((tx) => tx.table(identityProviderKind).find(identityProvider));
    trusted = row && oidcFromJson(row.oidc);
  }
  if (trusted === undefined || trusted.issuer !== token.issuer || !isIssuedFor(trusted.clientId, token)) {
    verifyWithDummyKey(token);
    throw unauthenticated(undefined, describeOtherProvider(trusted, token, identityProvider));
  }
  const providerUid = identityProvider === "" ? undefined : identityProvider;
  const organisation = providerUid === undefined ? undefined : rootOf(providerUid);
  return { by: "person", token: await issuers.verify(token, { organisation, trace }, nowMs), providerUid };
}

function describeOtherProvider(
  provider: TrustedProvider | undefined,
  token: ParsedToken,
  identityProvider: string,
): RejectReason {
  if (provider === undefined) return identityProvider === "" ? "token_issuer" : "provider_unknown";
  return provider.issuer === token.issuer ? "token_audience" : "token_issuer";
}

// OpenID Connect Core 1.0, section 3.1.3.7: with several audiences, the authorized party is the client.
function isIssuedFor(clientId: string, { audiences, claims }: VerifiedToken): boolean {
  if (!audiences.includes(clientId)) return false;
  return claims.azp === undefined ? audiences.length === 1 : claims.azp === clientId;
}

/**
 * Identifies the bearer with the rows that are stored now.
 *
 * @throws ApiError PERMISSION_DENIED, the same for an identity that does not match and one that does not exist;
 * UNAUTHENTICATED; PERMISSION_DENIED with a text of its own for a credential from before all tokens of its bearer were revoked
 */
export async function decide(
  tx: Tx,
  proof: Proof | IdTokenProof,
  nowMs: number,
  deps: Pick<IdentifyDeps, "ownUrls" | "audiences">,
): Promise<IdentifiedBearer> {
  if (proof.by === "id-token") {
    const { identityUid, grant } = proof.login;
    if (!(await isLoginValid(tx, identityUid, proof.login))) throw unauthenticated();
    return { identityUid, mappings: grant.mappings ?? [], informative: grant.informative ?? {} };
  }
  if (proof.by === "person") {
    const { token, providerUid } = proof;
    const provider = providerUid === undefined ? undefined : await tx.table(identityProviderKind).find(providerUid);
    if (provider !== undefined && !isIssuedFor(oidcFromJson(provider.oidc).clientId, token)) {
      throw unauthenticated(undefined, "token_audience");
    }
    const { issuer, subject, claims } = token;
    const person = await getKnownPerson(tx, { issuer, subject, claims, providerUid });
    await requireIssuedAfterRevocation(tx, proof);
    return person;
  }
  const { identity, credential, record } = proof;
  const found = await findIdentity(tx, identity);
  const { row } = found;
  const token = credential.by === "aws" ? undefined : credential.token;
  const audiences = listAudiences(deps);
  const budget = createIdentityBudget();
  try {
    const stored = row?.relationship ?? {};
    // The relationship is checked again only when the identity changed in the meantime.
    if (row !== undefined && !isDeepStrictEqual(stored, proof.relationship)) {
      requireAssumable(relationshipFromJson(stored), credential, { identity, audiences, nowMs, budget });
    }
    requireConditions(found, token, identity, budget);
  } catch (error) {
    const { cause } = error as { readonly cause?: unknown };
    if (cause instanceof ConditionMismatch && token !== undefined && record?.bearer) {
      record.bearer = { ...record.bearer, condition: noteCondition(cause.condition, token.claims) };
    }
    throw maskIdentityError(error, identity, token?.audiences, audiences);
  }
  requireAfterRevocation(row, credential.by === "aws" ? credential.signedMs : issuedMs(credential.token));
  const act =
    credential.by === "aws" ? { sub: credential.caller.arn, ...credential.caller } : buildActClaim(credential.token);
  return { identityUid: identity, mappings: [], informative: { act } };
}

// Otherwise whoever has a leaked credential could exchange it again after all tokens of the identity were revoked. Issuers
// date their tokens in whole seconds, so one of the second of the revocation may be from before it.
function requireAfterRevocation(row: Pick<IdentityRow, "revokeTimeMs"> | undefined, issuedMs: number): void {
  if (row === undefined || row.revokeTimeMs === 0 || issuedMs > row.revokeTimeMs) return;
  const rule = "all tokens of this identity were revoked after this one was issued: get a new one from its issuer";
  throw notPermitted(rule, "token_revoked");
}

/**
 * Requires that the token of a person was issued after all tokens of the person were revoked last, as {@link decide} does.
 * A person who is not registered has revoked none.
 *
 * @throws ApiError PERMISSION_DENIED
 */
export async function requireIssuedAfterRevocation(
  tx: Tx,
  { token, providerUid }: Extract<Proof, { by: "person" }>,
): Promise<void> {
  const { issuer, subject } = token;
  const provider = providerUid === undefined ? undefined : { uid: providerUid };
  requireAfterRevocation(
    await tx.table(identityKind).find(derivePersonUid({ issuer, subject, provider })),
    issuedMs(token),
  );
}

// A token that does not say when it was issued may be of any time.
function issuedMs({ issuedAt }: Pick<VerifiedToken, "issuedAt">): number {
  return issuedAt === undefined ? 0 : issuedAt * 1000;
}

function buildActClaim({
  issuer,
  subject,
  audiences,
}: Pick<VerifiedToken, "issuer" | "subject" | "audiences">): object {
  return { iss: issuer, sub: subject, aud: audiences.length === 1 ? audiences[0] : audiences };
}

/** A credential for an identity, after everything that needs the network was verified. */
type IdentityCredential =
  | { readonly by: "claims"; readonly token: VerifiedToken }
  | { readonly by: "keys"; readonly token: ParsedToken; readonly maxLifeS: number }
  | { readonly by: "aws"; readonly caller: AwsCaller; readonly signedMs: number };

/** What a credential is checked against, besides the relationship. */
interface AssumeContext {
  /** The uid of the identity to assume. */
  readonly identity: string;
  /** What the `aud` of a token for this service may be. */
  readonly audiences: readonly string[];
  /** The time, in epoch milliseconds. */
  readonly nowMs: number;
  /** What the patterns of the decision may cost. */
  readonly budget: StepBudget;
}

/** An identity as it is stored, and the issuer guard of its organisation. */
interface StoredIdentity {
  readonly row: IdentityRow | undefined;
  readonly guard: IssuerGuard | undefined;
}

async function findIdentity(tx: Tx, uid: string): Promise<StoredIdentity> {
  const [row, guard] = await Promise.all([tx.table(identityKind).find(uid), findIssuerGuard(tx, uid)]);
  return { row, guard };
}

// The token decides about its issuer, because an identity may accept issuers by a pattern that is older than the guard.
function allowsCredential(guard: IssuerGuard, relationship: Relationship, issuer: string | undefined): boolean {
  if (relationship.case !== "claimMatch") return findShutOut(guard, relationship) === undefined;
  return issuer !== undefined && findAllowing(guard, issuer).length > 0;
}

/**
 * Requires that the issuer guard of the organisation allows the credential, and that the claims of the token satisfy the
 * conditions of the guard and of the identity.
 *
 * @param token undefined of a request that is signed for AWS
 * @throws ApiError PERMISSION_DENIED, for the log; with a {@link ConditionMismatch} as its cause where a condition is not
 * satisfied
 */
function requireConditions(
  { row, guard }: StoredIdentity,
  token: TokenClaims | undefined,
  identity: string,
  budget: StepBudget,
): void {
  if (row === undefined) throw notAssumable(identity, "identity_unknown");
  const relationship = relationshipFromJson(row.relationship);
  if (guard !== undefined && !allowsCredential(guard, relationship, token?.issuer)) {
    throw notAssumable(identity, "match_guard");
  }
  const ofGuard =
    guard !== undefined && token !== undefined && relationship.case === "claimMatch"
      ? findAllowing(guard, token.issuer).flatMap(({ conditions }) => conditions)
      : [];
  const require = (conditions: readonly Condition[], isOfGuard: boolean) => {
    const failed = conditions.find((condition) => token === undefined || !holds(condition, token.claims, budget));
    if (failed === undefined) return;
    const reason = isOfGuard ? "match_guard" : "match_condition";
    throw notAssumable(identity, reason, false, new ConditionMismatch(failed, isOfGuard));
  };
  require(ofGuard, true);
  require(conditionsFromJson(row.conditions), false);
}

/**
 * Requires that the credential satisfies the relationship of the identity.
 *
 * @throws ApiError UNAUTHENTICATED or PERMISSION_DENIED, for the log: the difference depends on the identity, so
 * callers get one text
 */
function requireAssumable(
  relationship: Relationship,
  credential: IdentityCredential,
  { identity, audiences, nowMs, budget }: AssumeContext,
): void {
  if (relationship.case === "claimMatch" && credential.by === "claims") {
    requireClaimMatch(relationship.value, credential.token, audiences, identity, budget);
  } else if (relationship.case === "staticKeys" && credential.by === "keys") {
    verifyStaticKeys(relationship.value, credential.token, audiences, identity, nowMs, credential.maxLifeS);
  } else if (relationship.case === "awsIdentity" && credential.by === "aws") {
    requireAwsMatch(relationship.value, credential.caller, identity);
  } else {
    throw notAssumable(identity, "identity_relationship");
  }
}

/**
 * Requires that the claims of a token, whose signature and times are not known, satisfy all that the identity requires.
 *
 * @throws ApiError UNAUTHENTICATED or PERMISSION_DENIED, for the log: the difference depends on the identity
 */
export async function requireClaims(
  tx: Tx,
  claims: TokenClaims,
  identity: string,
  deps: Pick<IdentifyDeps, "ownUrls" | "audiences">,
): Promise<void> {
  const audiences = listAudiences(deps);
  const found = await findIdentity(tx, identity);
  const relationship = relationshipFromJson(found.row?.relationship ?? {});
  const budget = createIdentityBudget();
  requireForeignIssuer(claims.issuer, deps.ownUrls);
  if (relationship.case === "claimMatch") requireClaimMatch(relationship.value, claims, audiences, identity, budget);
  else if (relationship.case === "staticKeys") requireStaticClaims(relationship.value, claims, audiences, identity);
  else throw notAssumable(identity, "identity_relationship");
  requireConditions(found, claims, identity, budget);
}
