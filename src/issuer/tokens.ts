// API tokens and the refresh tokens that renew them.
import { randomBytes } from "node:crypto";
import { accountDeactivated } from "../iam/identities/deactivation.js";
import { type CapabilitySet, intersectionOf } from "../kernel/capability-set.js";
import { sha256 } from "../kernel/digest.js";
import { invalidArgument } from "../kernel/errors.js";
import type { Ids } from "../kernel/ids.js";
import { signJwt, type UnsignedJwt } from "../kernel/jws.js";
import type { TokenLimit } from "../kernel/principal.js";
import { rootOf } from "../kernel/uidp.js";
import { encodeApiToken, MAX_TOKEN_LENGTH, MAX_TOKEN_LIFE_S, type TokenClaims } from "../pipeline/auth/api-token.js";
import { type IdentityRow, identityKind } from "../store/iam/identities.js";
import type { RefreshTokenRow } from "../store/tables/tokens.js";
import type { Tx } from "../store/transaction.js";
import { type ExchangeCounts, outcomeOf } from "./exchange-counts.js";
import type { KeyRing, Keys } from "./keys/key-ring.js";
import { noteExchange, noteSiblings, takeRepeat, useUpSibling } from "./refresh-repeats.js";
import { createSigner, type Signer } from "./signer.js";
import { type RequestedGrant, resolveScopes } from "./sts/token-request.js";

/** The longest login, however often it is refreshed: 30 days, in milliseconds. */
export const MAX_LOGIN_MS = 30 * 24 * 60 * 60 * 1000;

/**
 * What a token is valid for, and its informative claims. It is stored with refresh tokens, so the names of fields
 * stay.
 */
export interface TokenGrant {
  /** The audience, or several: each a base URL of this service or a name in `--audiences`. */
  readonly audience: string | readonly string[];
  /** What the token may be used for; undefined means no limit. */
  readonly limit?: TokenLimit | undefined;
  /** The uids of mappings that the bearer's directory groups satisfy. */
  readonly mappings?: readonly string[] | undefined;
  /** When the directory was read, in epoch milliseconds. Rights by mappings end an hour later. */
  readonly mappedMs?: number | undefined;
  /** Claims for readers of the token; no decision uses them. */
  readonly informative?: Readonly<Record<string, unknown>> | undefined;
}

/** What is stored of a login that goes on. */
export interface StoredGrant extends TokenGrant {
  /** The program of a session that is no refresh token; undefined for refresh tokens. */
  readonly client?: string | undefined;
}

/** An API token that lacks its signature. */
export interface UnsignedToken {
  readonly jwt: UnsignedJwt;
  /** When it expires, in epoch milliseconds. */
  readonly expiresAtMs: number;
  /** The root of the identity that it is for. */
  readonly organisation: string;
}

export interface IssuedToken {
  readonly token: string;
  /** When it expires, in epoch milliseconds. */
  readonly expiresAtMs: number;
}

/** The new tokens of a refreshed login. */
export interface RefreshedLogin {
  readonly identityUid: string;
  readonly token: UnsignedToken;
  readonly refreshToken: string;
  /** When the refresh token expires, in epoch milliseconds. */
  readonly refreshExpiresAtMs: number;
}

/** The request that brings a refresh token. */
export interface RefreshContext {
  /** The network address of the client, as limits count it. */
  readonly client: string;
  readonly nowMs: number;
}

/** Issues API tokens and rotates refresh tokens. */
export type Tokens = ReturnType<typeof createTokens>;

export function createTokens(deps: {
  readonly keys: Pick<KeyRing, "at">;
  readonly ids: Ids;
  /** The issuer URL. */
  readonly issuer: string;
  /** One of its own unless given. */
  readonly signer?: Signer;
  /** Counts uses of refresh tokens. */
  readonly counts?: ExchangeCounts;
}) {
  const { keys, ids, issuer, signer = createSigner(), counts } = deps;

  async function issue(
    tx: Tx,
    identity: string,
    grant: TokenGrant,
    nowMs: number,
    untilMs = Number.POSITIVE_INFINITY,
  ): Promise<UnsignedToken> {
    const current = await keys.at(tx);
    const issueDate = await readIssueDate(tx, identity, nowMs);
    const leftS = Math.floor(untilMs / 1000) - Math.floor(issueDate.atMs / 1000);
    const lifeS = Math.min(lifeOf(grant, nowMs), Math.max(1, leftS));
    const request = { ...grant, issuer, identity, lifeS, ...issueDate };
    let jwt = encodeToken(request, current, ids);
    // Without the informative claims, the token may be short enough to be accepted.
    if (jwt.length > MAX_TOKEN_LENGTH) jwt = encodeToken({ ...request, informative: undefined }, current, ids);
    if (jwt.length > MAX_TOKEN_LENGTH) {
      throw invalidArgument({ field: "scopes", rule: "must be fewer: the token would be too long" });
    }
    const expiresAtMs = issueDate.atMs - (issueDate.atMs % 1000) + lifeS * 1000;
    return { jwt, expiresAtMs, organisation: rootOf(identity) };
  }

  async function insert(tx: Tx, row: Omit<RefreshTokenRow, "hash" | "used">) {
    const secret = randomBytes(32).toString("base64url");
    const hash = sha256(secret).toString("hex");
    await tx.refreshTokens.insert({ ...row, hash, used: false });
    // Published clients expect base64 of JSON with the expiry.
    const exp = Math.floor(row.expireTimeMs / 1000);
    return { hash, refreshToken: Buffer.from(JSON.stringify({ exp, sec: secret })).toString("base64") };
  }

  async function rotate(
    tx: Tx,
    refreshToken: string,
    requested: Partial<RequestedGrant>,
    { client, nowMs }: RefreshContext,
  ): Promise<RefreshedLogin | undefined> {
    const row = await findRow(tx, refreshToken);
    if (row === undefined || row.expireTimeMs <= nowMs) return undefined;
    const { hash, used, ...login } = row;
    const lost = used ? await takeRepeat(tx, hash, client, nowMs) : undefined;
    if (used && lost === undefined) {
      await tx.refreshTokens.deleteFamily(row.family);
      return undefined;
    }
    if (!(await isLoginValid(tx, login.identityUid, { atMs: login.createTimeMs }))) return undefined;
    const grant = login.grant as TokenGrant;
    const narrower = await resolveScopes(tx, requested, { ...grant, identityUid: login.identityUid });
    const token = await issue(tx, login.identityUid, narrowGrant(grant, narrower), nowMs);
    const next = await insert(tx, login);
    const { identityUid, expireTimeMs: refreshExpiresAtMs } = login;
    if (lost !== undefined) await noteSiblings(tx, lost, next.hash, refreshExpiresAtMs);
    else {
      await tx.refreshTokens.markUsed(hash);
      await useUpSibling(tx, row);
      await noteExchange(tx, hash, { client, successor: next.hash }, nowMs);
    }
    return { identityUid, token, refreshToken: next.refreshToken, refreshExpiresAtMs };
  }

  return {
    /**
     * Issues an API token for an identity, valid for an hour. A transaction can do this, and its caller signs the token
     * after the commit.
     *
     * @param untilMs ends the token sooner, in epoch milliseconds
     * @throws ApiError INVALID_ARGUMENT when the token would be too long
     */
    issue,

    /** Signs an issued token, outside any transaction. */
    sign: async ({ jwt, expiresAtMs, organisation }: UnsignedToken) => ({
      token: await signer(jwt, organisation),
      expiresAtMs,
    }),

    /** Creates the first refresh token of a login. */
    async createRefreshToken(tx: Tx, identityUid: string, grant: TokenGrant, nowMs: number): Promise<string> {
      const { atMs: createTimeMs } = await readIssueDate(tx, identityUid, nowMs);
      const expireTimeMs = createTimeMs + MAX_LOGIN_MS;
      const row = { family: ids.newId(), identityUid, grant, createTimeMs, expireTimeMs };
      return (await insert(tx, row)).refreshToken;
    },

    /**
     * Exchanges a refresh token for an API token and a new refresh token. Reuse of a rotated token means that it was
     * stolen, so it ends the login (RFC 9700, section 4.14), unless a client repeats what it has just sent. Returns
     * undefined for that, and for unknown, expired and revoked tokens.
     *
     * @param requested what to narrow the API token to
     * @throws ApiError INVALID_ARGUMENT when it exceeds what the login is valid for, or names an organisation in which the
     * identity holds nothing
     */
    async rotate(
      tx: Tx,
      refreshToken: string,
      requested: Partial<RequestedGrant>,
      context: RefreshContext,
    ): Promise<RefreshedLogin | undefined> {
      try {
        const refreshed = await rotate(tx, refreshToken, requested, context);
        if (counts) counts.refresh_token[refreshed === undefined ? "unauthenticated" : "ok"]++;
        return refreshed;
      } catch (error) {
        if (counts) counts.refresh_token[outcomeOf(error)]++;
        throw error;
      }
    },

    /** Finds the uid of the identity that a refresh token was issued to. */
    async findIdentityUid(tx: Tx, refreshToken: string): Promise<string | undefined> {
      return (await findRow(tx, refreshToken))?.identityUid;
    },

    /** Ends the login of a refresh token; does nothing for an unknown token. */
    async revoke(tx: Tx, refreshToken: string): Promise<void> {
      const row = await findRow(tx, refreshToken);
      if (row) await tx.refreshTokens.deleteFamily(row.family);
    },
  };
}

// A login may be turned into a token minutes later: a device polls, and its ID token is exchanged.
function lifeOf({ mappings, mappedMs }: TokenGrant, nowMs: number): number {
  if (mappings === undefined || mappings.length === 0 || mappedMs === undefined) return MAX_TOKEN_LIFE_S;
  const sinceS = Math.max(0, Math.floor(nowMs / 1000) - Math.floor(mappedMs / 1000));
  return Math.max(1, MAX_TOKEN_LIFE_S - sinceS);
}

async function findRow(tx: Tx, refreshToken: string): Promise<RefreshTokenRow | undefined> {
  const secret = parseSecret(refreshToken);
  const row = secret === undefined ? undefined : await tx.refreshTokens.find(sha256(secret).toString("hex"));
  return (row?.grant as StoredGrant | undefined)?.client === undefined ? row : undefined;
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

/** What a token or a login is dated with. */
export interface IssueDate {
  /** Epoch milliseconds. */
  readonly atMs: number;
  /** When all tokens of the identity had been revoked last, as its issuer read it; 0: never. */
  readonly revokeTimeMs: number;
}

/**
 * Dates a token or a login of an identity. A revocation voids all that name the one before, so that neither the clocks of
 * nodes nor the order of transactions decide. What is issued in the second of a revocation, after it, is dated with the
 * next: servers of versions before compare seconds.
 *
 * @param identity undefined for one that does not exist
 */
export function dateIssue(
  identity: Pick<IdentityRow, "notBefore" | "revokeTimeMs"> | undefined,
  nowMs: number,
): IssueDate {
  const { notBefore = 0, revokeTimeMs = 0 } = identity ?? {};
  return { atMs: revokeTimeMs === 0 ? nowMs : Math.max(nowMs, notBefore * 1000), revokeTimeMs };
}

/**
 * As {@link dateIssue}, of the identity that is stored. Nothing is issued to one that is deactivated.
 *
 * @throws ApiError PERMISSION_DENIED
 */
export async function readIssueDate(tx: Tx, identityUid: string, nowMs: number): Promise<IssueDate> {
  const identity = await tx.table(identityKind).find(identityUid);
  if (identity !== undefined && identity.deactivateTimeMs !== null) throw accountDeactivated();
  return dateIssue(identity, nowMs);
}

/** The date of a login. Where the revocation is not stored, as that of refresh tokens, the time alone decides. */
type LoginDate = Pick<IssueDate, "atMs"> & { readonly revokeTimeMs?: number | undefined };

/** Whether an identity may still use what it got at a login: it exists, is active, and was not revoked since. */
export async function isLoginValid(tx: Tx, identityUid: string, { atMs, revokeTimeMs }: LoginDate): Promise<boolean> {
  const identity = await tx.table(identityKind).findActive(identityUid);
  if (identity === undefined || identity.notBefore * 1000 > atMs) return false;
  return revokeTimeMs === undefined || revokeTimeMs === identity.revokeTimeMs;
}

/**
 * Narrows what a login is valid for to what a token is requested for. A token can have less than its login, never
 * more.
 *
 * @throws ApiError INVALID_ARGUMENT when groups are requested that the login is not valid for
 */
export function narrowGrant(grant: TokenGrant, { audience = grant.audience, limit }: Partial<TokenGrant>): TokenGrant {
  if (limit === undefined) return { ...grant, audience };
  const cap = intersectCapabilities(grant.limit?.cap, limit.cap);
  const granted = grant.limit?.scope;
  const scope = limit.scope ?? granted;
  // Descendants of these groups are excluded too: what is granted there is not effective for the login.
  if (granted !== undefined && !scope?.every((uid) => granted.includes(uid))) {
    const rule = "must be among the groups that the login is good for";
    throw invalidArgument({ field: "scopes", rule });
  }
  return { ...grant, audience, limit: { ...(cap !== undefined && { cap }), ...(scope !== undefined && { scope }) } };
}

function intersectCapabilities(
  one: CapabilitySet | undefined,
  other: CapabilitySet | undefined,
): CapabilitySet | undefined {
  return one === undefined || other === undefined ? (one ?? other) : intersectionOf(one, other);
}

/** The claims of a token to issue, without the id, and its {@link IssueDate}. */
interface IssueTokenOptions extends Omit<TokenClaims, "subject" | "tokenId" | "issuedAt">, Pick<IssueDate, "atMs"> {
  /** The uid of the identity, the token's `sub`. */
  readonly identity: string;
}

/** Issues and signs an API token with the active key. */
export function issueToken(request: IssueTokenOptions, keys: Pick<Keys, "getSigningKey">, ids: Ids): Promise<string> {
  return signJwt(encodeToken(request, keys, ids));
}

function encodeToken(request: IssueTokenOptions, keys: Pick<Keys, "getSigningKey">, ids: Ids): UnsignedJwt {
  const { identity, atMs, ...claims } = request;
  return encodeApiToken(
    { ...claims, subject: identity, tokenId: ids.newId(), issuedAt: Math.floor(atMs / 1000) },
    keys.getSigningKey(),
  );
}
