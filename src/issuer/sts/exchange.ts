// The token exchange (spec section 5): an OIDC token of another issuer for an
// API token of whoever it proves its bearer to be.

import { LRUCache } from "lru-cache";
import { bitsOf, type CapabilitySet, unionOf } from "../../kernel/capability-set.js";
import type { Clock } from "../../kernel/clock.js";
import { unauthenticated } from "../../kernel/errors.js";
import type { Principal } from "../../kernel/principal.js";
import { withMapped } from "../../pipeline/auth/authorize.js";
import { effectiveGrants, type Grant as Held } from "../../pipeline/auth/grants.js";
import type { Tx } from "../../store/port.js";
import type { LastSeen } from "../maintenance.js";
import type { Grant, IssuedToken, Tokens } from "../tokens.js";
import type { FailureThrottle } from "./failure-throttle.js";
import {
  type AssertedClaims,
  decide,
  type Identified,
  type IdentifyDeps,
  type Proof,
  verifyBearer,
} from "./identify.js";
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
  readonly limiter: FailureThrottle;
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

/** What a foreign token may be made of: RFC 6750's b64token, which also serves signed requests. */
const BEARER = /^[A-Za-z0-9\-._~+/]+=*$/;
const MAX_LENGTH = 16 * 1024;

/**
 * The token in an Authorization header (RFC 6750, section 2.1).
 *
 * @throws ApiError UNAUTHENTICATED
 */
export function bearerIn(authorization: string | undefined): string {
  const token = authorization?.slice(7) ?? "";
  if (authorization?.slice(0, 7).toLowerCase() !== "bearer ") throw unauthenticated();
  if (token.length > MAX_LENGTH || !BEARER.test(token)) throw unauthenticated();
  return token;
}

// The `cap` claim: what the bearer of a token may do at which group when it was
// issued, for those who read tokens. Nothing here decides on it.

/** With more groups than this the claim is left out, so that tokens stay small. */
const MAX_GROUPS = 16;

/** The claim: sets by the uid of the group; undefined where there is nothing to tell or too much. */
export function capClaim(grants: readonly Held[]): Record<string, string> | undefined {
  const sets = new Map<string, CapabilitySet[]>();
  for (const { groupUid, capabilities } of grants) {
    const known = sets.get(groupUid);
    if (known) known.push(capabilities);
    else sets.set(groupUid, [capabilities]);
  }
  if (sets.size === 0 || sets.size > MAX_GROUPS) return undefined;
  return Object.fromEntries([...sets].map(([groupUid, all]) => [groupUid, encoded(oneOf(all))]));
}

function oneOf(sets: readonly CapabilitySet[]): CapabilitySet {
  const [first = "", ...more] = sets;
  return more.length === 0 ? first : unionOf(sets);
}

/** Of the sets of roles, of which there are few, how each is written. */
const written = new LRUCache<CapabilitySet, string>({ max: 500 });

// How published clients read a set: its length in bits and its words, each 64 bits with the highest
// first, in base64url.
function encoded(set: CapabilitySet): string {
  const known = written.get(set);
  if (known !== undefined) return known;
  const bits = bitsOf(set);
  const length = (bits.at(-1) ?? -1) + 1;
  const bytes = Buffer.alloc(8 + 8 * Math.ceil(length / 64));
  bytes.writeBigUInt64BE(BigInt(length));
  for (const bit of bits) {
    const at = 8 + 8 * (bit >> 6) + 7 - ((bit & 63) >> 3);
    bytes.writeUInt8(bytes.readUInt8(at) | (1 << (bit & 7)), at);
  }
  const text = bytes.toString("base64url");
  written.set(set, text);
  return text;
}
