// The sessions of the console in the store. Each is a row among the refresh tokens, so that whatever lists, ends and deletes
// logins does so with them, but it is no refresh token: it is found by both of its halves and never replaced by another.
import { randomBytes } from "node:crypto";
import { sha256 } from "../../kernel/digest.js";
import type { Ids } from "../../kernel/ids.js";
import { MAX_TOKEN_LIFE_S } from "../../pipeline/auth/api-token.js";
import { identityKind } from "../../store/iam/identities.js";
import type { RefreshTokenRow } from "../../store/tables/tokens.js";
import type { Tx } from "../../store/transaction.js";
import type { SignedInFor } from "../oauth/state.js";
import {
  isLoginValid,
  MAX_LOGIN_MS,
  readIssueDate,
  type StoredGrant,
  type TokenGrant,
  type Tokens,
  type UnsignedToken,
} from "../tokens.js";
import { CONSOLE_CLIENT_ID } from "./client.js";

/** How long a session goes on without use, in milliseconds. */
const IDLE_MS = 12 * 60 * 60 * 1000;
/** By how much a use must move the end before it is stored, in milliseconds: most renewals write nothing. */
const MIN_EXTENSION_MS = 10 * 60 * 1000;

/** A session, and the API token that it gives now. */
export interface OpenSession {
  readonly id: string;
  readonly hash: string;
  readonly token: UnsignedToken;
  /** When it ends unless it is used before, in epoch milliseconds. */
  readonly expireTimeMs: number;
  /** Whether this use has moved the end so far that it must be stored. */
  readonly isExtended: boolean;
  /** The uid of the organisation's provider through which the person signed in; such a session is not extended. */
  readonly idpId?: string | undefined;
}

/** A session, and the secret for its cookie. */
export interface NewSession {
  readonly session: OpenSession;
  readonly secret: string;
}

/** Stores the sessions of the console. */
export type ConsoleSessions = ReturnType<typeof createConsoleSessions>;

export function createConsoleSessions({ tokens, ids }: { readonly tokens: Pick<Tokens, "issue">; readonly ids: Ids }) {
  async function open(tx: Tx, row: RefreshTokenRow, nowMs: number): Promise<OpenSession | undefined> {
    const { family: id, hash, identityUid, createTimeMs, expireTimeMs } = row;
    if (expireTimeMs <= nowMs || !(await isLoginValid(tx, identityUid, { atMs: createTimeMs }))) return undefined;
    const idpId = await findProviderOf(tx, identityUid);
    const untilMs = idpId === undefined ? undefined : expireTimeMs;
    const token = await tokens.issue(tx, identityUid, row.grant as TokenGrant, nowMs, untilMs);
    const extendedMs = Math.min(createTimeMs + MAX_LOGIN_MS, nowMs + IDLE_MS);
    const isExtended = idpId === undefined && extendedMs - expireTimeMs >= MIN_EXTENSION_MS;
    return { id, hash, token, idpId, isExtended, expireTimeMs: isExtended ? extendedMs : expireTimeMs };
  }

  return {
    /** Begins the session of a person who signed in. */
    async create(tx: Tx, login: SignedInFor, grant: TokenGrant, key: string, nowMs: number): Promise<NewSession> {
      const { identityUid } = login;
      const idpId = await findProviderOf(tx, identityUid);
      // An organisation ends the access of its people at its provider, so they are asked for there each hour.
      const untilMs = idpId === undefined ? undefined : login.atMs + MAX_TOKEN_LIFE_S * 1000;
      const token = await tokens.issue(tx, identityUid, grant, nowMs, untilMs);
      const { atMs: createTimeMs } = await readIssueDate(tx, identityUid, nowMs);
      const expireTimeMs = idpId === undefined ? createTimeMs + IDLE_MS : token.expiresAtMs;
      const secret = createSessionSecret();
      const hash = hashSession(secret, key);
      const id = ids.newId();
      const stored: StoredGrant = { ...grant, client: CONSOLE_CLIENT_ID };
      const row = { hash, family: id, identityUid, grant: stored, createTimeMs, expireTimeMs };
      await tx.refreshTokens.insert({ ...row, used: false });
      return { session: { id, hash, token, expireTimeMs, isExtended: false, idpId }, secret };
    },

    /** Finds the session whose two halves a browser sends, and issues a token for it. */
    async find(tx: Tx, secrets: readonly string[], key: string, nowMs: number): Promise<OpenSession | undefined> {
      const row = await findRow(tx, secrets, key);
      return row && open(tx, row, nowMs);
    },

    /** Finds a session by its hash, and gives it another secret in place of the one before. */
    async replaceSecret(tx: Tx, hash: string, key: string, nowMs: number): Promise<NewSession | undefined> {
      const row = await tx.refreshTokens.find(hash);
      const session = row && (await open(tx, row, nowMs));
      if (row === undefined || session === undefined) return undefined;
      const secret = createSessionSecret();
      const replaced = hashSession(secret, key);
      await tx.refreshTokens.deleteFamily(row.family);
      await tx.refreshTokens.insert({ ...row, hash: replaced, expireTimeMs: session.expireTimeMs });
      return { session: { ...session, hash: replaced }, secret };
    },

    /** Stores that a session was used. */
    async extend(tx: Tx, { hash, expireTimeMs }: OpenSession): Promise<void> {
      await tx.refreshTokens.extend(hash, expireTimeMs);
    },

    /** The id of the session whose two halves a browser sends, whether it goes on or not. */
    async findId(tx: Tx, secrets: readonly string[], key: string): Promise<string | undefined> {
      return (await findRow(tx, secrets, key))?.family;
    },
  };
}

async function findRow(tx: Tx, secrets: readonly string[], key: string): Promise<RefreshTokenRow | undefined> {
  for (const secret of secrets) {
    const row = await tx.refreshTokens.find(hashSession(secret, key));
    if (row !== undefined) return row;
  }
  return undefined;
}

async function findProviderOf(tx: Tx, identityUid: string): Promise<string | undefined> {
  return (await tx.table(identityKind).find(identityUid))?.providerUid ?? undefined;
}

function createSessionSecret(): string {
  return randomBytes(32).toString("base64url");
}

// Hashes of the halves, and not the halves, so that their border is fixed. A refresh token is found by the hash of a text
// that its bearer sends. These 64 bytes are hardly ever text, and besides the row says that it is none (`StoredGrant`).
function hashSession(secret: string, key: string): string {
  const halves = [secret, key].map((half) => sha256(half));
  return sha256(Buffer.concat(halves)).toString("hex");
}
