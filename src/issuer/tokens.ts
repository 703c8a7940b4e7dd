// API tokens and the refresh tokens that renew them.
import { createHash, randomBytes } from "node:crypto";
import { type CapabilitySet, intersectionOf } from "../kernel/capability-set.js";
import { invalidArgument } from "../kernel/errors.js";
import type { Ids } from "../kernel/ids.js";
import type { TokenLimit } from "../kernel/principal.js";
import { MAX_TOKEN_LENGTH, MAX_TOKEN_LIFE_S, signApiToken, type TokenClaims } from "../pipeline/auth/api-token.js";
import type { RefreshTokenRow, Tx } from "../store/port.js";
import type { KeyRing } from "./keys/key-ring.js";

/** The longest login, however often it is refreshed: 30 days, in milliseconds. */
const MAX_LOGIN_MS = 30 * 24 * 60 * 60 * 1000;

/**
 * What a token is valid for, and its informative claims. It is stored with refresh tokens, so the names of fields
 * stay.
 */
export interface TokenGrant {
  /** The audience: a base URL of this service. */
  readonly audience: string;
  /** What the token may be used for; undefined means no limit. */
  readonly limit?: TokenLimit | undefined;
  /** The uids of mappings that the bearer's directory groups satisfy. */
  readonly mappings?: readonly string[] | undefined;
  /** Claims for readers of the token; no decision uses them. */
  readonly informative?: Readonly<Record<string, unknown>> | undefined;
}

/** An API token. */
export interface IssuedToken {
  readonly token: string;
  /** When it expires, in epoch milliseconds. */
  readonly expiresAtMs: number;
}

/** The new tokens of a refreshed login. */
export interface RefreshedLogin {
  readonly identityUid: string;
  readonly token: IssuedToken;
  readonly refreshToken: string;
  /** When the refresh token expires, in epoch milliseconds. */
  readonly refreshExpiresAtMs: number;
}

/** Issues API tokens and rotates refresh tokens. */
export interface Tokens {
  /** Signs an API token for an identity, valid for an hour. */
  issue(identityUid: string, grant: TokenGrant, nowMs: number): IssuedToken;

  /** Creates the first refresh token of a login. */
  createRefreshToken(tx: Tx, identityUid: string, grant: TokenGrant, nowMs: number): Promise<string>;

  /**
   * Exchanges a refresh token for an API token and a new refresh token. Reuse of a rotated token means that it was
   * stolen, so it ends the login (RFC 9700, section 4.14). Returns undefined for that, and for unknown, expired and
   * revoked tokens.
   *
   * @param requested what to narrow the API token to
   * @throws ApiError INVALID_ARGUMENT when it exceeds what the login is valid for
   */
  rotate(
    tx: Tx,
    refreshToken: string,
    requested: Partial<TokenGrant>,
    nowMs: number,
  ): Promise<RefreshedLogin | undefined>;

  /** Finds the uid of the identity that a refresh token was issued to. */
  findIdentityUid(tx: Tx, refreshToken: string): Promise<string | undefined>;

  /** Ends the login of a refresh token; does nothing for an unknown token. */
  revoke(tx: Tx, refreshToken: string): Promise<void>;
}

/** Creates the issuer of tokens. */
export function createTokens(deps: {
  readonly keys: Pick<KeyRing, "signing">;
  readonly ids: Ids;
  /** The issuer URL; a function, because with port 0 the address is known only after the service listens. */
  readonly issuer: () => string;
}): Tokens {
  const { keys, ids, issuer } = deps;

  function issue(identity: string, grant: TokenGrant, nowMs: number): IssuedToken {
    const request = { ...grant, issuer: issuer(), identity, lifeS: MAX_TOKEN_LIFE_S, nowMs };
    let token = issueToken(request, keys, ids);
    // Without the informative claims, the token may be short enough to be accepted.
    if (token.length > MAX_TOKEN_LENGTH) token = issueToken({ ...request, informative: undefined }, keys, ids);
    if (token.length > MAX_TOKEN_LENGTH) {
      throw invalidArgument({ field: "scopes", description: "scopes must be fewer: the token would be too long" });
    }
    return { token, expiresAtMs: (Math.floor(nowMs / 1000) + MAX_TOKEN_LIFE_S) * 1000 };
  }

  async function insert(tx: Tx, row: Omit<RefreshTokenRow, "hash" | "used">): Promise<string> {
    const secret = randomBytes(32).toString("base64url");
    await tx.refreshTokens.insert({ ...row, hash: hashSecret(secret), used: false });
    // Published clients expect base64 of JSON with the expiry.
    const exp = Math.floor(row.expireTimeMs / 1000);
    return Buffer.from(JSON.stringify({ exp, sec: secret })).toString("base64");
  }

  return {
    issue,

    createRefreshToken(tx, identityUid, grant, nowMs) {
      const expireTimeMs = nowMs + MAX_LOGIN_MS;
      return insert(tx, { family: ids.newId(), identityUid, grant, createTimeMs: nowMs, expireTimeMs });
    },

    async rotate(tx, refreshToken, requested, nowMs) {
      const row = await findRow(tx, refreshToken);
      if (row === undefined || row.expireTimeMs <= nowMs) return undefined;
      if (row.used) {
        await tx.refreshTokens.deleteFamily(row.family);
        return undefined;
      }
      const { hash, used, ...login } = row;
      const identity = await tx.identities.get(login.identityUid);
      if (identity === undefined || identity.notBefore * 1000 > login.createTimeMs) return undefined;
      const grant = login.grant as TokenGrant;
      const token = issue(login.identityUid, narrowGrant(grant, requested), nowMs);
      await tx.refreshTokens.markUsed(hash);
      const { identityUid, expireTimeMs: refreshExpiresAtMs } = login;
      return { identityUid, token, refreshToken: await insert(tx, login), refreshExpiresAtMs };
    },

    async findIdentityUid(tx, refreshToken) {
      return (await findRow(tx, refreshToken))?.identityUid;
    },

    async revoke(tx, refreshToken) {
      const row = await findRow(tx, refreshToken);
      if (row) await tx.refreshTokens.deleteFamily(row.family);
    },
  };
}

function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

async function findRow(tx: Tx, refreshToken: string): Promise<RefreshTokenRow | undefined> {
  const secret = parseSecret(refreshToken);
  return secret === undefined ? undefined : await tx.refreshTokens.get(hashSecret(secret));
}

function parseSecret(refreshToken: string): string | undefined {
  if (refreshToken.length > 512 || !/^[A-Za-z0-9+/]+=*$/.test(refreshToken)) return undefined;
  try {
    const { sec } = JSON.parse(Buffer.from(refreshToken, "base64").toString()) as { sec?: unknown };
    return typeof sec === "string" ? sec : undefined;
  } catch {
    return undefined;
  }
}

// A token can have less than its login, never more.
function narrowGrant(grant: TokenGrant, { audience = grant.audience, limit }: Partial<TokenGrant>): TokenGrant {
  if (limit === undefined) return { ...grant, audience };
  const cap = intersectCapabilities(grant.limit?.cap, limit.cap);
  const granted = grant.limit?.scope;
  const scope = limit.scope ?? granted;
  // Descendants of these groups are excluded too: what is granted there is not effective for the login.
  if (granted !== undefined && !scope?.every((uid) => granted.includes(uid))) {
    const rule = "scopes must be among the groups that the login is good for";
    throw invalidArgument({ field: "scopes", description: rule });
  }
  return { ...grant, audience, limit: { ...(cap !== undefined && { cap }), ...(scope !== undefined && { scope }) } };
}

function intersectCapabilities(
  one: CapabilitySet | undefined,
  other: CapabilitySet | undefined,
): CapabilitySet | undefined {
  return one === undefined || other === undefined ? (one ?? other) : intersectionOf(one, other);
}

/** The claims of a token to issue, without the id and the time. */
export interface IssueTokenOptions extends Omit<TokenClaims, "subject" | "tokenId" | "issuedAt"> {
  /** The uid of the identity, the token's `sub`. */
  readonly identity: string;
  readonly nowMs: number;
}

/** Signs an API token with the active key. */
export function issueToken(request: IssueTokenOptions, keys: Pick<KeyRing, "signing">, ids: Ids): string {
  const { identity, nowMs, ...claims } = request;
  return signApiToken(
    { ...claims, subject: identity, tokenId: ids.newId(), issuedAt: Math.floor(nowMs / 1000) },
    keys.signing(),
  );
}
