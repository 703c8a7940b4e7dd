// What the rest of the service sees of the storage of secrets that it handed
// out; part of port.ts. None of them is stored itself, only its hash.
import type { Awaitable } from "./port-lists.js";

/** What a ticket is for. */
export type TicketKind = "authorization" | "code" | "headless" | "device" | "user-code";

/** A secret that is good once and for a while, such as the state of a login under way. */
export interface TicketRow {
  /** The SHA-256 of the secret, in hex. */
  readonly hash: string;
  readonly kind: TicketKind;
  readonly data: object;
  readonly expireTimeMs: number;
}

/** Tickets. */
export interface TicketStore {
  /** Null where there is none of this kind; expired ones are still there until they are swept. */
  get(kind: TicketKind, hash: string): Awaitable<TicketRow | undefined>;
  /** Stores a ticket, in place of one with the same hash. */
  put(row: TicketRow): Awaitable<void>;
  /** Does nothing when it is not there. */
  delete(hash: string): Awaitable<void>;
  /**
   * Deletes up to `limit` of those that expired before `timeMs`: few enough that no other call waits for it.
   *
   * @returns how many there were; fewer than `limit` when none are left
   */
  sweep(timeMs: number, limit: number): Awaitable<number>;
}

/** A refresh token as stored. */
export interface RefreshTokenRow {
  /** The SHA-256 of its secret, in hex. */
  readonly hash: string;
  /** What all tokens that replaced one another since a login have in common. */
  readonly family: string;
  readonly identityUid: string;
  /** What the tokens it is changed for are good for. */
  readonly grant: object;
  /** Whether it was changed for its successor already. */
  readonly used: boolean;
  /** When the login was, not when it replaced another. */
  readonly createTimeMs: number;
  readonly expireTimeMs: number;
}

/** Refresh tokens. */
export interface RefreshTokenStore {
  get(hash: string): Awaitable<RefreshTokenRow | undefined>;
  insert(row: RefreshTokenRow): Awaitable<void>;
  markUsed(hash: string): Awaitable<void>;
  deleteFamily(family: string): Awaitable<void>;
  deleteOf(identityUid: string): Awaitable<void>;
  /**
   * Deletes up to `limit` of those that expired before `timeMs`: few enough that no other call waits for it.
   *
   * @returns how many there were; fewer than `limit` when none are left
   */
  sweep(timeMs: number, limit: number): Awaitable<number>;
}
