// The stores of tickets and of refresh tokens.
import { and, desc, gt, inArray, lt, sql } from "drizzle-orm";
import type { Awaitable } from "../awaitable.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpsertValues,
  countRows,
  discardRows,
  type Executor,
  statement,
  takeFirst,
} from "../statement.js";
import type { RefreshTokenRow, TicketKind, TicketOrigin, TicketRow } from "../tables/tokens.js";

type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

interface ExcessQuery {
  readonly kind: string;
  readonly origin: string;
  readonly nowMs: number;
  readonly kept: number;
}

/** How many tickets beyond a limit one query finds, so that their deletion is short. */
const MAX_EXCESS = 20;

interface SweepLimit {
  readonly timeMs: number;
  readonly limit: number;
}

const getTicket = statement<{ kind: string; hash: string }, TicketRow>((q, t) =>
  q
    .select()
    .from(t.tickets)
    .where(buildEquals(t.tickets, "hash", "kind")),
);
const putTicket = statement<TicketRow & Nullable<TicketOrigin>>((q, t) =>
  q
    .insert(t.tickets)
    .values(buildInsertValues(t.tickets))
    .onConflictDoUpdate({
      target: t.tickets.hash,
      set: {
        ...buildUpsertValues(t.tickets, "kind", "data", "expireTimeMs"),
        origin: sql`coalesce(excluded.origin, ${t.tickets.origin})`,
        isKept: sql`coalesce(excluded.is_kept, ${t.tickets.isKept})`,
      },
    }),
);
const findExcess = statement<ExcessQuery, { hash: string }>((q, t) =>
  q
    .select({ hash: t.tickets.hash })
    .from(t.tickets)
    .where(and(buildEquals(t.tickets, "origin", "kind"), gt(t.tickets.expireTimeMs, sql.placeholder("nowMs"))))
    .orderBy(desc(t.tickets.isKept), desc(t.tickets.expireTimeMs))
    .limit(MAX_EXCESS)
    .offset(sql.placeholder("kept")),
);
const deleteTicket = statement<{ hash: string }>((q, t) => q.delete(t.tickets).where(buildEquals(t.tickets, "hash")));
const sweepTickets = statement<SweepLimit, { hash: string }>((q, t) => {
  const expired = q
    .select({ hash: t.tickets.hash })
    .from(t.tickets)
    .where(lt(t.tickets.expireTimeMs, sql.placeholder("timeMs")))
    .limit(sql.placeholder("limit"));
  return q.delete(t.tickets).where(inArray(t.tickets.hash, expired)).returning({ hash: t.tickets.hash });
});

/** Tickets. */
export class Tickets {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  /** The ticket of this kind, also when it is expired and not yet swept. */
  find(kind: TicketKind, hash: string): Awaitable<TicketRow | undefined> {
    return takeFirst(this.#tx.rows(getTicket, { kind, hash }));
  }

  /**
   * Stores a ticket; replaces one with the same hash.
   *
   * @param origin what a limit counts it for; without it, a ticket that is replaced keeps its origin
   */
  put(row: TicketRow, origin: Nullable<TicketOrigin> = { origin: null, isKept: null }): Awaitable<void> {
    const { hash, kind, data, expireTimeMs } = row;
    return discardRows(this.#tx.rows(putTicket, { hash, kind, data, expireTimeMs, ...origin }));
  }

  /**
   * Finds tickets of an origin beyond the `kept` ones that a limit keeps: first those that are to be kept, then the
   * newest. Expired ones do not count.
   *
   * @returns hashes, at most 20
   */
  async findExcess(kind: TicketKind, origin: string, kept: number, nowMs: number): Promise<string[]> {
    return (await this.#tx.rows(findExcess, { kind, origin, kept, nowMs })).map(({ hash }) => hash);
  }

  /** Does nothing when the ticket does not exist. */
  delete(hash: string): Awaitable<void> {
    return discardRows(this.#tx.rows(deleteTicket, { hash }));
  }

  /**
   * Deletes up to `limit` tickets that expired before `timeMs`. A small limit keeps other calls from waiting.
   *
   * @returns how many were deleted; fewer than `limit` when none are left
   */
  sweep(timeMs: number, limit: number): Awaitable<number> {
    return countRows(this.#tx.rows(sweepTickets, { timeMs, limit }));
  }
}

const getRefresh = statement<{ hash: string }, RefreshTokenRow>((q, t) =>
  q.select().from(t.refreshTokens).where(buildEquals(t.refreshTokens, "hash")),
);
const insertRefresh = statement<RefreshTokenRow>((q, t) =>
  q.insert(t.refreshTokens).values(buildInsertValues(t.refreshTokens)),
);
const useRefresh = statement<{ hash: string }>((q, t) =>
  q.update(t.refreshTokens).set({ used: true }).where(buildEquals(t.refreshTokens, "hash")),
);
const deleteFamily = statement<{ family: string }>((q, t) =>
  q.delete(t.refreshTokens).where(buildEquals(t.refreshTokens, "family")),
);
const deleteOf = statement<{ identityUid: string }>((q, t) =>
  q.delete(t.refreshTokens).where(buildEquals(t.refreshTokens, "identityUid")),
);
const sweepRefresh = statement<SweepLimit, { hash: string }>((q, t) => {
  const expired = q
    .select({ hash: t.refreshTokens.hash })
    .from(t.refreshTokens)
    .where(lt(t.refreshTokens.expireTimeMs, sql.placeholder("timeMs")))
    .limit(sql.placeholder("limit"));
  return q
    .delete(t.refreshTokens)
    .where(inArray(t.refreshTokens.hash, expired))
    .returning({ hash: t.refreshTokens.hash });
});

/** Refresh tokens. */
export class RefreshTokens {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  find(hash: string): Awaitable<RefreshTokenRow | undefined> {
    return takeFirst(this.#tx.rows(getRefresh, { hash }));
  }

  insert(row: RefreshTokenRow): Awaitable<void> {
    return discardRows(this.#tx.rows(insertRefresh, row));
  }

  markUsed(hash: string): Awaitable<void> {
    return discardRows(this.#tx.rows(useRefresh, { hash }));
  }

  deleteFamily(family: string): Awaitable<void> {
    return discardRows(this.#tx.rows(deleteFamily, { family }));
  }

  deleteOf(identityUid: string): Awaitable<void> {
    return discardRows(this.#tx.rows(deleteOf, { identityUid }));
  }

  /** As {@link Tickets.sweep}. */
  sweep(timeMs: number, limit: number): Awaitable<number> {
    return countRows(this.#tx.rows(sweepRefresh, { timeMs, limit }));
  }
}
