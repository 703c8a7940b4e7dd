// The token exchange (docs/api-rules.md#token-exchange): a token of another issuer for an API token of the identity or
// person that it authenticates.
import { LRUCache } from "lru-cache";
import { parseBearer } from "../../kernel/bearer.js";
import { bitsOf, type CapabilitySet, unionOf } from "../../kernel/capability-set.js";
import { unauthenticated } from "../../kernel/errors.js";
import type { Clock } from "../../kernel/time.js";
import type { Grant as Held } from "../../pipeline/auth/caller.js";
import type { Tx } from "../../store/transaction.js";
import type { LastSeen } from "../maintenance.js";
import type { IdTokens } from "../oauth/id-tokens.js";
import { type ExchangeCounts, type IssuedToken, outcomeOf, type Tokens, type UnsignedToken } from "../tokens.js";
import { parseUpstreamToken } from "../upstream/token.js";
import { isOwnUrl } from "./audience.js";
import type { FailureThrottle } from "./failure-throttle.js";
import {
  type AssertedClaims,
  decide,
  type IdentifiedBearer,
  type IdentifyDeps,
  type IdTokenProof,
  type Proof,
  verifyBearer,
} from "./identify.js";
import { parseTokenGrant, type RequestedGrant, readGrants, resolveScopes, type TokenRequest } from "./token-request.js";

/** A request for an API token. */
export type ExchangeRequest = TokenRequest & AssertedClaims;

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
    { identity, identityProvider }: AssertedClaims,
    bearer: string,
    requested: RequestedGrant,
    nowMs: number,
  ): Promise<IdTokenProof | undefined> {
    if (identity !== "" || !isOwnUrl(parseUpstreamToken(bearer).issuer, ownUrls)) return undefined;
    const login = await idTokens.redeem(bearer, identityProvider, requested, nowMs);
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
      const cap = buildCapClaim(await readGrants(tx, { ...limited, identityUid }));
      const token = tokens.issue(
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

// The `cap` claim: the capabilities of the bearer at each group when the token was issued. It is for readers of the
// token; no decision uses it.

/** The largest number of groups in the claim; beyond it the claim is left out, so that tokens stay small. */
const MAX_GROUPS = 16;

/** Builds the claim: encoded sets by the uid of the group; undefined where there are none or too many. */
function buildCapClaim(grants: readonly Held[]): Record<string, string> | undefined {
  const sets = new Map<string, CapabilitySet[]>();
  for (const { groupUid, capabilities } of grants) {
    const known = sets.get(groupUid);
    if (known) known.push(capabilities);
    else sets.set(groupUid, [capabilities]);
  }
  if (sets.size === 0 || sets.size > MAX_GROUPS) return undefined;
  return Object.fromEntries([...sets].map(([groupUid, all]) => [groupUid, encodeSet(mergeSets(all))]));
}

function mergeSets(sets: readonly CapabilitySet[]): CapabilitySet {
  const [first = "", ...more] = sets;
  return more.length === 0 ? first : unionOf(sets);
}

/** The encoded sets of roles, of which there are few. */
const encodedSets = new LRUCache<CapabilitySet, string>({ max: 500 });

// The format of published clients in base64url: the length in bits, then words of 64 bits, highest bit first.
function encodeSet(set: CapabilitySet): string {
  const known = encodedSets.get(set);
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
  encodedSets.set(set, text);
  return text;
}
