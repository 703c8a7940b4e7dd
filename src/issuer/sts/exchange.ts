// The token exchange (docs/api-rules.md#token-exchange): a token of another issuer for an API token of the identity or
// person that it authenticates. It has two halves, because a transaction must not wait for the network.
//
//   sts.ts           the method: reads the bearer token and the request.
//   verify           before the transaction. token-request.ts parses what is asked for. identify.ts reads the relationship
//                    of the identity, or the provider of the person, and proves the bearer: its keys may be fetched
//                    (../upstream/issuers.ts) or stored (static-keys.ts), or AWS is asked (aws.ts).
//   finish           in the transaction. identify.ts decides with the rows of that moment who the bearer is; claim-match.ts
//                    compares the claims. token-request.ts limits the token to what the bearer holds.
//   ../tokens.ts     issues the token, and signs it after the transaction (../signer.ts).
//
// Whoever fails often is slowed down (failure-throttle.ts). Errors that depend on an identity have one text
// (audience.ts), so that nobody learns which identities exist; the access log has the reason.
import { parseBearer } from "../../kernel/bearer.js";
import { unauthenticated } from "../../kernel/errors.js";
import type { Clock } from "../../kernel/time.js";
import { MAX_TOKEN_LIFE_S } from "../../pipeline/auth/api-token.js";
import type { Tx } from "../../store/transaction.js";
import { type ExchangeCounts, outcomeOf } from "../exchange-counts.js";
import type { LastSeen } from "../maintenance.js";
import type { IdTokens } from "../oauth/id-tokens.js";
import type { IssuedToken, Tokens, UnsignedToken } from "../tokens.js";
import { isOwnUrl } from "./audience.js";
import { buildCapClaim } from "./cap-claim.js";
import type { FailureThrottle } from "./failure-throttle.js";
import {
  type AssertedClaims,
  decide,
  type IdentifiedBearer,
  type IdentifyDeps,
  type IdTokenProof,
  type Proof,
  parseAssertedToken,
  verifyBearer,
} from "./identify.js";
import { parseTokenGrant, type RequestedGrant, readGrants, resolveScopes, type TokenRequest } from "./token-request.js";

/** A request for an API token. */
export type ExchangeRequest = TokenRequest & AssertedClaims;

/** The longest life of a token, counted from now: after a revocation its date is up to a second later. */
const LONGEST_LIFE_MS = (MAX_TOKEN_LIFE_S + 1) * 1000;

/** An exchange whose bearer was verified outside the transaction. */
export type VerifiedExchange =
  | { readonly proof: Proof; readonly requested: RequestedGrant }
  /** The login has the grant of the token already. */
  | { readonly proof: IdTokenProof };

/** An API token, and the uid of its identity. */
export interface ExchangedToken extends IssuedToken {
  readonly identityUid: string;
}

/** An {@link ExchangedToken} before it is signed. */
export interface UnsignedExchange extends UnsignedToken {
  readonly identityUid: string;
}

/** Exchanges tokens of other issuers for API tokens. */
export interface Exchanger {
  /**
   * Exchanges a token: both halves below, and the signature.
   *
   * @param bearer the token of the other issuer, or the ID token of a device login
   * @param remoteAddress failures are counted by address and by the identity or provider in the request
   * @throws ApiError INVALID_ARGUMENT, UNAUTHENTICATED, PERMISSION_DENIED, UNAVAILABLE, RESOURCE_EXHAUSTED
   */
  exchange(request: ExchangeRequest, bearer: string, remoteAddress: string | undefined): Promise<ExchangedToken>;

  /** The first half, before the transaction: it may wait for the network. It uses up an ID token of this service. */
  verify(request: ExchangeRequest, bearer: string, remoteAddress: string | undefined): Promise<VerifiedExchange>;

  /** The second half, in the transaction. The token is signed after it. */
  finish(tx: Tx, verified: VerifiedExchange, remoteAddress: string | undefined): Promise<UnsignedExchange>;

  /** The two halves without an API token, for methods that authenticate their caller with a token of another issuer. */
  verifyBearer(asserted: AssertedClaims, bearer: string, remoteAddress: string | undefined): Promise<Proof>;
  decide(tx: Tx, proof: Proof, remoteAddress: string | undefined): Promise<IdentifiedBearer>;
}

export interface ExchangerDeps extends IdentifyDeps {
  readonly tokens: Pick<Tokens, "issue" | "sign">;
  readonly idTokens: Pick<IdTokens, "redeem">;
  readonly lastSeen: LastSeen;
  readonly limiter: FailureThrottle;
  readonly clock: Clock;
  readonly counts?: ExchangeCounts;
}

export function createExchanger(deps: ExchangerDeps): Exchanger {
  const { store, tokens, idTokens, lastSeen, limiter, clock, audiences, ownUrls } = deps;
  const buildClaimant = ({ identity, identityProvider }: AssertedClaims, remoteAddress: string | undefined) => ({
    remoteAddress,
    name: identity || identityProvider,
  });
  const throttleName = (proof: VerifiedExchange["proof"]) => {
    if (proof.by === "identity") return proof.identity;
    return proof.by === "person" ? (proof.providerUid ?? "") : "";
  };

  // The ID token of a device login is the only token of this service that can be exchanged, and only here: the other
  // methods call `verifyBearer`.
  async function redeemIdToken(
    asserted: AssertedClaims,
    bearer: string,
    requested: RequestedGrant,
    nowMs: number,
  ): Promise<IdTokenProof | undefined> {
    if (asserted.identity !== "" || !isOwnUrl(parseAssertedToken(asserted, bearer).issuer, ownUrls)) return undefined;
    const login = await idTokens.redeem(bearer, asserted.identityProvider, requested, nowMs);
    if (login === undefined) throw unauthenticated();
    return { by: "id-token", login };
  }

  const count = (error: unknown): never => {
    if (deps.counts) deps.counts.token_exchange[outcomeOf(error)]++;
    throw error;
  };

  function verify(request: ExchangeRequest, bearer: string, address: string | undefined): Promise<VerifiedExchange> {
    const verified = limiter.run(buildClaimant(request, address), async () => {
      const requested = parseTokenGrant(request, audiences);
      const nowMs = clock();
      const idTokenProof = await redeemIdToken(request, bearer, requested, nowMs);
      if (idTokenProof !== undefined) return { proof: idTokenProof };
      return { requested, proof: await verifyBearer(request, bearer, nowMs, deps) };
    });
    return verified.catch(count);
  }

  function finish(tx: Tx, verified: VerifiedExchange, address: string | undefined): Promise<UnsignedExchange> {
    const { proof } = verified;
    const finished = limiter.count({ remoteAddress: address, name: throttleName(proof) }, async () => {
      const nowMs = clock();
      const { identityUid, mappings, informative } = await decide(tx, proof, nowMs, deps);
      const grant =
        "requested" in verified
          ? await resolveScopes(tx, verified.requested, { identityUid, mappings })
          : verified.proof.login.grant;
      const limited = { ...grant, mappings };
      const grants = await readGrants(tx, { ...limited, identityUid });
      const cap = buildCapClaim(grants, nowMs + LONGEST_LIFE_MS);
      const token = await tokens.issue(
        tx,
        identityUid,
        { ...limited, informative: { ...informative, ...(cap && { cap }) } },
        nowMs,
      );
      lastSeen.touch(identityUid, nowMs);
      if (deps.counts) deps.counts.token_exchange.ok++;
      return { ...token, identityUid };
    });
    return finished.catch(count);
  }

  return {
    verify,
    finish,
    verifyBearer: (asserted, bearer, address) =>
      limiter.run(buildClaimant(asserted, address), () => verifyBearer(asserted, bearer, clock(), deps)),
    decide: (tx, proof, address) =>
      limiter.count({ remoteAddress: address, name: throttleName(proof) }, () => decide(tx, proof, clock(), deps)),
    async exchange(request, bearer, address) {
      const verified = await verify(request, bearer, address);
      const { identityUid, ...unsigned } = await store.read((tx) => finish(tx, verified, address));
      return { ...(await tokens.sign(unsigned)), identityUid };
    },
  };
}

/** The characters of a token: b64token of RFC 6750, which signed requests have too. */
const BEARER = /^[A-Za-z0-9\-._~+/]+=*$/;
const MAX_LENGTH = 16 * 1024;

/**
 * Returns the bearer token of an Authorization header.
 *
 * @throws ApiError UNAUTHENTICATED
 */
export function requireBearer(authorization: string | undefined): string {
  if (authorization === undefined) throw unauthenticated(undefined, "token_missing");
  const token = parseBearer(authorization);
  if (token === undefined || token.length > MAX_LENGTH || !BEARER.test(token)) {
    throw unauthenticated(undefined, "token_malformed");
  }
  return token;
}
