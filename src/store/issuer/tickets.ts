// Tickets: secrets that are valid once and for a limited time.
import { and, desc, gt, sql } from "drizzle-orm";
import { deleteRows, selectRows, sweepRows } from "../rows.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpsertValues,
  rowLimit,
  statement,
  TransactionPart,
  value,
} from "../statement.js";
import type { TicketKind, TicketOrigin, TicketRow } from "../tables/tokens.js";

type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

interface ExcessQuery {
  readonly kind: string;
  readonly origin: string;
  readonly nowMs: number;
  readonly kept: number;
}

/** How many tickets beyond a limit one query finds, so that their deletion is short. */
const MAX_EXCESS = 20;

const find = selectRows("tickets", ["hash", "kind"]);
const remove = deleteRows("tickets", "hash");
const sweep = sweepRows("tickets", "hash", "expireTimeMs");

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
    .where(and(buildEquals(t.tickets, "origin", "kind"), gt(t.tickets.expireTimeMs, value("nowMs"))))
    .orderBy(desc(t.tickets.isKept), desc(t.tickets.expireTimeMs))
    .limit(rowLimit(MAX_EXCESS))
    .offset(rowLimit("kept")),
);

export class Tickets extends TransactionPart {
  /** The ticket of this kind, also when it is expired and not yet swept. */
  find(kind: TicketKind, hash: string): Promise<TicketRow | undefined> {
    return this.first(find, { hash, kind });
  }

  /**
   * Stores a ticket; replaces one with the same hash.
   *
   * @param origin what a limit counts it for; without it, a ticket that is replaced keeps its origin
   */
  put(row: TicketRow, origin: Nullable<TicketOrigin> = { origin: null, isKept: null }): Promise<void> {
    const { hash, kind, data, expireTimeMs } = row;
    return this.run(putTicket, { hash, kind, data, expireTimeMs, ...origin });
  }

  /**
   * Finds tickets of an origin beyond the `kept` ones that a limit keeps: first those that are to be kept, then the
   * newest. Expired ones do not count.
   *
   * @returns hashes, at most 20
   */
  async findExcess(kind: TicketKind, origin: string, kept: number, nowMs: number): Promise<string[]> {
    return (await this.all(findExcess, { kind, origin, kept, nowMs })).map(({ hash }) => hash);
  }

  /** Does nothing when the ticket does not exist. */
  delete(hash: string): Promise<void> {
    return this.run(remove, { hash });
  }

  /**
   * Deletes up to `limit` tickets that expired before `timeMs`. A small limit keeps other calls from waiting.
   *
   * @returns how many were deleted; fewer than `limit` when none are left
   */
  sweep(timeMs: number, limit: number): Promise<number> {
    return this.countOf(sweep, { bound: timeMs, limit });
  }
}
