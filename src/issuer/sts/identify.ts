// Who bears a foreign token: an identity that it may assume, or a person. In two
// steps: what needs the network goes before the transaction, and within it the
// decision is taken on what is stored then.
import { isDeepStrictEqual } from "node:util";
import { relationshipFromJson } from "../../iam/identities/relationship.js";
import { oidcFromJson } from "../../iam/identity-providers/identity-provider.js";
import { getKnownPerson } from "../../iam/people/sign-in.js";
import { invalidArgument, unauthenticated } from "../../kernel/errors.js";
import { isUidp, rootOf } from "../../kernel/uidp.js";
import type { GuardedFetch } from "../../outbound/guarded-fetch.js";
import type { Store, Tx } from "../../store/port.js";
import { verifyWithDecoy } from "../upstream/decoy.js";
import type { Issuers } from "../upstream/issuers.js";
import { checkTimes, type ParsedToken, parseUpstreamToken, type VerifiedToken } from "../upstream/token.js";
import { isOurName, requireForeignIssuer } from "./audience.js";
import { parseAwsRequest } from "./aws.js";
import { askAws } from "./aws-caller.js";
import { admitsIssuer } from "./claim-match.js";
import { type Evidence, requireAssumable } from "./evidence.js";
import { InvalidClaim, notAssumable } from "./refusal.js";
import { isRefused } from "./refusals.js";
import { MAX_PASSWORD_LIFE_S } from "./static-keys.js";

/** Whom a caller says it is. */
export interface AssertedClaims {
  /** The uid of the identity to assume; empty: the person that the token speaks of. */
  readonly identity: string;
  /** The uid of the organisation's provider that the token is from; empty for login providers of the service. */
  readonly identityProvider: string;
  /**
   * Whether the token is a password, such as that of a pull token: one signed with static keys may then
   * live as long as they do. To exchange, it must be as short-lived as any.
   */
  readonly asPassword?: boolean;
}

/** A login provider of the service, as far as its tokens matter. */
export interface TrustedProvider {
  readonly issuer: string;
  readonly clientId: string;
}

/** What {@link verifyBearer} found out outside the transaction. Only {@link decide} says who it is. */
export type Proof =
  | {
      readonly by: "identity";
      readonly identity: string;
      readonly evidence: Evidence;
      /** What the evidence was held against, as it was stored. */
      readonly relationship: object;
    }
  | { readonly by: "person"; readonly token: VerifiedToken; readonly providerUid: string | undefined };

/** Who bears the token. */
export interface Identified {
  readonly identityUid: string;
  readonly mappings: readonly string[];
  /** What a token tells of its bearer, such as `act`. */
  readonly informative: Readonly<Record<string, unknown>>;
}

/** What identifying needs. */
export interface IdentifyDeps {
  readonly store: Store;
  readonly issuers: Issuers;
  readonly fetch: GuardedFetch;
  readonly loginProviders: readonly TrustedProvider[];
  /** Origins of AWS security token services. */
  readonly stsOrigins: readonly string[];
  /** The names of this service, asked each time: the address may be known late. */
  readonly ownUrls: () => readonly string[];
}

/**
 * Verifies what the bearer brings, which may take a look at its issuer, though only at one that is
 * registered for what the bearer asks for.
 *
 * @throws ApiError UNAUTHENTICATED for what is no token at this time, whatever it is for; PERMISSION_DENIED
 * for an identity that is not there or that the token, its signature included, does not match, which look
 * the same; INVALID_ARGUMENT; or UNAVAILABLE when the issuer cannot be reached.
 */
export async function verifyBearer(
  { identity, identityProvider, asPassword = false }: AssertedClaims,
  bearer: string,
  nowMs: number,
  deps: IdentifyDeps,
): Promise<Proof> {
  for (const [field, uid] of Object.entries({ identity, identityProvider })) {
    if (uid !== "" && !isUidp(uid)) throw invalidArgument({ field, description: `${field} must be a uid` });
  }
  if (identity !== "" && identityProvider !== "") {
    const rule = "identityProvider must be empty where identity is given";
    throw invalidArgument({ field: "identityProvider", description: rule });
  }
  return identity === ""
    ? personProof(parseUpstreamToken(bearer), identityProvider, nowMs, deps)
    : identityProof(identity, bearer, asPassword, nowMs, deps);
}

async function identityProof(
  identity: string,
  bearer: string,
  asPassword: boolean,
  nowMs: number,
  { store, issuers, fetch, stsOrigins, ownUrls }: IdentifyDeps,
): Promise<Proof> {
  const maxLifeS = asPassword ? MAX_PASSWORD_LIFE_S : undefined;
  // A JWT has dots, a signed request has none. Both are read before the identity is, so that what is
  // wrong with either shows for every identity alike.
  const token = bearer.includes(".") ? parseUpstreamToken(bearer) : undefined;
  if (token !== undefined) {
    requireForeignIssuer(token.issuer, ownUrls());
    checkTimes(token, nowMs, maxLifeS);
  }
  const expected = { stsHosts: stsOrigins, audiences: ownUrls(), identity, nowMs };
  const request = token === undefined ? parseAwsRequest(bearer, expected) : undefined;
  const row = await store.read((tx) => tx.identities.get(identity));
  const relationship = relationshipFromJson(row?.relationship ?? {});
  const organisation = rootOf(identity);
  const gather = async (): Promise<Evidence> => {
    if (request !== undefined && relationship.case === "awsIdentity") {
      return { by: "aws", caller: await askAws(request, fetch, organisation) };
    }
    if (token !== undefined && relationship.case === "staticKeys") return { by: "keys", token, maxLifeS };
    if (token !== undefined && relationship.case === "claimMatch" && admitsIssuer(relationship.value, token.issuer)) {
      const byPattern = relationship.value.iss.case === "issuerPattern";
      return { by: "claims", token: await issuers.verify(token, { organisation, byPattern }, nowMs) };
    }
    if (token !== undefined) verifyWithDecoy(token);
    throw notAssumable(identity);
  };
  try {
    const evidence = await gather();
    requireAssumable(relationship, evidence, { identity, ownUrls: ownUrls(), nowMs });
    return { by: "identity", identity, evidence, relationship: row?.relationship ?? {} };
  } catch (error) {
    throw alike(error, identity, token?.audiences, ownUrls());
  }
}

// What depends on the identity looks the same for all, and like an identity that is not there.
function alike(error: unknown, identity: string, audiences: readonly string[] | undefined, ownUrls: readonly string[]) {
  if (!isRefused(error) || error instanceof InvalidClaim) return error;
  const isForOthers = audiences !== undefined && !audiences.some((audience) => isOurName(audience, ownUrls));
  return notAssumable(identity, isForOthers, error.cause ?? error);
}

async function personProof(
  token: ParsedToken,
  identityProvider: string,
  nowMs: number,
  { store, issuers, loginProviders }: IdentifyDeps,
): Promise<Proof> {
  let trusted = loginProviders.find(({ issuer }) => issuer === token.issuer);
  if (identityProvider !== "") {
    const row = await store.read((tx) => tx.identityProviders.get(identityProvider));
    trusted = row && oidcFromJson(row.oidc);
  }
  if (trusted === undefined || trusted.issuer !== token.issuer || !isFor(trusted.clientId, token)) {
    verifyWithDecoy(token);
    throw unauthenticated();
  }
  const providerUid = identityProvider === "" ? undefined : identityProvider;
  const organisation = providerUid === undefined ? undefined : rootOf(providerUid);
  return { by: "person", token: await issuers.verify(token, { organisation }, nowMs), providerUid };
}

// OpenID Connect Core, section 3.1.3.7: with several audiences the authorized party says whose it is.
function isFor(clientId: string, { audiences, claims }: VerifiedToken): boolean {
  if (!audiences.includes(clientId)) return false;
  return claims.azp === undefined ? audiences.length === 1 : claims.azp === clientId;
}

/**
 * Decides who bears the token, on what is stored now.
 *
 * @throws ApiError PERMISSION_DENIED, which looks the same for an identity that does not match and one
 * that does not exist, or UNAUTHENTICATED.
 */
export async function decide(
  tx: Tx,
  proof: Proof,
  nowMs: number,
  { ownUrls }: Pick<IdentifyDeps, "ownUrls">,
): Promise<Identified> {
  if (proof.by === "person") {
    const { token, providerUid } = proof;
    const provider = providerUid === undefined ? undefined : await tx.identityProviders.get(providerUid);
    if (provider !== undefined && !isFor(oidcFromJson(provider.oidc).clientId, token)) throw unauthenticated();
    const { issuer, subject, claims } = token;
    return getKnownPerson(tx, { issuer, subject, claims, providerUid });
  }
  const { identity, evidence } = proof;
  const stored = (await tx.identities.get(identity))?.relationship ?? {};
  // Only an identity that changed in the meantime is looked at again.
  if (!isDeepStrictEqual(stored, proof.relationship)) {
    const urls = ownUrls();
    try {
      requireAssumable(relationshipFromJson(stored), evidence, { identity, ownUrls: urls, nowMs });
    } catch (error) {
      throw alike(error, identity, evidence.by === "aws" ? undefined : evidence.token.audiences, urls);
    }
  }
  const act = evidence.by === "aws" ? { sub: evidence.caller.arn, ...evidence.caller } : actOf(evidence.token);
  return { identityUid: identity, mappings: [], informative: { act } };
}

function actOf({ issuer, subject, audiences }: Pick<VerifiedToken, "issuer" | "subject" | "audiences">): object {
  return { iss: issuer, sub: subject, aud: audiences.length === 1 ? audiences[0] : audiences };
}
