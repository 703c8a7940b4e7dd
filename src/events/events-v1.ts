// The handlers of EventsService: the delivery of subscriptions, and events for callers without a sink (docs/events.md).
import { create } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import {
  type Delivery,
  Delivery_Status,
  DeliverySchema,
  type Event,
  EventSchema,
  EventsService,
  type ListDeliveriesRequest,
  type RedeliverRequest,
  State_Status,
  State_Suspension,
  StateSchema,
  type TailRequest,
  type TestRequest,
} from "#gen/arbor/events/v1/events_pb.js";
import { type EventTailDeps, followEvents } from "../audit/event-tail.js";
import { type FieldViolation, failedPrecondition, invalidArgument } from "../kernel/errors.js";
import type { PageTokens } from "../kernel/page-token.js";
import { timestampOf } from "../kernel/time.js";
import { isUidp, isWithin } from "../kernel/uidp.js";
import type { Caller } from "../pipeline/auth/caller.js";
import type { CallContext, StreamCall, UnaryCall } from "../pipeline/call.js";
import { type Handlers, withPreparation } from "../pipeline/handlers.js";
import { type NeededCapability, readCapabilities, serve } from "../pipeline/method-table.js";
import { ListTokens, parsePageSize } from "../pipeline/resource/paging.js";
import { getRow } from "../pipeline/resource/read.js";
import type { AuditEventRow } from "../store/audit/events.js";
import type { ListedDelivery } from "../store/events/deliveries.js";
import type { SubscriptionRow } from "../store/iam/subscriptions.js";
import type { DeliveryState, SuspendReason } from "../store/tables/events.js";
import type { Tx } from "../store/transaction.js";
import { listAttributes } from "./attributes.js";
import { type CloudEvent, type CloudEvents, formatEventUuid, parseEventUuid } from "./cloud-event.js";
import {
  listDeliveries as listStored,
  readState,
  redeliver as redeliverOne,
  redeliverSince,
  resume as resumeDelivery,
  suspend as suspendDelivery,
} from "./delivery/control.js";
import { subscriptions } from "./subscriptions/subscription.js";

/** Sends the event of Test. */
interface TestSender {
  sendTest(
    subscription: Pick<SubscriptionRow, "uid" | "groupUid" | "sink">,
    actorUid: string,
  ): Promise<{ readonly status: number; readonly error: string; readonly durationMs: number }>;
}

export interface EventsServiceDeps extends EventTailDeps {
  readonly tokens: PageTokens<Tx>;
  /** The ids of events in the API of the audit log. */
  readonly eventIds: { format(id: number): string; parse(text: string): number | undefined };
  readonly events: CloudEvents;
  readonly sender: TestSender;
  /** The capabilities that a reader of bodies needs at the subject, by the types of bodies. */
  readonly bodyReaders: ReadonlyMap<string, readonly NeededCapability[]>;
}

/** The longest type of an event, in characters. */
const MAX_TYPE = 256;
const listBindings = readCapabilities(AuditService.method.listEvents);

const statuses = {
  live: State_Status.LIVE,
  failing: State_Status.FAILING,
  stalled: State_Status.STALLED,
  suspended: State_Status.SUSPENDED,
} as const satisfies Record<DeliveryState, State_Status>;
const suspensions = {
  "": State_Suspension.UNSPECIFIED,
  caller: State_Suspension.REQUESTED,
  gone: State_Suspension.GONE,
  failed: State_Suspension.FAILED,
  backlog: State_Suspension.BACKLOG,
} as const satisfies Record<SuspendReason, State_Suspension>;

/** Creates EventsService. */
export function eventsV1(deps: EventsServiceDeps) {
  const { store, clock, tokens, eventIds, events, sender, bodyReaders } = deps;

  async function showState(tx: Tx, uid: string) {
    const { state, suspendReason, failingSinceMs, seq, headSeq, waiting, dead } = await readState(tx, uid);
    return create(StateSchema, {
      ...{ uid, status: statuses[state], suspension: suspensions[suspendReason] },
      ...{ sequence: BigInt(seq), headSequence: BigInt(headSeq), waiting: BigInt(waiting), dead: BigInt(dead) },
      ...timeAs("failingSince", failingSinceMs),
    });
  }

  async function listDeliveries(request: ListDeliveriesRequest, { tx, startMs }: UnaryCall) {
    const { subscription, status, pageSize, pageToken } = request;
    const limit = parsePageSize(pageSize);
    await getRow(tx, subscriptions, subscription);
    const state = parseStatus(status);
    const pages = new ListTokens(tokens, ["ListDeliveries", subscription, status], startMs);
    const cursor = await pages.read(tx, pageToken);
    // One row more than fits shows whether there is a next page.
    const found = await listStored(tx, subscription, { state, afterSeq: Number(cursor?.key ?? 0), limit: limit + 1 });
    const rows = found.slice(0, limit);
    const last = found.length > limit ? rows.at(-1) : undefined;
    return {
      deliveries: rows.map(deliveryToProto),
      nextPageToken: pages.create(last && { key: last.seq, uid: "" }),
    };
  }

  async function redeliver(request: RedeliverRequest, { tx }: UnaryCall) {
    const { subscription, selection } = request;
    await getRow(tx, subscriptions, subscription);
    if (selection.case === "since") await redeliverSince(tx, subscription, toMs(selection.value), clock());
    else {
      const eventId = selection.value ?? "";
      if (eventId === "") throw invalidArgument({ field: "selection", rule: "must be the id of an event, or a time" });
      const auditId = eventIds.parse(parseEventUuid(eventId) ?? "");
      if (auditId === undefined) throw invalidArgument({ field: "eventId", rule: "must be the id of an event" });
      await redeliverOne(tx, subscription, { auditId, eventId }, events.isEvent, clock());
      await assertWhole(tx, auditId);
    }
    return showState(tx, subscription);
  }

  // Delivery would only find that the event cannot be sent.
  async function assertWhole(tx: Tx, auditId: number): Promise<void> {
    const row = await tx.auditEvents.find(auditId);
    if (row === undefined) return;
    const event = events.build(row, (await tx.audit.readBodies([row])).get(auditId));
    if (typeof event === "string") throw failedPrecondition("EVENT_NOT_WHOLE", `the event cannot be sent: ${event}`);
  }

  function deliveryToProto(row: ListedDelivery): Delivery {
    const { seq, auditId, type, timeMs, subjectUid, attempts, lastStatus, lastError } = row;
    return create(DeliverySchema, {
      id: auditId === null ? "" : formatEventUuid(eventIds.format(auditId)),
      ...{ type: type ?? "", subject: subjectUid, sequence: BigInt(seq), attempts, lastError },
      lastHttpStatus: lastStatus,
      status: row.deadTimeMs === null ? Delivery_Status.WAITING : Delivery_Status.DEAD,
      ...timeAs("time", timeMs),
      ...timeAs("nextAttemptTime", row.nextTimeMs),
      ...timeAs("lastAttemptTime", row.lastTimeMs),
    });
  }

  const test = withPreparation({
    async prepare({ uid }: TestRequest, { caller }: CallContext) {
      const subscription = await store.read((tx) => getRow(tx, subscriptions, uid));
      return sender.sendTest(subscription, caller.uid);
    },
    handle: (_, __, { status, error, durationMs }) => ({
      ...{ accepted: error === "", httpStatus: status, error },
      durationMs: BigInt(Math.round(durationMs)),
    }),
  });

  function tail(request: TailRequest, call: StreamCall) {
    const { scope, type, subject } = request;
    assertTailFilter(request);
    return followEvents(deps, request, call, {
      scope,
      matches: (row) =>
        events.matches(row, scope) &&
        (type === "" || row.type === type) &&
        (subject === "" || row.subjectUid === subject),
      show: (tx, rows, caller) => showEvents(call, tx, scope, rows, caller),
    });
  }

  // An event shows the resource, so it needs the same rights as a list of its kind. One without a resource shows what the
  // audit log shows to all of its readers.
  async function showEvents(
    call: CallContext,
    tx: Tx,
    scope: string,
    rows: readonly AuditEventRow[],
    atScope: Caller,
  ): Promise<Event[]> {
    const bodies = await tx.audit.readBodies(rows);
    const found = rows.flatMap((row) => {
      const body = bodies.get(row.id);
      const event = events.build(row, body);
      if (typeof event === "string") return [];
      return [{ row, event, needed: body === undefined ? listBindings : bodyReaders.get(readType(body)) }];
    });
    const all = found.flatMap(({ needed = [] }) => needed);
    const caller = atScope.holds(all, scope) ? atScope : await call.callerEverywhere(tx);
    return found.flatMap(({ row, event, needed }) => {
      const at = isUidp(row.subjectUid) && isWithin(row.subjectUid, scope) ? row.subjectUid : scope;
      return needed !== undefined && caller.holds(needed, at) ? [eventToProto(row, event)] : [];
    });
  }

  function eventToProto({ timeMs }: AuditEventRow, event: CloudEvent): Event {
    const { specversion: _, ...attributes } = Object.fromEntries(listAttributes(event));
    const { id = "", source = "", type = "", subject = "", time: __, ...extensions } = attributes;
    return create(EventSchema, {
      id,
      source,
      type,
      subject,
      extensions,
      data: event.data,
      time: timestampOf(timeMs),
    });
  }

  const handlers: Handlers<typeof EventsService> = {
    async getState({ uid }, { tx }) {
      await getRow(tx, subscriptions, uid);
      return showState(tx, uid);
    },
    test,
    async suspend({ uid }, { tx }) {
      await getRow(tx, subscriptions, uid);
      await suspendDelivery(tx, uid);
      return showState(tx, uid);
    },
    async resume({ uid }, { tx }) {
      await getRow(tx, subscriptions, uid);
      await resumeDelivery(tx, uid, clock());
      return showState(tx, uid);
    },
    listDeliveries,
    redeliver,
    tail,
  };
  return serve(EventsService, handlers);
}

function readType(body: string): string {
  return String((JSON.parse(body) as { readonly type?: unknown }).type);
}

function parseStatus(status: Delivery_Status): "waiting" | "dead" | undefined {
  switch (status) {
    case Delivery_Status.UNSPECIFIED:
      return undefined;
    case Delivery_Status.WAITING:
      return "waiting";
    case Delivery_Status.DEAD:
      return "dead";
    default:
      throw invalidArgument({ field: "status", rule: "must be STATUS_WAITING or STATUS_DEAD" });
  }
}

function assertTailFilter({ scope, type, subject }: TailRequest): void {
  const violations: FieldViolation[] = [];
  if (type.length > MAX_TYPE) violations.push({ field: "type", rule: `must be at most ${MAX_TYPE} characters` });
  if (subject !== "" && !(isUidp(subject) && isWithin(subject, scope)))
    violations.push({ field: "subject", rule: "must be the uid of the scope or of a resource below it" });
  if (violations.length > 0) throw invalidArgument(...violations);
}

function timeAs<K extends string>(name: K, ms: number | null): { readonly [_ in K]?: Timestamp } {
  return (ms === null ? {} : { [name]: timestampOf(ms) }) as { readonly [_ in K]?: Timestamp };
}

// Rows have whole milliseconds: one at or after 0.1 ms is at or after 1 ms.
function toMs({ seconds, nanos }: Timestamp): number {
  const ms = Number(seconds) * 1_000 + Math.ceil(nanos / 1e6);
  if (ms >= 0 && Number.isSafeInteger(ms)) return ms;
  throw invalidArgument({ field: "since", rule: "must not be before 1970" });
}
