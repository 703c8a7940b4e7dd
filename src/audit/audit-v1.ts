// The handlers of AuditService (docs/audit.md).
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import {
  AuditService,
  type Body,
  BodySchema,
  type Chain,
  ChainCheckpointSchema,
  type ChainEntry,
  ChainEntrySchema,
  ChainHeadSchema,
  ChainSchema,
  type Event,
  EventSchema,
  type GetChainRequest,
  type GetEventRequest,
  type ListChainEntriesRequest,
  type ListEventsRequest,
  SealedRowSchema,
  type TailEventsRequest,
} from "#gen/arbor/audit/v1/audit_pb.js";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { hashBody } from "../kernel/audit-body.js";
import { deadlineExceeded, invalidArgument, notFound } from "../kernel/errors.js";
import type { PageTokens } from "../kernel/page-token.js";
import { timestampOf } from "../kernel/time.js";
import { isUidp, parentOf } from "../kernel/uidp.js";
import { bitOf } from "../pipeline/auth/authorize.js";
import type { Caller } from "../pipeline/auth/caller.js";
import type { CallContext, StreamCall, UnaryCall } from "../pipeline/call.js";
import { type NeededCapability, serve } from "../pipeline/method-table.js";
import { ListTokens, type PageSizes, parsePageSize } from "../pipeline/resource/paging.js";
import type { SealedRow } from "../store/audit/chain.js";
import { type AuditEventRow, scopeOf } from "../store/audit/events.js";
import type { StoredAuditRow } from "../store/tables/audit.js";
import type { Tx } from "../store/transaction.js";
import type { AuditKeys } from "./chain.js";
import { matchesFilter, parseEventFilter, selectEvents } from "./event-filter.js";
import { type EventTailDeps, followEvents, takeSmall } from "./event-tail.js";
import { BEFORE_ALL_ENTRIES } from "./verify.js";

interface AuditServiceDeps extends EventTailDeps {
  readonly tokens: PageTokens<Tx>;
  readonly keys: ChainHandlersDeps["keys"];
  readonly eventIds: EventIds;
  /** The capabilities that a reader of bodies needs at the subject, by the types of bodies. */
  readonly bodyReaders: ReadonlyMap<string, readonly NeededCapability[]>;
}

const eventKind = { displayName: "audit event", type: "audit.arbor.dev/Event" };
const createBindings = [{ bit: bitOf(Capability.CAP_IAM_ROLE_BINDINGS_CREATE) }];

/** Creates AuditService. */
export function auditV1(deps: AuditServiceDeps) {
  const { clock, tokens, eventIds, bodyReaders } = deps;

  async function listEvents(request: ListEventsRequest, call: UnaryCall) {
    const limit = parsePageSize(request.pageSize);
    const filter = parseEventFilter(request);
    const selection = selectEvents(request, filter);
    const { startMs, endMs, descending } = selection;
    const list = ["ListEvents", filter.scope, filter.equals, startMs, endMs, descending];
    const pages = new ListTokens(tokens, list, call.startMs);
    const cursor = await pages.read(call.tx, request.pageToken);
    const page = await call.tx.auditEvents.list({
      ...selection,
      after: cursor && { timeMs: Number(cursor.key), id: Number(cursor.uid) },
      limit,
      assertInTime() {
        if (clock() >= call.deadlineMs) throw deadlineExceeded();
      },
    });
    const rows = takeSmall(page.rows);
    const last = rows.at(-1);
    const next = rows.length < page.rows.length && last ? { timeMs: last.timeMs, id: last.id } : page.next;
    const events = await toEvents(call, call.tx, filter.scope, rows);
    return { events, nextPageToken: pages.create(next && { key: next.timeMs, uid: String(next.id) }) };
  }

  async function getEvent({ id }: GetEventRequest, call: UnaryCall) {
    if (!isEventId(id)) throw invalidArgument({ field: "id", rule: "must be one that ListEvents returns" });
    const rowId = eventIds.parse(id);
    const row = rowId === undefined ? undefined : await call.tx.auditEvents.find(rowId);
    const scope = row && scopeOf(row);
    if (row === undefined || scope === undefined) throw notFound(eventKind, id);
    const caller = await call.callerAt(scope);
    if (!caller.holdsNeeded(scope)) throw notFound(eventKind, id);
    const bodies = await call.tx.audit.readBodies([row]);
    return toProto(row, parseBody(row, bodies.get(row.id)), caller);
  }

  function tailEvents(request: TailEventsRequest, call: StreamCall) {
    const filter = parseEventFilter(request);
    const { scope } = filter;
    return followEvents(deps, request, call, {
      scope,
      matches: (row) => matchesFilter(filter, row),
      show: (tx, rows, caller) => toEvents(call, tx, scope, rows, caller),
    });
  }

  // Grants below the scope are read only where those at the scope do not show all that events have.
  async function toEvents(
    call: CallContext,
    tx: Tx,
    scope: string,
    rows: readonly AuditEventRow[],
    atScope: Caller = call.caller,
  ): Promise<Event[]> {
    const stored = await tx.audit.readBodies(rows);
    const bodies = rows.map((row) => parseBody(row, stored.get(row.id)));
    const needed = bodies.flatMap((body) => (body && bodyReaders.get(body.type)) ?? []);
    const seesAll = rows.length === 0 || atScope.holds([...createBindings, ...needed], scope);
    const caller = seesAll ? atScope : await call.callerEverywhere(tx);
    return rows.map((row, i) => toProto(row, bodies[i], caller));
  }

  function toProto(row: AuditEventRow, body: Body | undefined, caller: Caller): Event {
    const scope = scopeOf(row) ?? row.rootUid;
    const readers = body && bodyReaders.get(body.type);
    const showsBody = readers !== undefined && caller.holds(readers, scope);
    const showsOrigin = caller.holds(createBindings, scope);
    const { rootUid, timeMs, type, method, subjectUid, actorUid, actorName, requestId, traceId, seq } = row;
    return create(EventSchema, {
      id: eventIds.format(row.id),
      organizationUid: rootUid,
      time: timestampOf(timeMs),
      ...{ type, method, subjectUid, actorUid, actorName, requestId, traceId },
      sealed: seq !== null,
      sequence: BigInt(seq ?? 0),
      ...(showsOrigin && { remoteAddress: row.remoteAddress, tokenId: row.tokenId }),
      ...(showsBody && { body }),
    });
  }

  return serve(AuditService, { listEvents, getEvent, tailEvents, ...createChainHandlers(deps) });
}

/** Parses a stored body; undefined where there is none, and where it is not the one that the row was written with. */
function parseBody({ bodyHash }: AuditEventRow, stored: string | undefined): Body | undefined {
  if (stored === undefined || hashBody(stored) !== bodyHash) return undefined;
  return fromJson(BodySchema, JSON.parse(stored) as JsonValue, { ignoreUnknownFields: true });
}

// The handlers of AuditService by which clients verify a chain themselves (docs/audit.md). A row has exactly the values
// that its seal covers, because clients compute hashes from them. Rows are numbered as their entries are: ids count the
// rows of all organisations, and would tell one organisation how much happens in the others.

interface ChainHandlersDeps {
  readonly tokens: PageTokens<Tx>;
  readonly keys: Pick<AuditKeys, "at">;
}

/** To read as many rows takes some 5 ms. */
const entrySizes: PageSizes = { usual: 200, most: 500 };
/** How many unsealed rows are counted. A running service seals within a second. */
const MAX_UNSEALED = 1_000;

function createChainHandlers({ tokens, keys }: ChainHandlersDeps) {
  async function getChain({ scope }: GetChainRequest, { tx }: UnaryCall): Promise<Chain> {
    assertOrganisation(scope);
    const [head, checkpoint] = [await tx.auditChain.findHead(scope), await tx.auditCheckpoints.find(scope)];
    const settledId = (await tx.auditChain.findSealer())?.settledId ?? 0;
    const range = { afterId: settledId, lastId: Number.MAX_SAFE_INTEGER };
    const unsealed = await tx.auditChain.listUnsealedBetween(scope, range, MAX_UNSEALED);
    const [first] = unsealed;
    const lastSeq = head?.seq ?? checkpoint?.seq ?? 0;
    return create(ChainSchema, {
      organizationUid: scope,
      ...(head && {
        head: create(ChainHeadSchema, {
          ...{ sequence: BigInt(head.seq), hash: head.hash },
          ...{ timeMs: BigInt(head.timeMs), signature: head.signature },
        }),
      }),
      ...(checkpoint && {
        checkpoint: create(ChainCheckpointSchema, {
          ...{ sequence: BigInt(checkpoint.seq), hash: checkpoint.hash },
          entryTimeMs: BigInt(checkpoint.entryTimeMs),
          ...{ timeMs: BigInt(checkpoint.timeMs), signature: checkpoint.signature },
        }),
      }),
      jwks: JSON.stringify({ keys: (await keys.at(tx)).listAuditJwks() }),
      unsealedRows: BigInt(unsealed.length),
      firstUnsealedId: BigInt(first ? lastSeq + 1 : 0),
      firstUnsealedTimeMs: BigInt(first?.timeMs ?? 0),
      settledId: BigInt(lastSeq),
    });
  }

  async function listChainEntries(request: ListChainEntriesRequest, { tx, startMs }: UnaryCall) {
    const { scope, pageSize, pageToken } = request;
    assertOrganisation(scope);
    const limit = parsePageSize(pageSize, entrySizes);
    const pages = new ListTokens(tokens, ["ListChainEntries", scope], startMs);
    const cursor = await pages.read(tx, pageToken);
    const afterSeq = cursor === undefined ? BEFORE_ALL_ENTRIES : Number(cursor.key);
    // The highest row id of the pages before.
    const afterId = cursor === undefined ? Number.MIN_SAFE_INTEGER : Number(cursor.uid);
    const entries = await tx.auditChain.listEntries(scope, afterSeq, limit);
    const last = entries.length === limit ? entries.at(-1) : undefined;
    const settledId = (await tx.auditChain.findSealer())?.settledId ?? 0;
    const highestId = entries.reduce((highest, { auditId }) => Math.max(highest, auditId), afterId);
    const range = { afterId, lastId: last === undefined ? settledId : Math.min(highestId, settledId) };
    const [unsealed] = await tx.auditChain.listUnsealedBetween(scope, range, 1);
    const newer = unsealed && entries.find(({ auditId }) => auditId > unsealed.id);
    const unsealedRowId = unsealed && (newer?.seq ?? Math.max(0, entries.at(-1)?.seq ?? afterSeq) + 1);
    return {
      entries: entries.map(toChainEntry),
      unsealedRowId: BigInt(unsealedRowId ?? 0),
      nextPageToken: pages.create(last && { key: last.seq, uid: String(highestId) }),
    };
  }

  return { getChain, listChainEntries };
}

function toChainEntry({ seq, hash, row }: SealedRow): ChainEntry {
  return create(ChainEntrySchema, {
    ...{ sequence: BigInt(seq), rowId: BigInt(seq), hash },
    ...(row && { row: toSealedRow(row) }),
  });
}

// The hashes of versions 1 and 2 cover the id in the installation, so clients need it.
function toSealedRow({ id, timeMs, bodyBytes: _, ...row }: StoredAuditRow) {
  return create(SealedRowSchema, { ...row, id: BigInt(row.version < 3 ? id : 0), timeMs: BigInt(timeMs) });
}

function assertOrganisation(scope: string): void {
  if (isUidp(scope) && parentOf(scope) === undefined) return;
  throw invalidArgument({ field: "scope", rule: "must be the uid of an organisation" });
}

// The ids of events in the API. The numbers of rows are counted over all organisations: they would tell one
// organisation how much happens in the others.

/** Converts the numbers of audit rows to ids and back. */
interface EventIds {
  format(id: number): string;
  /** The number of the row; undefined for a text that is no id of this installation. */
  parse(text: string): number | undefined;
}

const EVENT_ID = /^[0-9a-f]{32}$/;
const EVENT_ID_KEY = "audit_event_id_key";
const EVENT_ID_KEY_BYTES = 16;
const PADDING = Buffer.alloc(8);

/** Whether a text has the form of an id. */
function isEventId(text: string): boolean {
  return EVENT_ID.test(text);
}

/**
 * Reads the key of the ids, and generates it the first time. It stays the same, so that ids do; it hides how many
 * events there are, and grants nothing.
 */
export async function readEventIdKey(tx: Tx): Promise<Buffer> {
  const stored = await tx.settings.find(EVENT_ID_KEY);
  if (stored !== undefined) return Buffer.from(stored, "hex");
  const key = randomBytes(EVENT_ID_KEY_BYTES);
  await tx.settings.put(EVENT_ID_KEY, key.toString("hex"));
  return key;
}

/**
 * Creates the codec: an id is one AES block of the number and eight zero bytes, by which foreign ids are recognised.
 */
export function createEventIds(key: Buffer): EventIds {
  return {
    format(id) {
      const block = Buffer.alloc(16);
      block.writeBigUInt64BE(BigInt(id));
      const cipher = createCipheriv("aes-128-ecb", key, null).setAutoPadding(false);
      return Buffer.concat([cipher.update(block), cipher.final()]).toString("hex");
    },
    parse(text) {
      if (!isEventId(text)) return undefined;
      const decipher = createDecipheriv("aes-128-ecb", key, null).setAutoPadding(false);
      const block = Buffer.concat([decipher.update(Buffer.from(text, "hex")), decipher.final()]);
      const id = Number(block.readBigUInt64BE());
      return block.subarray(8).equals(PADDING) && Number.isSafeInteger(id) ? id : undefined;
    },
  };
}
