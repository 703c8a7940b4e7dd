// The token exchange (spec section 5): an OIDC token of another issuer for an
// API token of whoever it proves its bearer to be.

import type { Clock } from "../../kernel/clock.js";
import type { Principal } from "../../kernel/principal.js";
import { withMapped } from "../../pipeline/auth/authorize.js";
import { effectiveGrants } from "../../pipeline/auth/grants.js";
import type { Tx } from "../../store/port.js";
import type { Grant, IssuedToken, Tokens } from "../tokens.js";
import { capClaim } from "./cap-claim.js";
import type { FailureLimiter } from "./failure-limiter.js";
import {
  type AssertedClaims,
  decide,
  type Identified,
  type IdentifyDeps,
  type Proof,
  verifyBearer,
} from "./identify.js";
import type { LastSeen } from "./last-seen.js";
import { grantOf, type TokenRequest } from "./token-request.js";

/** What is asked for in exchange for a token. */
export type ExchangeRequest = TokenRequest & AssertedClaims;

/** An exchange whose bearer was verified, ready to be decided on. */
export interface Verified {
  readonly grant: Grant;
  readonly proof: Proof;
}

/** An API token, and whose it is. */
export interface Exchanged extends IssuedToken {
  readonly identityUid: string;
}

/** Exchanges tokens. */
export interface Exchanger {
  /**
   * The whole exchange.
   *
   * @param bearer the foreign token
   * @param remoteAddress refusals are counted by it and by what the request names
   * @throws ApiError INVALID_ARGUMENT, UNAUTHENTICATED, PERMISSION_DENIED, UNAVAILABLE, RESOURCE_EXHAUSTED
   */
  exchange(request: ExchangeRequest, bearer: string, remoteAddress: string | undefined): Promise<Exchanged>;

  /** The first half of it: what may have to wait for the network. */
  verify(request: ExchangeRequest, bearer: string, remoteAddress: string | undefined): Promise<Verified>;

  /** The second half, in the transaction. */
  finish(tx: Tx, verified: Verified, remoteAddress: string | undefined): Promise<Exchanged>;

  /** Who bears a token, for methods that authenticate their caller this way; same two halves. */
  verifyBearer(claimed: AssertedClaims, bearer: string, remoteAddress: string | undefined): Promise<Proof>;
  decide(tx: Tx, proof: Proof, remoteAddress: string | undefined): Promise<Identified>;
}

/** What exchanging needs. */
export interface ExchangerDeps extends IdentifyDeps {
  readonly tokens: Pick<Tokens, "issue">;
  readonly lastSeen: LastSeen;
  readonly limiter: FailureLimiter;
  readonly clock: Clock;
  /** What the `aud` of a token may be, asked each time. */
  readonly audiences: () => readonly string[];
}

/** Creates the exchanger. */
export function createExchanger(deps: ExchangerDeps): Exchanger {
  const { store, tokens, lastSeen, limiter, clock, audiences } = deps;
  const claimantOf = ({ identity, identityProvider }: AssertedClaims, remoteAddress: string | undefined) => ({
    remoteAddress,
    name: identity || identityProvider,
  });
  const nameOf = (proof: Proof) => (proof.by === "person" ? (proof.providerUid ?? "") : proof.identity);

  function verify(request: ExchangeRequest, bearer: string, address: string | undefined): Promise<Verified> {
    return limiter.run(claimantOf(request, address), async () => {
      const grant = grantOf(request, audiences());
      return { grant, proof: await verifyBearer(request, bearer, clock(), deps) };
    });
  }

  function finish(tx: Tx, { grant, proof }: Verified, address: string | undefined): Promise<Exchanged> {
    return limiter.count({ remoteAddress: address, name: nameOf(proof) }, async () => {
      const nowMs = clock();
      const { identityUid, mappings, informative } = await decide(tx, proof, nowMs, deps);
      const limited = { ...grant, mappings };
      const cap = capClaim(await heldBy(tx, identityUid, limited));
      const token = tokens.issue(
        identityUid,
        { ...limited, informative: { ...informative, ...(cap && { cap }) } },
        nowMs,
      );
      lastSeen.touch(identityUid, nowMs);
      return { ...token, identityUid };
    });
  }

  return {
    verify,
    finish,
    verifyBearer: (claimed, bearer, address) =>
      limiter.run(claimantOf(claimed, address), () => verifyBearer(claimed, bearer, clock(), deps)),
    decide: (tx, proof, address) =>
      limiter.count({ remoteAddress: address, name: nameOf(proof) }, () => decide(tx, proof, clock(), deps)),
    async exchange(request, bearer, address) {
      const verified = await verify(request, bearer, address);
      return store.read((tx) => finish(tx, verified, address));
    },
  };
}

async function heldBy(tx: Tx, identityUid: string, { limit, mappings }: Grant) {
  const principal: Principal = {
    identityUid,
    tokenId: "",
    issuedAt: 0,
    expiresAt: 0,
    ...(limit && { limit }),
    ...(mappings?.length && { mappings }),
  };
  return effectiveGrants(principal, await withMapped(principal, tx.access.everywhere(identityUid), tx));
}
