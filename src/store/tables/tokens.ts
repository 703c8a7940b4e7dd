// Keys, and the secrets that the issuer hands out. Of those only hashes are stored.
import type { Columns, RowOf } from "./columns-sqlite.js";

/** What a key is for; a key never serves two purposes. */
export type KeyPurpose = "api-token" | "page-token" | "audit" | "registry";

/** The state of a key; a removed key is no longer in the store. */
export type KeyState = "pending" | "active" | "verify";

export type TicketKind =
  | "authorization"
  | "code"
  | "headless"
  | "device"
  | "user-code"
  | "id-token"
  | "terminal"
  | "refresh"
  | "deleted"
  | "used-invite"
  | "owner-invite";

/** Builds the tables of keys and secrets. */
export function defineTokenTables(c: Columns) {
  const keys = c.table("keys", {
    kid: c.str("kid").primaryKey(),
    purpose: c.str("purpose").$type<KeyPurpose>().notNull(),
    /** A `pending` key is published and signs nothing yet, an `active` one signs, a `verify` one only verifies. */
    state: c.str("state").$type<KeyState>().notNull(),
    /** The public JWK as JSON; empty for secret keys. */
    publicJwk: c.str("public_jwk").notNull(),
    /** The private or secret key, sealed with the master key. */
    sealed: c.str("sealed").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    /** When it changes state by itself, in epoch milliseconds; null where no change is planned. */
    nextTimeMs: c.long("next_time_ms"),
  });

  const tickets = c.table(
    "tickets",
    {
      /** The SHA-256 of the secret, in hex. */
      hash: c.str("hash").primaryKey(),
      kind: c.str("kind").$type<TicketKind>().notNull(),
      data: c.json<object>("data").notNull(),
      expireTimeMs: c.long("expire_time_ms").notNull(),
      /** What a limit counts it for, such as a network address; null for tickets without a limit. */
      origin: c.str("origin"),
      /** Whether the limit keeps it longer than others of its origin; null without an origin. */
      isKept: c.bool("is_kept"),
    },
    (t) => [
      c.index("tickets_expiry").on(t.expireTimeMs),
      c.index("tickets_origin").on(t.origin, t.kind, t.isKept, t.expireTimeMs),
    ],
  );

  const refreshTokens = c.table(
    "refresh_tokens",
    {
      /** The SHA-256 of its secret, in hex; of a session of the console that of the hashes of both its halves. */
      hash: c.str("hash").primaryKey(),
      /** Shared by all tokens that replaced one another since a login. */
      family: c.str("family").notNull(),
      identityUid: c.str("identity_uid").notNull(),
      /** What the tokens that it is exchanged for may do. */
      grant: c.json<object>("grant").notNull(),
      /** Whether it was already exchanged for its successor. */
      used: c.bool("used").notNull(),
      /** The time of the login, not the time at which it replaced its predecessor. */
      createTimeMs: c.long("create_time_ms").notNull(),
      expireTimeMs: c.long("expire_time_ms").notNull(),
    },
    (t) => [
      c.index("refresh_tokens_family").on(t.family),
      c.index("refresh_tokens_identity").on(t.identityUid),
      c.index("refresh_tokens_expiry").on(t.expireTimeMs),
    ],
  );

  const revokedTokens = c.table(
    "revoked_tokens",
    {
      identityUid: c.str("identity_uid").notNull(),
      /** The id of the API token, its `jti`. */
      tokenId: c.str("token_id").notNull(),
      /** When no token of this id is valid any more, in epoch milliseconds. */
      expireTimeMs: c.long("expire_time_ms").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.identityUid, t.tokenId] }), c.index("revoked_tokens_expiry").on(t.expireTimeMs)],
  );

  return { keys, tickets, refreshTokens, revokedTokens };
}

type TokenTables = ReturnType<typeof defineTokenTables>;

export type KeyRow = RowOf<TokenTables["keys"]>;
type StoredTicket = RowOf<TokenTables["tickets"]>;
/** A secret that is valid once and for a limited time, such as the state of a login in progress. */
export type TicketRow = Omit<StoredTicket, "origin" | "isKept">;
/** What a limit counts a ticket for. */
export type TicketOrigin = { readonly [K in "origin" | "isKept"]: NonNullable<StoredTicket[K]> };
/** An API token that was revoked by itself. */
export type RevokedTokenRow = RowOf<TokenTables["revokedTokens"]>;
export type RefreshTokenRow = RowOf<TokenTables["refreshTokens"]>;
