// The delivery of events. The audit log has the events themselves: a subscription has a position in the chain of its
// organisation, and a row for each event before that position that its sink has not accepted (docs/adr/0022-event-delivery.md).
import type { Columns, RowOf } from "./columns-sqlite.js";
import type { KindTables } from "./kind-tables.js";

/**
 * Whether the events of a subscription arrive:
 * - `live`: they do.
 * - `failing`: the last attempt failed.
 * - `stalled`: as many failed events wait as may wait, so the position does not move.
 * - `suspended`: none is sent until somebody resumes the subscription.
 */
export type DeliveryState = "live" | "failing" | "stalled" | "suspended";

/**
 * Why a subscription is suspended: a caller did it, its sink answered 410, all attempts failed for a day, or its position
 * is too far behind. Empty while it is not.
 */
export type SuspendReason = "" | "caller" | "gone" | "failed" | "backlog";

/** Builds the tables of the delivery of events. Their rows go with the subscription, also where an older node deletes it. */
export function defineEventTables(c: Columns, { subscriptions }: KindTables) {
  const eventPositions = c.table(
    "event_positions",
    {
      subscriptionUid: c
        .str("subscription_uid")
        .primaryKey()
        .references(() => subscriptions.uid, { onDelete: "cascade" }),
      /** The organisation, whose chain `seq` counts. */
      rootUid: c.str("root_uid").notNull(),
      /** All entries of the chain up to this one are delivered, have a row in `event_deliveries`, or are no events of it. */
      seq: c.long("seq").notNull(),
      state: c.str("state").$type<DeliveryState>().notNull(),
      suspendReason: c.str("suspend_reason").$type<SuspendReason>().notNull(),
      /** When the first of the attempts failed since which none has succeeded; null where the last one succeeded. */
      failingSinceMs: c.long("failing_since_ms"),
      /** Grows with each change by a caller, so that the node that delivers does not overwrite it. */
      revision: c.long("revision").notNull(),
    },
    (t) => [c.index("event_positions_root").on(t.rootUid, t.seq)],
  );

  const eventDeliveries = c.table(
    "event_deliveries",
    {
      subscriptionUid: c
        .str("subscription_uid")
        .notNull()
        .references(() => eventPositions.subscriptionUid, { onDelete: "cascade" }),
      /** The entry of the chain. */
      seq: c.long("seq").notNull(),
      /** The resource: a later event of the same one is sent after this one. */
      subjectUid: c.str("subject_uid").notNull(),
      /** Since when it waits. */
      sinceMs: c.long("since_ms").notNull(),
      /** When it is tried next; null for a dead letter, and while the subscription is suspended. */
      nextTimeMs: c.long("next_time_ms"),
      /** Since when it is a dead letter; null while it waits. */
      deadTimeMs: c.long("dead_time_ms"),
      attempts: c.int("attempts").notNull(),
      /** When it was last tried; null before the first attempt. */
      lastTimeMs: c.long("last_time_ms"),
      /** The HTTP status of the last attempt; 0 where there was no response. */
      lastStatus: c.int("last_status").notNull(),
      /** Why the last attempt failed; empty before the first one. */
      lastError: c.str("last_error").notNull(),
    },
    (t) => [
      c.primaryKey({ columns: [t.subscriptionUid, t.seq] }),
      c.index("event_deliveries_state").on(t.subscriptionUid, t.deadTimeMs, t.seq),
      c.index("event_deliveries_dead").on(t.deadTimeMs),
    ],
  );

  return { eventPositions, eventDeliveries };
}

type EventTables = ReturnType<typeof defineEventTables>;

/** How far the events of a subscription are delivered. */
export type EventPositionRow = RowOf<EventTables["eventPositions"]>;
/** An event that a sink has not accepted. */
export type EventDeliveryRow = RowOf<EventTables["eventDeliveries"]>;
