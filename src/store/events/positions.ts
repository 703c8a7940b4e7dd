// How far the events of each subscription are delivered (docs/adr/0022-event-delivery.md).
import { and, eq, exists, getTableColumns, gt, isNull, lte, min, ne, sql } from "drizzle-orm";
import { insertMissing, selectRows } from "../rows.js";
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
import type { DeliveryState, EventPositionRow, SuspendReason } from "../tables/events.js";
import type { Tables } from "../tables/tables.js";

/** A position with what its delivery needs to know of the subscription. */
export interface SubscribedPosition extends EventPositionRow {
  readonly groupUid: string;
  readonly sink: string;
  /** The last sealed entry of the organisation; 0 where there is none. */
  readonly headSeq: number;
}

/** How many subscriptions have a state, and for suspended ones a reason. */
export interface StateCount {
  readonly state: DeliveryState;
  readonly suspendReason: SuspendReason;
  readonly n: number;
}

/** What changes of a position. */
export type PositionChange = Pick<EventPositionRow, "seq" | "state" | "suspendReason" | "failingSinceMs">;

const find = selectRows("eventPositions", ["subscriptionUid"]);
const insert = insertMissing("eventPositions");

const changing = ["seq", "state", "suspendReason", "failingSinceMs"] as const;
const change = statement<Pick<EventPositionRow, "subscriptionUid"> & PositionChange>((q, t) =>
  q
    .update(t.eventPositions)
    .set({ ...buildUpdateValues(t.eventPositions, ...changing), revision: sql`${t.eventPositions.revision} + 1` })
    .where(buildEquals(t.eventPositions, "subscriptionUid")),
);
const advance = statement<
  Pick<EventPositionRow, "subscriptionUid" | "revision"> & PositionChange,
  { subscriptionUid: string }
>((q, t) =>
  q
    .update(t.eventPositions)
    .set(buildUpdateValues(t.eventPositions, ...changing))
    .where(buildEquals(t.eventPositions, "subscriptionUid", "revision"))
    .returning({ subscriptionUid: t.eventPositions.subscriptionUid }),
);

const selectSubscribed = (q: Sql, t: Tables) =>
  q
    .select({
      ...getTableColumns(t.eventPositions),
      groupUid: t.subscriptions.groupUid,
      sink: t.subscriptions.sink,
      headSeq: sql<number>`coalesce(${t.auditHeads.seq}, 0)`.mapWith(Number),
    })
    .from(t.eventPositions)
    .innerJoin(t.subscriptions, eq(t.subscriptions.uid, t.eventPositions.subscriptionUid))
    .leftJoin(t.auditHeads, eq(t.auditHeads.rootUid, t.eventPositions.rootUid));
const subscribed = statement<{ subscriptionUid: string }, SubscribedPosition>((q, t) =>
  selectSubscribed(q, t).where(buildEquals(t.eventPositions, "subscriptionUid")),
);
const isActive = (t: Tables) => ne(t.eventPositions.state, sql`'suspended'` as unknown as DeliveryState);
const behind = statement<object, SubscribedPosition>((q, t) =>
  selectSubscribed(q, t).where(and(isActive(t), gt(t.auditHeads.seq, t.eventPositions.seq))),
);
const due = statement<{ nowMs: number }, SubscribedPosition>((q, t) =>
  selectSubscribed(q, t).where(
    and(
      isActive(t),
      exists(
        q
          .select({ seq: t.eventDeliveries.seq })
          .from(t.eventDeliveries)
          .where(
            and(
              eq(t.eventDeliveries.subscriptionUid, t.eventPositions.subscriptionUid),
              isNull(t.eventDeliveries.deadTimeMs),
              lte(t.eventDeliveries.nextTimeMs, value("nowMs")),
            ),
          ),
      ),
    ),
  ),
);
const revisions = statement<object, Pick<EventPositionRow, "subscriptionUid" | "revision">>((q, t) =>
  q
    .select({ subscriptionUid: t.eventPositions.subscriptionUid, revision: t.eventPositions.revision })
    .from(t.eventPositions)
    .where(isActive(t)),
);
const anyActive = statement<object, { subscriptionUid: string }>((q, t) =>
  q
    .select({ subscriptionUid: t.eventPositions.subscriptionUid })
    .from(t.eventPositions)
    .where(isActive(t))
    .limit(rowLimit(1)),
);
const lowestActive = statement<{ rootUid: string }, { seq: number | null }>((q, t) =>
  q
    .select({ seq: min(t.eventPositions.seq) })
    .from(t.eventPositions)
    .where(and(buildEquals(t.eventPositions, "rootUid"), isActive(t))),
);
const lowestWaiting = statement<{ rootUid: string }, { seq: number | null }>((q, t) =>
  q
    .select({ seq: min(t.eventDeliveries.seq) })
    .from(t.eventPositions)
    .innerJoin(
      t.eventDeliveries,
      and(
        eq(t.eventDeliveries.subscriptionUid, t.eventPositions.subscriptionUid),
        isNull(t.eventDeliveries.deadTimeMs),
      ),
    )
    .where(and(buildEquals(t.eventPositions, "rootUid"), isActive(t))),
);
const missing = statement<{ limit: number }, { uid: string }>((q, t) =>
  q
    .select({ uid: t.subscriptions.uid })
    .from(t.subscriptions)
    .leftJoin(t.eventPositions, eq(t.eventPositions.subscriptionUid, t.subscriptions.uid))
    .where(isNull(t.eventPositions.subscriptionUid))
    .limit(rowLimit("limit")),
);
const states = statement<object, StateCount>((q, t) =>
  q
    .select({
      state: t.eventPositions.state,
      suspendReason: t.eventPositions.suspendReason,
      n: toNumber(sql`count(*)`),
    })
    .from(t.eventPositions)
    .groupBy(t.eventPositions.state, t.eventPositions.suspendReason),
);
const countFailing = statement<{ sinceMs: number }, { n: number }>((q, t) =>
  q
    .select({ n: toNumber(sql`count(*)`) })
    .from(t.eventPositions)
    .where(and(isActive(t), lte(t.eventPositions.failingSinceMs, value("sinceMs")))),
);
// The position of a subscription stands before the first entry that is neither delivered, nor waits in a row of its own.
// A subquery for each, because PostgreSQL would read the whole log for a join if it takes the subscriptions for many.
const oldestUnsent = statement<object, { timeMs: number | null }>((q, t) => {
  const next = q
    .select({ timeMs: t.audit.timeMs })
    .from(t.auditChain)
    .innerJoin(t.audit, eq(t.audit.id, t.auditChain.auditId))
    .where(
      and(eq(t.auditChain.rootUid, t.eventPositions.rootUid), sql`${t.auditChain.seq} = ${t.eventPositions.seq} + 1`),
    );
  return q
    .select({ timeMs: toNumber(sql`min((${next}))`) })
    .from(t.eventPositions)
    .where(and(isActive(t), ne(t.eventPositions.state, sql`'stalled'` as unknown as DeliveryState)));
});

/** The positions. A node that delivers moves them; callers suspend, resume and move them back. */
export class EventPositions extends TransactionPart {
  find(subscriptionUid: string): Promise<EventPositionRow | undefined> {
    return this.first(find, { subscriptionUid });
  }

  findSubscribed(subscriptionUid: string): Promise<SubscribedPosition | undefined> {
    return this.first(subscribed, { subscriptionUid });
  }

  /** Begins at an entry, unless the subscription has a position. */
  begin(subscriptionUid: string, rootUid: string, seq: number): Promise<void> {
    const row = { state: "live", suspendReason: "" as SuspendReason, failingSinceMs: null, revision: 0 } as const;
    return this.run(insert, { subscriptionUid, rootUid, seq, ...row });
  }

  /** Makes a change that the node which delivers must not overwrite. */
  change(subscriptionUid: string, changed: PositionChange): Promise<void> {
    return this.run(change, { subscriptionUid, ...changed });
  }

  /** Writes what the node that delivers has done; false where a caller changed or deleted the subscription meanwhile. */
  async advance(row: Pick<EventPositionRow, "subscriptionUid" | "revision"> & PositionChange): Promise<boolean> {
    return (await this.countOf(advance, row)) === 1;
  }

  /** Those that are not suspended and have entries of their organisation before them. */
  listBehind(): Promise<SubscribedPosition[]> {
    return this.all(behind, {});
  }

  /** Those that are not suspended and have an event that waits, whose next attempt is due. */
  listDue(nowMs: number): Promise<SubscribedPosition[]> {
    return this.all(due, { nowMs });
  }

  /** The revisions of those that are not suspended. */
  async listRevisions(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.all(revisions, {});
    return new Map(rows.map(({ subscriptionUid, revision }) => [subscriptionUid, revision]));
  }

  /** Whether any is not suspended. */
  hasActive(): Promise<boolean> {
    return this.has(anyActive, {});
  }

  /** The uids of subscriptions without a position: those of an older version. */
  listMissing(limit: number): Promise<string[]> {
    return this.all(missing, { limit }, (rows) => rows.map(({ uid }) => uid));
  }

  /**
   * The first entry of an organisation that a subscription still needs, which is not suspended; undefined where none needs
   * any.
   */
  async findLowestNeeded(rootUid: string): Promise<number | undefined> {
    const { seq: position = null } = (await this.first(lowestActive, { rootUid })) ?? {};
    if (position === null) return undefined;
    const { seq: waiting = null } = (await this.first(lowestWaiting, { rootUid })) ?? {};
    return Math.min(position + 1, waiting ?? Number.POSITIVE_INFINITY);
  }

  /** How many subscriptions are in each state. */
  countStates(): Promise<StateCount[]> {
    return this.all(states, {});
  }

  /** How many subscriptions have accepted nothing since a time; suspended ones are not counted. */
  async countFailing(sinceMs: number): Promise<number> {
    return (await this.first(countFailing, { sinceMs }))?.n ?? 0;
  }

  /**
   * The time of the oldest entry that a subscription has not got to; undefined where there is none. Suspended subscriptions
   * are left out, and stalled ones, whose sinks accept none of the events before.
   */
  async findOldestUnsent(): Promise<number | undefined> {
    return (await this.first(oldestUnsent, {}))?.timeMs ?? undefined;
  }
}
