// The stores of tickets and of refresh tokens.
import { and, desc, gt, inArray, lt, sql } from "drizzle-orm";
import type {
  Awaitable,
  RefreshTokenRow,
  RefreshTokenStore,
  TicketKind,
  TicketOrigin,
  TicketRow,
  TicketStore,
} from "../port.js";
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

/** Tickets; see {@link TicketStore}. */
export class Tickets implements TicketStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  find(kind: TicketKind, hash: string): Awaitable<TicketRow | undefined> {
    return takeFirst(this.#tx.rows(getTicket, { kind, hash }));
  }

  put(row: TicketRow, origin: Nullable<TicketOrigin> = { origin: null, isKept: null }): Awaitable<void> {
    const { hash, kind, data, expireTimeMs } = row;
    return discardRows(this.#tx.rows(putTicket, { hash, kind, data, expireTimeMs, ...origin }));
  }

  async findExcess(kind: TicketKind, origin: string, kept: number, nowMs: number): Promise<string[]> {
    return (await this.#tx.rows(findExcess, { kind, origin, kept, nowMs })).map(({ hash }) => hash);
  }

  delete(hash: string): Awaitable<void> {
    return discardRows(this.#tx.rows(deleteTicket, { hash }));
  }

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

/** Refresh tokens; see {@link RefreshTokenStore}. */
export class RefreshTokens implements RefreshTokenStore {
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

  sweep(timeMs: number, limit: number): Awaitable<number> {
    return countRows(this.#tx.rows(sweepRefresh, { timeMs, limit }));
  }
}
