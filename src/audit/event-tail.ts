// Streams of what the audit log records: the part that AuditService and EventsService share. Many streams share one
// reader of the log; each shows only what its caller may see at that moment.
import type { Message } from "@bufbuild/protobuf";
import { tokenExpired, unavailable } from "../kernel/errors.js";
import type { Clock } from "../kernel/time.js";
import { rootOf } from "../kernel/uidp.js";
import { isExpired } from "../pipeline/auth/api-token.js";
import { authorize } from "../pipeline/auth/authorize.js";
import { type Caller, earlierOf } from "../pipeline/auth/caller.js";
import type { StreamCall } from "../pipeline/call.js";
import { readCapabilities } from "../pipeline/method-table.js";
import type { AuditEventRow } from "../store/audit/events.js";
import { groupKind } from "../store/iam/groups.js";
import type { Store } from "../store/store.js";
import type { Tx } from "../store/transaction.js";
import type { EventFeed, EventStreams } from "./event-feed.js";

export interface EventTailDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly eventFeed: EventFeed;
  readonly streams: EventStreams;
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal;
}

/** What a stream shows. */
export interface EventTail<E> {
  /** The uid of a group or another resource: the method needs its capabilities there. */
  readonly scope: string;
  readonly matches: (row: AuditEventRow) => boolean;
  /** Converts rows to what the caller may see of them. */
  readonly show: (tx: Tx, rows: readonly AuditEventRow[], caller: Caller) => Promise<readonly E[]>;
}

/**
 * How often a stream without events sends a message, and looks at the rights of its caller, in milliseconds.
 * Connections that carry nothing for longer are cut.
 */
export const HEARTBEAT_MS = 15_000;
/** A page ends after the event with which its bodies have as many bytes, and a stream reads as many at once. */
const MAX_PAGE_BODY_BYTES = 1024 * 1024;

/**
 * Follows the log. The rights of the caller, and how its token was limited, are read again before each batch of events.
 *
 * @throws ApiError UNAUTHENTICATED when the token of the caller expires, PERMISSION_DENIED when its rights end,
 * UNAVAILABLE when the service stops, RESOURCE_EXHAUSTED for too many streams or a reader that is too slow
 */
export async function* followEvents<E>(
  { store, clock, eventFeed, streams, stopping }: EventTailDeps,
  request: Message,
  call: StreamCall,
  { scope, matches, show }: EventTail<E>,
): AsyncGenerator<{ readonly event?: E }> {
  const { principal } = call.caller;
  const guard = { capabilities: readCapabilities(call.method), scope: { field: "scope", of: () => scope } };
  const gone = AbortSignal.any([call.signal, stopping]);
  const rootUid = rootOf(scope);
  // Empty for an organisation that the operator created.
  const founder = (await store.read((tx) => tx.table(groupKind).find(rootUid)))?.createdBy || undefined;
  const release = streams.take({ identity: principal.identityUid, organisation: rootUid, founder });
  const reader = eventFeed.follow(rootUid, matches);
  try {
    await reader.begin(gone);
    yield {};
    let endMs = call.caller.firstEndMs;
    while (!call.signal.aborted) {
      // When a right ends, the stream looks at once whether it goes on.
      const waitMs = endMs === null ? HEARTBEAT_MS : Math.min(HEARTBEAT_MS, Math.max(0, endMs - clock()));
      const rows = await reader.next(waitMs, gone);
      if (stopping.aborted) throw unavailable("the service stops", 1_000);
      if (isExpired(principal, clock())) throw tokenExpired();
      let left = rows;
      do {
        const some = endMs === null ? takeSmall(left) : left.slice(0, 1);
        const events = await store.read(async (tx) => {
          const caller = await authorize(guard, principal, request, tx);
          call.everywhereEndMs = null;
          const shown = await show(tx, some, caller);
          endMs = earlierOf(caller.firstEndMs, call.everywhereEndMs);
          return shown;
        });
        // A reader may take its time between two events, and rights may end meanwhile: each is authorized by itself.
        if (endMs !== null && some.length > 1) continue;
        if (events.length === 0) yield {};
        for (const event of events) yield { event };
        left = left.slice(some.length);
      } while (left.length > 0);
    }
  } finally {
    reader.close();
    release();
  }
}

/** Takes rows up to the one with which their bodies reach the size of a page. */
export function takeSmall(rows: readonly AuditEventRow[]): readonly AuditEventRow[] {
  let bytes = 0;
  const last = rows.findIndex((row) => {
    bytes += row.bodyBytes;
    return bytes >= MAX_PAGE_BODY_BYTES;
  });
  return last === -1 ? rows : rows.slice(0, last + 1);
}
