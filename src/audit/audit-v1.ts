// The handlers of AuditService (docs/audit.md).
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  AuditService,
  type Event,
  EventSchema,
  type GetEventRequest,
  type ListEventsRequest,
  type TailEventsRequest,
} from "#gen/arbor/audit/v1/audit_pb.js";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { deadlineExceeded, invalidArgument, notFound, tokenExpired, unavailable } from "../kernel/errors.js";
import type { PageTokens } from "../kernel/page-token.js";
import type { Clock } from "../kernel/time.js";
import { isUidp, isWithin } from "../kernel/uidp.js";
import { isExpired } from "../pipeline/auth/api-token.js";
import { authorize, bitOf } from "../pipeline/auth/authorize.js";
import type { Caller } from "../pipeline/auth/caller.js";
import type { CallContext, StreamCall, UnaryCall } from "../pipeline/call.js";
import { readCapabilities, serve } from "../pipeline/method-table.js";
import type { AuditEventRow, AuditPosition, Store, Tx } from "../store/port.js";
import { type ChainHandlersDeps, createChainHandlers } from "./chain-v1.js";
import type { EventFeed, StreamCounter } from "./event-feed.js";
import { matchesFilter, parseEventFilter, selectEvents } from "./event-filter.js";
import { type EventIds, isEventId } from "./event-id.js";

export interface AuditServiceDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly tokens: PageTokens;
  readonly keys: ChainHandlersDeps["keys"];
  readonly eventIds: EventIds;
  readonly eventFeed: EventFeed;
  readonly streams: StreamCounter;
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal;
}

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 200;
/**
 * How often a stream without events sends a message, and looks at the rights of its caller, in milliseconds.
 * Connections that carry nothing for longer are cut.
 */
export const HEARTBEAT_MS = 15_000;
const eventKind = { displayName: "audit event", type: "audit.arbor.dev/Event" };
const createBindings = [{ bit: bitOf(Capability.CAP_IAM_ROLE_BINDINGS_CREATE) }];

/** Creates AuditService. */
export function auditV1(deps: AuditServiceDeps) {
  const { store, clock, tokens, eventIds, eventFeed, streams, stopping } = deps;

  async function listEvents(request: ListEventsRequest, call: UnaryCall) {
    const { pageToken, pageSize } = request;
    if (pageSize < 0) throw invalidArgument({ field: "pageSize", description: "pageSize must not be negative" });
    const filter = parseEventFilter(request);
    const selection = selectEvents(request, filter);
    const { startMs, endMs, descending } = selection;
    const binding = JSON.stringify(["ListEvents", filter.scope, filter.equals, startMs, endMs, descending]);
    const cursor = pageToken === "" ? undefined : tokens.read(pageToken, binding, call.startMs);
    const { rows, next } = await call.tx.auditEvents.list({
      ...selection,
      after: cursor && { timeMs: Number(cursor.key), id: Number(cursor.uid) },
      limit: Math.min(pageSize || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE),
      assertInTime() {
        if (clock() >= call.deadlineMs) throw deadlineExceeded();
      },
    });
    const toEvent = await eventsFor(call, call.tx, filter.scope, rows);
    const makeToken = ({ timeMs, id }: AuditPosition) =>
      tokens.create({ key: timeMs, uid: String(id), skip: 0 }, binding, call.startMs);
    return { events: rows.map(toEvent), nextPageToken: next ? makeToken(next) : "" };
  }

  async function getEvent({ id }: GetEventRequest, call: UnaryCall) {
    if (!isEventId(id)) throw invalidArgument({ field: "id", description: "id must be one that ListEvents returns" });
    const rowId = eventIds.parse(id);
    const row = rowId === undefined ? undefined : await call.tx.auditEvents.find(rowId);
    const scope = row && scopeOf(row);
    if (row === undefined || scope === undefined) throw notFound(eventKind, id);
    const caller = await call.callerAt(scope);
    if (!caller.holdsNeeded(scope)) throw notFound(eventKind, id);
    return toProto(row, caller.holds(createBindings, scope));
  }

  // The rights of a caller, and how its token was limited, are read again before each batch of events.
  async function* tailEvents(request: TailEventsRequest, call: StreamCall) {
    const filter = parseEventFilter(request);
    const { principal } = call.caller;
    const guard = {
      capabilities: readCapabilities(AuditService.method.tailEvents),
      scope: { field: "scope", of: () => request.scope },
    };
    const gone = AbortSignal.any([call.signal, stopping]);
    const release = streams.take(principal.identityUid);
    const reader = eventFeed.follow(filter.rootUid, (row) => matchesFilter(filter, row));
    try {
      await reader.begin(gone);
      yield {};
      while (!call.signal.aborted) {
        const rows = await reader.next(HEARTBEAT_MS, gone);
        if (stopping.aborted) throw unavailable("the service stops", 1_000);
        if (isExpired(principal, clock())) throw tokenExpired();
        const toEvent = await store.read(async (tx) => {
          const caller = await authorize(guard, principal, request, tx);
          return eventsFor(call, tx, filter.scope, rows, caller);
        });
        if (rows.length === 0) yield {};
        for (const row of rows) yield { event: toEvent(row) };
      }
    } finally {
      reader.close();
      release();
    }
  }

  // Grants below the scope are read only where those at the scope do not show the origin of all events.
  async function eventsFor(
    call: CallContext,
    tx: Tx,
    scope: string,
    rows: readonly AuditEventRow[],
    atScope: Caller = call.caller,
  ): Promise<(row: AuditEventRow) => Event> {
    if (rows.length === 0 || atScope.holds(createBindings, scope)) return (row) => toProto(row, true);
    const caller = await call.callerEverywhere(tx);
    return (row) => toProto(row, caller.holds(createBindings, scopeOf(row) ?? scope));
  }

  function toProto(row: AuditEventRow, showsOrigin: boolean): Event {
    const { rootUid, timeMs, type, method, subjectUid, actorUid, actorName, requestId, traceId, seq } = row;
    return create(EventSchema, {
      id: eventIds.format(row.id),
      organizationUid: rootUid,
      time: timestampFromMs(timeMs),
      ...{ type, method, subjectUid, actorUid, actorName, requestId, traceId },
      sealed: seq !== null,
      sequence: BigInt(seq ?? 0),
      ...(showsOrigin && { remoteAddress: row.remoteAddress, tokenId: row.tokenId }),
    });
  }

  return serve(AuditService, { listEvents, getEvent, tailEvents, ...createChainHandlers(deps) });
}

/**
 * Where the rights to read an event count: at its subject, otherwise at its organisation; undefined where neither is.
 */
function scopeOf({ rootUid, subjectUid }: AuditEventRow): string | undefined {
  const scope = isUidp(subjectUid) && isWithin(subjectUid, rootUid) ? subjectUid : rootUid;
  return isUidp(scope) ? scope : undefined;
}
