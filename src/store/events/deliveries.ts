// Events that sinks have not accepted: those that wait for another attempt, and dead letters.
import { and, asc, eq, getTableColumns, gt, inArray, isNotNull, isNull, lt, min, ne, type SQL, sql } from "drizzle-orm";
import { deleteRows, putRow, selectRows } from "../rows.js";
import {
  buildEquals,
  buildUpdateValues,
  rowLimit,
  type Sql,
  statement,
  TransactionPart,
  toNumber,
  value,
} from "../statement.js";
import type { DeliveryState, EventDeliveryRow } from "../tables/events.js";
import type { Tables } from "../tables/tables.js";

/** A delivery with its event; what the log has no more of is null. */
export interface ListedDelivery extends EventDeliveryRow {
  readonly auditId: number | null;
  readonly type: string | null;
  readonly timeMs: number | null;
}

const find = selectRows("eventDeliveries", ["subscriptionUid", "seq"]);
const put = putRow("eventDeliveries", "subscriptionUid", "seq");
const deleteOne = deleteRows("eventDeliveries", "subscriptionUid", "seq");

const isWaiting = (t: Tables) => isNull(t.eventDeliveries.deadTimeMs);
const isDead = (t: Tables) => isNotNull(t.eventDeliveries.deadTimeMs);
const waiting = statement<{ subscriptionUid: string }, EventDeliveryRow>((q, t) =>
  q
    .select()
    .from(t.eventDeliveries)
    .where(and(buildEquals(t.eventDeliveries, "subscriptionUid"), isWaiting(t)))
    .orderBy(asc(t.eventDeliveries.seq)),
);
const counted = (condition: (t: Tables) => SQL) =>
  statement<{ subscriptionUid: string }, { n: number }>((q, t) =>
    q
      .select({ n: toNumber(sql`count(*)`) })
      .from(t.eventDeliveries)
      .where(and(buildEquals(t.eventDeliveries, "subscriptionUid"), condition(t))),
  );
const countWaiting = counted(isWaiting);
const countDead = counted(isDead);

// Nothing is attempted of suspended subscriptions, for which events wait for as long as they are there. SQLite takes the tables
// of a cross join in their order, and so reads the rows of the others alone.
const waitingOfAll = statement<{ limit: number }, WaitingCount>((q, t) => {
  const first = q
    .select({ sinceMs: t.eventDeliveries.sinceMs })
    .from(t.eventPositions)
    .crossJoin(t.eventDeliveries)
    .where(
      and(
        ne(t.eventPositions.state, sql`'suspended'` as unknown as DeliveryState),
        eq(t.eventDeliveries.subscriptionUid, t.eventPositions.subscriptionUid),
        isWaiting(t),
      ),
    )
    .limit(rowLimit("limit"))
    .as("first");
  return q.select({ n: toNumber(sql`count(*)`), oldestMs: min(first.sinceMs) }).from(first);
});

const selectListed = (q: Sql, t: Tables) =>
  q
    .select({
      ...getTableColumns(t.eventDeliveries),
      auditId: t.audit.id,
      type: t.audit.type,
      timeMs: t.audit.timeMs,
    })
    .from(t.eventDeliveries)
    .innerJoin(t.eventPositions, eq(t.eventPositions.subscriptionUid, t.eventDeliveries.subscriptionUid))
    .leftJoin(
      t.auditChain,
      and(eq(t.auditChain.rootUid, t.eventPositions.rootUid), eq(t.auditChain.seq, t.eventDeliveries.seq)),
    )
    .leftJoin(t.audit, eq(t.audit.id, t.auditChain.auditId));
const listed = (condition: (t: Tables) => SQL | undefined) =>
  statement<{ subscriptionUid: string; afterSeq: number; limit: number }, ListedDelivery>((q, t) =>
    selectListed(q, t)
      .where(
        and(
          buildEquals(t.eventDeliveries, "subscriptionUid"),
          gt(t.eventDeliveries.seq, value("afterSeq")),
          condition(t),
        ),
      )
      .orderBy(asc(t.eventDeliveries.seq))
      .limit(rowLimit("limit")),
  );
const listAll = listed(() => undefined);
const listWaiting = listed(isWaiting);
const listDead = listed(isDead);

const hold = statement<{ subscriptionUid: string }>((q, t) =>
  q
    .update(t.eventDeliveries)
    .set({ nextTimeMs: sql`null` })
    .where(and(buildEquals(t.eventDeliveries, "subscriptionUid"), isWaiting(t))),
);
const release = statement<{ subscriptionUid: string; nextTimeMs: number; sinceMs: number }>((q, t) =>
  q
    .update(t.eventDeliveries)
    .set(buildUpdateValues(t.eventDeliveries, "nextTimeMs", "sinceMs"))
    .where(and(buildEquals(t.eventDeliveries, "subscriptionUid"), isWaiting(t))),
);
const deleteAfter = statement<{ subscriptionUid: string; afterSeq: number }>((q, t) =>
  q
    .delete(t.eventDeliveries)
    .where(and(buildEquals(t.eventDeliveries, "subscriptionUid"), gt(t.eventDeliveries.seq, value("afterSeq")))),
);
const sweepDead = statement<{ beforeMs: number; limit: number }, { seq: number }>((q, t) => {
  const { subscriptionUid, seq, deadTimeMs } = t.eventDeliveries;
  const old = q
    .select({ subscriptionUid, seq })
    .from(t.eventDeliveries)
    .where(lt(deadTimeMs, value("beforeMs")))
    .limit(rowLimit("limit"));
  return q.delete(t.eventDeliveries).where(sql`(${subscriptionUid}, ${seq}) in ${old}`).returning({ seq });
});

// The chain has the order of sealing, and times come from the clocks of nodes: among the first rows since a time the one
// with the lowest number is where to begin.
const ROWS_SINCE = 1_000;
const firstSince = statement<{ rootUid: string; timeMs: number }, { seq: number | null }>((q, t) => {
  const first = q
    .select({ id: t.audit.id })
    .from(t.audit)
    .where(and(buildEquals(t.audit, "rootUid"), sql`${t.audit.timeMs} >= ${value("timeMs")}`))
    .orderBy(asc(t.audit.timeMs), asc(t.audit.id))
    .limit(rowLimit(ROWS_SINCE));
  return q
    .select({ seq: min(t.auditChain.seq) })
    .from(t.auditChain)
    .where(inArray(t.auditChain.auditId, first));
});

/** The events of all subscriptions that wait for another attempt. */
export interface WaitingCount {
  readonly n: number;
  /** Since when the oldest one waits; null where there is none. */
  readonly oldestMs: number | null;
}

/** How many events wait and how many are dead letters. */
export interface UndeliveredCounts {
  readonly waiting: number;
  readonly dead: number;
}

/** The deliveries. */
export class EventDeliveries extends TransactionPart {
  find(subscriptionUid: string, seq: number): Promise<EventDeliveryRow | undefined> {
    return this.first(find, { subscriptionUid, seq });
  }

  /** Inserts or overwrites. */
  put(row: EventDeliveryRow): Promise<void> {
    return this.run(put, row);
  }

  delete(subscriptionUid: string, seq: number): Promise<void> {
    return this.run(deleteOne, { subscriptionUid, seq });
  }

  /** The events of a subscription that wait, in order. */
  listWaiting(subscriptionUid: string): Promise<EventDeliveryRow[]> {
    return this.all(waiting, { subscriptionUid });
  }

  async count(subscriptionUid: string): Promise<UndeliveredCounts> {
    const waits = await this.first(countWaiting, { subscriptionUid });
    const dead = await this.first(countDead, { subscriptionUid });
    return { waiting: waits?.n ?? 0, dead: dead?.n ?? 0 };
  }

  /** Counts the events that wait for another attempt, at most `limit`; those of suspended subscriptions are left out. */
  async countWaiting(limit: number): Promise<WaitingCount> {
    return (await this.first(waitingOfAll, { limit })) ?? { n: 0, oldestMs: null };
  }

  /** A page of the deliveries of a subscription in the order of their events: all, or those of one state. */
  list(
    subscriptionUid: string,
    { state, afterSeq, limit }: { state?: "waiting" | "dead" | undefined; afterSeq: number; limit: number },
  ): Promise<ListedDelivery[]> {
    const statement = state === undefined ? listAll : state === "dead" ? listDead : listWaiting;
    return this.all(statement, { subscriptionUid, afterSeq, limit });
  }

  /** Plans no attempt for the events that wait. */
  hold(subscriptionUid: string): Promise<void> {
    return this.run(hold, { subscriptionUid });
  }

  /** Plans an attempt for each event that waits, as if it had waited since then. */
  release(subscriptionUid: string, nowMs: number): Promise<void> {
    return this.run(release, { subscriptionUid, nextTimeMs: nowMs, sinceMs: nowMs });
  }

  /** Deletes all after an entry. */
  deleteAfter(subscriptionUid: string, afterSeq: number): Promise<void> {
    return this.run(deleteAfter, { subscriptionUid, afterSeq });
  }

  /** Deletes dead letters from before a time, at most `limit`; returns how many. */
  sweepDead(beforeMs: number, limit: number): Promise<number> {
    return this.countOf(sweepDead, { beforeMs, limit });
  }

  /** The first entry of an organisation's chain since a time; undefined where there is none. */
  async findFirstSince(rootUid: string, timeMs: number): Promise<number | undefined> {
    return (await this.first(firstSince, { rootUid, timeMs }))?.seq ?? undefined;
  }
}
