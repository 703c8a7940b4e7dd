// Who bears a foreign token: an identity that it may assume, or a person. In two
// steps: what needs the network goes before the transaction, and within it the
// decision is taken on what is stored then.
import { relationshipFromJson } from "../../iam/identities/relationship.js";
import { oidcFromJson } from "../../iam/identity-providers/identity-provider.js";
import { knownPerson } from "../../iam/people/sign-in.js";
import { invalidArgument, unauthenticated } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import type { Store, Tx } from "../../store/port.js";
import { requireForeignIssuer } from "../assume/audience.js";
import { parseAwsRequest } from "../assume/aws.js";
import { type AwsCaller, askAws, requireAwsMatch } from "../assume/aws-caller.js";
import { admitsIssuer, requireClaimMatch } from "../assume/claim-match.js";
import { notAssumable } from "../assume/refusal.js";
import { MAX_PASSWORD_LIFE_S, verifyStaticKeys } from "../assume/static-keys.js";
import type { GuardedFetch } from "../../outbound/guarded-fetch.js";
import type { Issuers } from "../upstream/issuers.js";
import { type ParsedToken, parseUpstreamToken, type VerifiedToken } from "../upstream/token.js";

/** Whom a caller says it is. */
export interface Claimed {
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
  | { readonly by: "claims"; readonly identity: string; readonly token: VerifiedToken }
  | { readonly by: "keys"; readonly identity: string; readonly token: ParsedToken; readonly maxLifeS?: number }
  | { readonly by: "aws"; readonly identity: string; readonly caller: AwsCaller }
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
 * @throws ApiError UNAUTHENTICATED, PERMISSION_DENIED, INVALID_ARGUMENT, or UNAVAILABLE when the issuer
 * cannot be reached.
 */
export async function verifyBearer(
  { identity, identityProvider, asPassword = false }: Claimed,
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
  deps: IdentifyDeps,
): Promise<Proof> {
  const { store, issuers, fetch, stsOrigins, ownUrls } = deps;
  // A JWT has dots, a signed request has none. Read before the identity is, so that what is wrong
  // with either shows for every identity alike.
  const token = bearer.includes(".") ? parseUpstreamToken(bearer) : undefined;
  if (token !== undefined) requireForeignIssuer(token.issuer, ownUrls());
  const expected = { stsHosts: stsOrigins, audiences: ownUrls(), identity, nowMs };
  const request = token === undefined ? parseAwsRequest(bearer, expected) : undefined;
  const row = await store.read((tx) => tx.identities.get(identity));
  const relationship = relationshipFromJson(row?.relationship ?? {});
  if (relationship.case === "awsIdentity" && request !== undefined) {
    return { by: "aws", identity, caller: await askAws(request, fetch) };
  }
  if (token !== undefined && relationship.case === "staticKeys") {
    return { by: "keys", identity, token, ...(asPassword && { maxLifeS: MAX_PASSWORD_LIFE_S }) };
  }
  if (token === undefined || relationship.case !== "claimMatch" || !admitsIssuer(relationship.value, token.issuer)) {
    throw notAssumable(identity);
  }
  return { by: "claims", identity, token: await issuers.verify(token, nowMs) };
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
    throw unauthenticated();
  }
  const providerUid = identityProvider === "" ? undefined : identityProvider;
  return { by: "person", token: await issuers.verify(token, nowMs), providerUid };
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
    return knownPerson(tx, { issuer, subject, claims, providerUid });
  }
  const { identity } = proof;
  const relationship = relationshipFromJson((await tx.identities.get(identity))?.relationship ?? {});
  switch (relationship.case) {
    case "claimMatch":
      if (proof.by !== "claims") break;
      requireClaimMatch(relationship.value, proof.token, ownUrls(), identity);
      return assumed(identity, actOf(proof.token));
    case "staticKeys":
      if (proof.by !== "keys") break;
      return assumed(
        identity,
        actOf(verifyStaticKeys(relationship.value, proof.token, ownUrls(), identity, nowMs, proof.maxLifeS)),
      );
    case "awsIdentity":
      if (proof.by !== "aws") break;
      requireAwsMatch(relationship.value, proof.caller, identity);
      return assumed(identity, { sub: proof.caller.arn, ...proof.caller });
    default:
  }
  throw notAssumable(identity);
}

function assumed(identityUid: string, act: object): Identified {
  return { identityUid, mappings: [], informative: { act } };
}

function actOf({ issuer, subject, audiences }: VerifiedToken): object {
  return { iss: issuer, sub: subject, aud: audiences.length === 1 ? audiences[0] : audiences };
}
