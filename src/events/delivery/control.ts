// What callers may see and change of the delivery of a subscription. Each function runs in the unit of work of its caller,
// who is authorized, and names the subscription by a uid that exists. The node that delivers reads the changes within a
// second.
import { failedPrecondition, notFound, resourceExhausted } from "../../kernel/errors.js";
import { isWithin, rootOf } from "../../kernel/uidp.js";
import type { ListedDelivery } from "../../store/events/deliveries.js";
import type { SubscribedPosition } from "../../store/events/positions.js";
import type { DeliveryState, SuspendReason } from "../../store/tables/events.js";
import type { Tx } from "../../store/transaction.js";

/** How many events of a subscription wait for another attempt before its position moves no further. */
export const MAX_WAITING = 256;
/** How many entries of its organisation a subscription may be behind before it is suspended. */
export const MAX_BACKLOG = 100_000;

const position = { displayName: "subscription", type: "events.chainguard.dev/Subscription" };
const event = { displayName: "event", type: "events.arbor.dev/Event" };

/** The delivery of a subscription. */
export interface SubscriptionState {
  readonly state: DeliveryState;
  /** Why it is suspended; empty where it is not. */
  readonly suspendReason: SuspendReason;
  /** When the first attempt failed since which none has succeeded; null where the last one succeeded. */
  readonly failingSinceMs: number | null;
  /** The last entry of the organisation's log that is done with: delivered, waiting, or not an event of it. */
  readonly seq: number;
  /** The last sealed entry of the organisation's log. */
  readonly headSeq: number;
  /** How many events wait for another attempt. */
  readonly waiting: number;
  /** How many dead letters there are. */
  readonly dead: number;
}

/** Gives a subscription its first position: after what is sealed. */
export async function beginPosition(tx: Tx, subscriptionUid: string): Promise<void> {
  const rootUid = rootOf(subscriptionUid);
  await tx.eventPositions.begin(subscriptionUid, rootUid, (await tx.auditChain.findHead(rootUid))?.seq ?? 0);
}

/** Reads the state of a subscription. @throws ApiError NOT_FOUND */
export async function readState(tx: Tx, subscriptionUid: string): Promise<SubscriptionState> {
  const { state, suspendReason, failingSinceMs, seq, headSeq } = await getPosition(tx, subscriptionUid);
  return {
    ...{ state, suspendReason, failingSinceMs, seq, headSeq },
    ...(await tx.eventDeliveries.count(subscriptionUid)),
  };
}

/** Stops the delivery until {@link resume}. Does nothing where it is suspended. @throws ApiError NOT_FOUND */
export async function suspend(tx: Tx, subscriptionUid: string): Promise<void> {
  const { seq, state, failingSinceMs } = await getPosition(tx, subscriptionUid);
  if (state === "suspended") return;
  await tx.eventPositions.change(subscriptionUid, {
    ...{ seq, failingSinceMs },
    state: "suspended",
    suspendReason: "caller",
  });
  await tx.eventDeliveries.hold(subscriptionUid);
}

/**
 * Continues the delivery where it was suspended: with all events since then, and those that wait. Where it is not suspended,
 * events that wait are tried at once.
 *
 * @throws ApiError NOT_FOUND; FAILED_PRECONDITION where the log no longer has the next event, or more have happened than
 * may be outstanding: {@link redeliverSince} says from when to continue
 */
export async function resume(tx: Tx, subscriptionUid: string, nowMs: number): Promise<void> {
  const found = await getPosition(tx, subscriptionUid);
  await assertDeliverable(tx, found, found.seq);
  await restart(tx, found, found.seq, nowMs);
}

/**
 * Delivers all events since a time again, with the ids that they had, in place of those that wait and of dead letters since
 * then. A suspended subscription is resumed.
 *
 * @returns the entry after which it continues
 * @throws ApiError NOT_FOUND; FAILED_PRECONDITION where the log does not reach back as far, or more have happened since than
 * may be outstanding
 */
export async function redeliverSince(tx: Tx, subscriptionUid: string, sinceMs: number, nowMs: number): Promise<number> {
  const found = await getPosition(tx, subscriptionUid);
  const checkpoint = await tx.auditCheckpoints.find(found.rootUid);
  if (checkpoint !== undefined && sinceMs <= checkpoint.entryTimeMs)
    throw failedPrecondition("RETENTION", "the audit log no longer has all events since that time");
  const first = await tx.eventDeliveries.findFirstSince(found.rootUid, sinceMs);
  const seq = (first ?? found.headSeq + 1) - 1;
  await assertDeliverable(tx, found, seq);
  await tx.eventDeliveries.deleteAfter(subscriptionUid, seq);
  await restart(tx, found, seq, nowMs);
  return seq;
}

/**
 * Delivers one event again, with the id that it had, after those of its resource that wait.
 *
 * @param auditId the number of its row in the audit log
 * @throws ApiError NOT_FOUND for an event that is none of the subscription; RESOURCE_EXHAUSTED where too many wait
 */
export async function redeliver(
  tx: Tx,
  subscriptionUid: string,
  { auditId, eventId }: { readonly auditId: number; readonly eventId: string },
  isEvent: (row: { readonly type: string }) => boolean,
  nowMs: number,
): Promise<void> {
  const found = await getPosition(tx, subscriptionUid);
  const row = await tx.auditEvents.find(auditId);
  if (!row || row.rootUid !== found.rootUid || !isEvent(row) || !isWithin(row.subjectUid, found.groupUid))
    throw notFound(event, eventId);
  if (row.seq === null || row.seq > found.seq) {
    throw failedPrecondition("NOT_DELIVERED", "the event is still queued, and will be sent");
  }
  const stored = await tx.eventDeliveries.find(subscriptionUid, row.seq);
  const { waiting } = await tx.eventDeliveries.count(subscriptionUid);
  if ((stored === undefined || stored.deadTimeMs !== null) && waiting >= MAX_WAITING)
    throw resourceExhausted(`${MAX_WAITING} events of the subscription wait for another attempt`);
  await tx.eventDeliveries.put({
    ...(stored ?? { subscriptionUid, seq: row.seq, lastTimeMs: null, lastStatus: 0, lastError: "" }),
    subjectUid: row.subjectUid,
    sinceMs: nowMs,
    nextTimeMs: found.state === "suspended" ? null : nowMs,
    deadTimeMs: null,
    attempts: 0,
  });
  // The node that delivers reads the events that wait again.
  await tx.eventPositions.change(subscriptionUid, found);
}

/** A page of the deliveries of a subscription, in the order of their events. */
export function listDeliveries(
  tx: Tx,
  subscriptionUid: string,
  page: { readonly state?: "waiting" | "dead" | undefined; readonly afterSeq: number; readonly limit: number },
): Promise<ListedDelivery[]> | ListedDelivery[] {
  return tx.eventDeliveries.list(subscriptionUid, page);
}

async function getPosition(tx: Tx, subscriptionUid: string): Promise<SubscribedPosition> {
  const found = await tx.eventPositions.findSubscribed(subscriptionUid);
  if (found === undefined) throw notFound(position, subscriptionUid);
  return found;
}

async function assertDeliverable(tx: Tx, { rootUid, headSeq }: SubscribedPosition, seq: number): Promise<void> {
  const checkpoint = await tx.auditCheckpoints.find(rootUid);
  if (checkpoint !== undefined && checkpoint.seq > seq)
    throw failedPrecondition("RETENTION", "the audit log no longer has the next event; redeliver from a later time");
  if (headSeq - seq > MAX_BACKLOG) {
    const rule = `more than ${MAX_BACKLOG} changes have happened since; redeliver from a later time`;
    throw failedPrecondition("BACKLOG", rule);
  }
}

async function restart(tx: Tx, { subscriptionUid }: SubscribedPosition, seq: number, nowMs: number): Promise<void> {
  const live = { state: "live", suspendReason: "", failingSinceMs: null } as const;
  await tx.eventPositions.change(subscriptionUid, { seq, ...live });
  await tx.eventDeliveries.release(subscriptionUid, nowMs);
}
