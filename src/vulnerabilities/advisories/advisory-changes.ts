// What callers change of advisories and their events, whatever version of the
// API they speak.
import { create, equals } from "@bufbuild/protobuf";
import { FieldMaskSchema, timestampMs } from "@bufbuild/protobuf/wkt";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { AdvisoryEvent_ComponentLocationChangedSchema as ComponentMovedSchema } from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import {
  type Advisory,
  AdvisoryEventSchema,
  ReviewState,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { failedPrecondition, invalidArgument, notFound, permissionDenied } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import { parentOf } from "../../kernel/uidp.js";
import { bitOf } from "../../pipeline/auth/authorize.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { patchOf, valuesOf } from "../../pipeline/resource/patch.js";
import type { AdvisoryEventRow, AdvisoryRow, Tx } from "../../store/port.js";
import { advisories, advisoryView, eventKind, eventRow, eventView, groupKind, movedIn } from "./advisory.js";
import { insertAdvisory, putEvent, replaceAdvisory } from "./advisory-operations.js";
import { MAX_ENTRIES, requireGoodEvent, requireRoomFor, type SaidEvent } from "./advisory-rules.js";

/** The fields that a change of the whole advisory sets or resets; all else it keeps. */
const whole = [
  "artifactName",
  "artifactType",
  "artifactArchitecture",
  "componentName",
  "componentLocation",
  "componentType",
  "aliases",
] as const;

const approve = [{ bit: bitOf(Capability.CAP_ADVISORIES_APPROVE) }];

/**
 * Creates an advisory in a group, with the events that have happened before, oldest first.
 *
 * @throws ApiError NOT_FOUND for the group, INVALID_ARGUMENT, PERMISSION_DENIED for a review by who may
 * not review, RESOURCE_EXHAUSTED for events that are too long together.
 */
export async function createAdvisory(
  { groupUid, advisory, events }: { groupUid: string; advisory: Advisory; events: readonly SaidEvent[] },
  ids: Ids,
  call: UnaryCall,
): Promise<AdvisoryRow> {
  const { tx, startMs } = call;
  if ((await tx.groups.get(groupUid)) === undefined) throw notFound(groupKind, groupUid);
  const { legacyAdvisoryId = "", ...values } = valuesOf(advisories, advisory);
  if (events.length > MAX_ENTRIES) {
    throw invalidArgument({ field: "events", description: `events must be at most ${MAX_ENTRIES}` });
  }
  const uid = ids.newUid(groupUid);
  // Of those of one moment, the uids say which came first.
  const uids = events.map(() => ids.newUid(uid)).sort();
  const author = await callerName(call);
  const rows = events.map((said, i) => newEvent(uids[i] ?? "", { said, author, at: `events[${i}].` }, call));
  requireRoomFor(rows);
  const source = { sourceKey: "", sourceHash: "", severities: [] };
  const times = { createTimeMs: startMs, updateTimeMs: startMs, deleteTimeMs: null };
  return insertAdvisory(tx, { ...values, ...source, ...times, uid, groupUid, legacyAdvisoryId, author }, uid, rows);
}

/**
 * Makes an advisory what the caller says, but for its events, its author, and what it has of where it
 * came from. Values that stay as they are need not obey the rules: imported advisories have no
 * architecture.
 *
 * @throws ApiError NOT_FOUND, INVALID_ARGUMENT.
 */
export async function updateAdvisory(advisory: Advisory, { tx, startMs }: UnaryCall): Promise<AdvisoryRow> {
  const before = await foundAdvisory(advisory.uid, tx);
  const view = advisoryView(before, []);
  const paths = whole.filter((field) => JSON.stringify(view[field]) !== JSON.stringify(advisory[field]));
  if (paths.length === 0) return before;
  const { legacyAdvisoryId: _, ...patch } = patchOf(advisories, advisory, create(FieldMaskSchema, { paths }), view);
  return replaceAdvisory(tx, { ...before, ...patch, updateTimeMs: changedAt(before, startMs) });
}

/**
 * Withdraws an advisory; one that is withdrawn already stays as it is.
 *
 * @throws ApiError NOT_FOUND.
 */
export async function withdrawAdvisory(uid: string, { tx, startMs }: UnaryCall): Promise<void> {
  const before = await foundAdvisory(uid, tx);
  if (before.deleteTimeMs !== null) return;
  await replaceAdvisory(tx, { ...before, deleteTimeMs: startMs, updateTimeMs: changedAt(before, startMs) });
}

/**
 * Adds an event to an advisory.
 *
 * @throws ApiError NOT_FOUND, INVALID_ARGUMENT, PERMISSION_DENIED for a review by who may not review,
 * RESOURCE_EXHAUSTED when the advisory has 1,000 events, or they are too long together.
 */
export async function createEvent(
  { advisoryUid, said }: { advisoryUid: string; said: SaidEvent },
  ids: Ids,
  call: UnaryCall,
): Promise<AdvisoryEventRow> {
  const { tx } = call;
  await foundAdvisory(advisoryUid, tx);
  const row = newEvent(ids.newUid(advisoryUid), { said, author: await callerName(call), at: "" }, call);
  requireRoomFor([...(await tx.advisories.events([advisoryUid])), row]);
  await putEvent(tx, row);
  return row;
}

/**
 * Makes an event what the caller says, but for its author and when it happened. Once it was approved or
 * rejected it stays as it is.
 *
 * @throws ApiError NOT_FOUND, INVALID_ARGUMENT, PERMISSION_DENIED for a review by who may not review,
 * FAILED_PRECONDITION of type EVENT_FINAL, RESOURCE_EXHAUSTED for events that are too long together.
 */
export async function updateEvent(said: SaidEvent, call: UnaryCall): Promise<AdvisoryEventRow> {
  const { tx, startMs } = call;
  const before = await foundEvent(said.event.uid, tx);
  requireGoodEvent(said, startMs);
  const { uid, advisoryUid, author, createTimeMs, reviewState } = before;
  const { reviewState: wanted } = said.event;
  const decided = wanted !== reviewState && isReview(wanted, advisoryUid, call);
  const kept = wanted === ReviewState.PENDING ? "" : before.reviewer;
  const reviewer = decided ? await callerName(call) : kept;
  const event = { ...said.event, author, reviewer };
  const after = { ...eventRow(advisoryUid, uid, event, createTimeMs, said.moved), updateTimeMs: startMs };
  if (isSame(before, after)) return before;
  if (reviewState === ReviewState.APPROVED || reviewState === ReviewState.REJECTED) {
    throw failedPrecondition("EVENT_FINAL", "an event that was approved or rejected is final; add another");
  }
  const others = (await tx.advisories.events([advisoryUid])).filter((event) => event.uid !== uid);
  // What has become shorter is always welcome.
  if (JSON.stringify(after.data).length > JSON.stringify(before.data).length) requireRoomFor([...others, after]);
  await putEvent(tx, after);
  return after;
}

/**
 * The advisory of this uid.
 *
 * @throws ApiError NOT_FOUND; the pipeline words that for who may not know.
 */
export async function foundAdvisory(uid: string, tx: Tx): Promise<AdvisoryRow> {
  const row = await tx.advisories.get(uid);
  if (row === undefined) throw notFound(advisories, uid);
  return row;
}

/**
 * The event of this uid.
 *
 * @throws ApiError NOT_FOUND; the pipeline words that for who may not know.
 */
export async function foundEvent(uid: string, tx: Tx): Promise<AdvisoryEventRow> {
  const events = await tx.advisories.events([parentOf(uid) ?? ""]);
  const row = events.find((event) => event.uid === uid);
  if (row === undefined) throw notFound(eventKind, uid);
  return row;
}

function newEvent(
  uid: string,
  { said, author, at }: { said: SaidEvent; author: string; at: string },
  call: UnaryCall,
): AdvisoryEventRow {
  const { startMs } = call;
  requireGoodEvent(said, startMs, at);
  const { createTime, reviewState } = said.event;
  const advisoryUid = parentOf(uid) ?? "";
  const reviewer = isReview(reviewState, advisoryUid, call) ? author : "";
  const event = { ...said.event, author, reviewer };
  const timeMs = createTime === undefined ? startMs : timestampMs(createTime);
  return { ...eventRow(advisoryUid, uid, event, timeMs, said.moved), updateTimeMs: startMs };
}

// Whether to say so is to review the event, which takes a right of its own.
function isReview(state: ReviewState, advisoryUid: string, { caller }: UnaryCall): boolean {
  if (state === ReviewState.PENDING) return false;
  if (!caller.holds(approve, advisoryUid)) throw permissionDenied(`advisories.approve at ${parentOf(advisoryUid)}`);
  return true;
}

// Lists find people by their e-mail addresses; what has none goes by its uid.
async function callerName({ tx, caller }: UnaryCall): Promise<string> {
  return (await tx.identities.get(caller.uid))?.email || caller.uid;
}

function isSame(a: AdvisoryEventRow, b: AdvisoryEventRow): boolean {
  const [movedA, movedB] = [movedIn(a), movedIn(b)];
  const sameMove = movedA && movedB ? equals(ComponentMovedSchema, movedA, movedB) : movedA === movedB;
  return sameMove && equals(AdvisoryEventSchema, eventView(a), eventView(b));
}

// An import takes a row that was changed after its record for what it is.
function changedAt({ updateTimeMs }: AdvisoryRow, nowMs: number): number {
  return Math.max(updateTimeMs, nowMs);
}
