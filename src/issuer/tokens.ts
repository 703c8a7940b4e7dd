// API tokens and the refresh tokens that renew them.
import { createHash, randomBytes } from "node:crypto";
import { type CapabilitySet, intersectionOf } from "../kernel/capability-set.js";
import { invalidArgument } from "../kernel/errors.js";
import type { Ids } from "../kernel/ids.js";
import type { TokenLimit } from "../kernel/principal.js";
import { MAX_TOKEN_LENGTH, MAX_TOKEN_LIFE_S, signApiToken, type TokenClaims } from "../pipeline/auth/api-token.js";
import type { RefreshTokenRow, Tx } from "../store/port.js";
import type { KeyRing } from "./keys/key-ring.js";

/** A login lasts at most this long, however often it is renewed: 30 days, in milliseconds. */
export const MAX_LOGIN_MS = 30 * 24 * 60 * 60 * 1000;

/** What a token is good for, and what it tells. */
export interface Grant {
  /** The base URL of the service it is for. */
  readonly audience: string;
  /** What it may be used for; everything unless set. */
  readonly limit?: TokenLimit | undefined;
  /** The mappings that the groups of its bearer's directory satisfy. */
  readonly mappings?: readonly string[] | undefined;
  /** What else it tells; nothing here decides on it. */
  readonly informative?: Readonly<Record<string, unknown>> | undefined;
}

/** An API token. */
export interface IssuedToken {
  readonly token: string;
  /** When it expires, in epoch milliseconds. */
  readonly expiresAtMs: number;
}

/** What a login was renewed with. */
export interface Renewed {
  readonly identityUid: string;
  readonly token: IssuedToken;
  readonly refreshToken: string;
  /** When the refresh token expires, in epoch milliseconds. */
  readonly refreshExpiresAtMs: number;
}

/** Issues and renews. */
export interface Tokens {
  /** Signs an API token for an identity, good for an hour (spec section 5). */
  issue(identityUid: string, grant: Grant, nowMs: number): IssuedToken;

  /** Stores and returns the first refresh token of a login. */
  newRefreshToken(tx: Tx, identityUid: string, grant: Grant, nowMs: number): Promise<string>;

  /**
   * Changes a refresh token for an API token and its successor. One that was changed before was
   * stolen, from its holder or by it: then the login ends. Undefined for that and for every other
   * token that is not good.
   *
   * @param wanted narrows what the API token is good for
   * @throws ApiError INVALID_ARGUMENT when more is wanted than the login is good for.
   */
  rotate(tx: Tx, refreshToken: string, wanted: Partial<Grant>, nowMs: number): Promise<Renewed | undefined>;

  /** The uid of the identity that a refresh token was given to; undefined for one that is not known. */
  holder(tx: Tx, refreshToken: string): Promise<string | undefined>;

  /** Ends the login that a refresh token belongs to; does nothing for one that is not known. */
  revoke(tx: Tx, refreshToken: string): Promise<void>;
}

/** Creates them. */
export function createTokens(deps: {
  readonly keys: Pick<KeyRing, "signing">;
  readonly ids: Ids;
  /** Who issues the tokens, asked each time: the address may be known late. */
  readonly issuer: () => string;
}): Tokens {
  const { keys, ids, issuer } = deps;

  function issue(identity: string, grant: Grant, nowMs: number): IssuedToken {
    const request = { ...grant, issuer: issuer(), identity, lifeS: MAX_TOKEN_LIFE_S, nowMs };
    let token = issueToken(request, keys, ids);
    // Better one that tells less than one that is too long to be taken.
    if (token.length > MAX_TOKEN_LENGTH) token = issueToken({ ...request, informative: undefined }, keys, ids);
    if (token.length > MAX_TOKEN_LENGTH) {
      throw invalidArgument({ field: "scopes", description: "scopes must be fewer: the token would be too long" });
    }
    return { token, expiresAtMs: (Math.floor(nowMs / 1000) + MAX_TOKEN_LIFE_S) * 1000 };
  }

  async function insert(tx: Tx, row: Omit<RefreshTokenRow, "hash" | "used">): Promise<string> {
    const secret = randomBytes(32).toString("base64url");
    await tx.refreshTokens.insert({ ...row, hash: hashOf(secret), used: false });
    // What published clients expect: base64 of JSON with the expiry in it.
    const exp = Math.floor(row.expireTimeMs / 1000);
    return Buffer.from(JSON.stringify({ exp, sec: secret })).toString("base64");
  }

  return {
    issue,

    newRefreshToken(tx, identityUid, grant, nowMs) {
      const expireTimeMs = nowMs + MAX_LOGIN_MS;
      return insert(tx, { family: ids.newId(), identityUid, grant, createTimeMs: nowMs, expireTimeMs });
    },

    async rotate(tx, refreshToken, wanted, nowMs) {
      const row = await rowOf(tx, refreshToken);
      if (row === undefined || row.expireTimeMs <= nowMs) return undefined;
      if (row.used) {
        await tx.refreshTokens.deleteFamily(row.family);
        return undefined;
      }
      const { hash, used, ...login } = row;
      const identity = await tx.identities.get(login.identityUid);
      if (identity === undefined || identity.notBefore * 1000 > login.createTimeMs) return undefined;
      const grant = login.grant as Grant;
      const token = issue(login.identityUid, narrowed(grant, wanted), nowMs);
      await tx.refreshTokens.markUsed(hash);
      const { identityUid, expireTimeMs: refreshExpiresAtMs } = login;
      return { identityUid, token, refreshToken: await insert(tx, login), refreshExpiresAtMs };
    },

    async holder(tx, refreshToken) {
      return (await rowOf(tx, refreshToken))?.identityUid;
    },

    async revoke(tx, refreshToken) {
      const row = await rowOf(tx, refreshToken);
      if (row) await tx.refreshTokens.deleteFamily(row.family);
    },
  };
}

function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

async function rowOf(tx: Tx, refreshToken: string): Promise<RefreshTokenRow | undefined> {
  const secret = secretIn(refreshToken);
  return secret === undefined ? undefined : await tx.refreshTokens.get(hashOf(secret));
}

function secretIn(refreshToken: string): string | undefined {
  if (refreshToken.length > 512 || !/^[A-Za-z0-9+/]+=*$/.test(refreshToken)) return undefined;
  try {
    const { sec } = JSON.parse(Buffer.from(refreshToken, "base64").toString()) as { sec?: unknown };
    return typeof sec === "string" ? sec : undefined;
  } catch {
    return undefined;
  }
}

// What a login is good for can be made less, never more.
function narrowed(grant: Grant, { audience = grant.audience, limit }: Partial<Grant>): Grant {
  if (limit === undefined) return { ...grant, audience };
  const cap = both(grant.limit?.cap, limit.cap);
  const held = grant.limit?.scope;
  const scope = limit.scope ?? held;
  // Not one below them either: what is granted there does not count for the login.
  if (held !== undefined && !scope?.every((uid) => held.includes(uid))) {
    const rule = "scopes must be among the groups that the login is good for";
    throw invalidArgument({ field: "scopes", description: rule });
  }
  return { ...grant, audience, limit: { ...(cap !== undefined && { cap }), ...(scope !== undefined && { scope }) } };
}

function both(one: CapabilitySet | undefined, other: CapabilitySet | undefined): CapabilitySet | undefined {
  return one === undefined || other === undefined ? (one ?? other) : intersectionOf(one, other);
}

/** A token to issue: its claims but for those that follow from the moment. */
export interface TokenRequest extends Omit<TokenClaims, "subject" | "tokenId" | "issuedAt"> {
  /** The uid of the identity it speaks for. */
  readonly identity: string;
  readonly nowMs: number;
}

/** Signs an API token with the key in use (spec section 5). */
export function issueToken(request: TokenRequest, keys: Pick<KeyRing, "signing">, ids: Ids): string {
  const { identity, nowMs, ...claims } = request;
  return signApiToken(
    { ...claims, subject: identity, tokenId: ids.newId(), issuedAt: Math.floor(nowMs / 1000) },
    keys.signing(),
  );
}
