// The changes of advisories and their events by callers, for both versions of the API.
import { create, equals } from "@bufbuild/protobuf";
import { FieldMaskSchema, timestampMs } from "@bufbuild/protobuf/wkt";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import {
  type Advisory,
  type AdvisoryEvent,
  AdvisoryEventSchema,
  ReviewState,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { groups } from "../../iam/groups/group.js";
import { failedPrecondition, invalidArgument, notFound, permissionDenied } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import { parentOf } from "../../kernel/uidp.js";
import { bitOf } from "../../pipeline/auth/authorize.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { getRow } from "../../pipeline/resource/read.js";
import { type AdvisoryRow, advisoryKind } from "../../store/advisories/advisories.js";
import { identityKind } from "../../store/iam/identities.js";
import type { AdvisoryEventRow } from "../../store/tables/advisories.js";
import type { Tx } from "../../store/transaction.js";
import { advisories, advisoryToProto, buildEventRow, eventKind, eventToProto } from "./advisory.js";
import { insertAdvisory, putEvent, replaceAdvisory } from "./advisory-operations.js";
import { MAX_ENTRIES, requireEventLimits, requireValidEvent } from "./advisory-rules.js";

/** The fields that a full update sets or clears; the others stay. */
const updatedFields = [
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
 * Creates an advisory in a group with its past events, oldest first.
 *
 * @throws ApiError NOT_FOUND for the group, INVALID_ARGUMENT, PERMISSION_DENIED for a review without
 * the right to review, RESOURCE_EXHAUSTED for events that are too long together.
 */
export async function createAdvisory(
  { groupUid, advisory, events }: { groupUid: string; advisory: Advisory; events: readonly AdvisoryEvent[] },
  ids: Ids,
  call: UnaryCall,
): Promise<AdvisoryRow> {
  const { tx, startMs } = call;
  await getRow(tx, groups, groupUid);
  const { legacyAdvisoryId = "", ...values } = buildValues(advisories, advisory);
  if (events.length > MAX_ENTRIES) {
    throw invalidArgument({ field: "events", rule: `must be at most ${MAX_ENTRIES}` });
  }
  const uid = ids.newUid(groupUid);
  // The uids order events of the same time.
  const uids = events.map(() => ids.newUid(uid)).sort();
  const author = await getCallerName(call);
  const rows = events.map((event, i) => buildNewEvent(uids[i] ?? "", { event, author, at: `events[${i}].` }, call));
  requireEventLimits(rows);
  const source = { sourceKey: "", sourceHash: "", severities: [] };
  const times = { createTimeMs: startMs, updateTimeMs: startMs, deleteTimeMs: null };
  return insertAdvisory(tx, { ...values, ...source, ...times, uid, groupUid, legacyAdvisoryId, author }, uid, rows);
}

/**
 * Updates an advisory, except its events, its author and its source. Unchanged values need not obey the rules,
 * because imported advisories have no architecture.
 *
 * @throws ApiError NOT_FOUND, INVALID_ARGUMENT.
 */
export async function updateAdvisory(advisory: Advisory, { tx, startMs }: UnaryCall): Promise<AdvisoryRow> {
  const before = await getRow(tx, advisories, advisory.uid);
  const view = advisoryToProto(before, []);
  const paths = updatedFields.filter((field) => JSON.stringify(view[field]) !== JSON.stringify(advisory[field]));
  if (paths.length === 0) return before;
  const { legacyAdvisoryId: _, ...patch } = buildPatch(advisories, advisory, create(FieldMaskSchema, { paths }), view);
  return replaceAdvisory(tx, { ...before, ...patch, updateTimeMs: computeUpdateTime(before, startMs) });
}

/**
 * Withdraws an advisory. An advisory that is withdrawn already does not change.
 *
 * @throws ApiError NOT_FOUND.
 */
export async function withdrawAdvisory(uid: string, { tx, startMs }: UnaryCall): Promise<void> {
  const before = await getRow(tx, advisories, uid);
  if (before.deleteTimeMs !== null) return;
  await replaceAdvisory(tx, { ...before, deleteTimeMs: startMs, updateTimeMs: computeUpdateTime(before, startMs) });
}

/**
 * Adds an event to an advisory.
 *
 * @throws ApiError NOT_FOUND, INVALID_ARGUMENT, PERMISSION_DENIED for a review without the right to review,
 * RESOURCE_EXHAUSTED when the advisory has 1,000 events, or they are too long together.
 */
export async function createEvent(
  { advisoryUid, event }: { advisoryUid: string; event: AdvisoryEvent },
  ids: Ids,
  call: UnaryCall,
): Promise<AdvisoryEventRow> {
  const { tx } = call;
  await getRow(tx, advisories, advisoryUid);
  const row = buildNewEvent(ids.newUid(advisoryUid), { event, author: await getCallerName(call), at: "" }, call);
  requireEventLimits([...(await tx.table(advisoryKind).listEvents([advisoryUid])), row]);
  await putEvent(tx, row);
  return row;
}

/**
 * Updates an event, except its author and its time. An approved or rejected event cannot change.
 *
 * @throws ApiError NOT_FOUND, INVALID_ARGUMENT, PERMISSION_DENIED for a review without the right to review,
 * FAILED_PRECONDITION of type EVENT_FINAL, RESOURCE_EXHAUSTED for events that are too long together.
 */
export async function updateEvent(update: AdvisoryEvent, call: UnaryCall): Promise<AdvisoryEventRow> {
  const { tx, startMs } = call;
  const before = await getEvent(update.uid, tx);
  requireValidEvent(update, startMs);
  const { uid, advisoryUid, author, createTimeMs, reviewState } = before;
  const { reviewState: requested } = update;
  const decided = requested !== reviewState && isReview(requested, advisoryUid, call);
  const kept = requested === ReviewState.PENDING ? "" : before.reviewer;
  const reviewer = decided ? await getCallerName(call) : kept;
  const event = { ...update, author, reviewer };
  const after = { ...buildEventRow(advisoryUid, uid, event, createTimeMs), updateTimeMs: startMs };
  if (isSame(before, after)) return before;
  if (reviewState === ReviewState.APPROVED || reviewState === ReviewState.REJECTED) {
    throw failedPrecondition("EVENT_FINAL", "an event that was approved or rejected is final; add another");
  }
  const others = (await tx.table(advisoryKind).listEvents([advisoryUid])).filter((event) => event.uid !== uid);
  // An event that becomes shorter always passes.
  if (JSON.stringify(after.data).length > JSON.stringify(before.data).length) requireEventLimits([...others, after]);
  await putEvent(tx, after);
  return after;
}

/**
 * Reads an event.
 *
 * @throws ApiError NOT_FOUND; the pipeline masks it for callers who may not know.
 */
export async function getEvent(uid: string, tx: Tx): Promise<AdvisoryEventRow> {
  const events = await tx.table(advisoryKind).listEvents([parentOf(uid) ?? ""]);
  const row = events.find((event) => event.uid === uid);
  if (row === undefined) throw notFound(eventKind, uid);
  return row;
}

function buildNewEvent(
  uid: string,
  { event, author, at }: { event: AdvisoryEvent; author: string; at: string },
  call: UnaryCall,
): AdvisoryEventRow {
  const { startMs } = call;
  requireValidEvent(event, startMs, at);
  const { createTime, reviewState } = event;
  const advisoryUid = parentOf(uid) ?? "";
  const reviewer = isReview(reviewState, advisoryUid, call) ? author : "";
  const timeMs = createTime === undefined ? startMs : timestampMs(createTime);
  return { ...buildEventRow(advisoryUid, uid, { ...event, author, reviewer }, timeMs), updateTimeMs: startMs };
}

// Any state but PENDING is a review, which needs a right of its own.
function isReview(state: ReviewState, advisoryUid: string, { caller }: UnaryCall): boolean {
  if (state === ReviewState.PENDING) return false;
  if (!caller.holds(approve, advisoryUid)) throw permissionDenied(`advisories.approve at ${parentOf(advisoryUid)}`);
  return true;
}

// Filters find people by their e-mail address; an identity without one is named by its uid.
async function getCallerName({ tx, caller }: UnaryCall): Promise<string> {
  return (await tx.table(identityKind).find(caller.uid))?.email || caller.uid;
}

function isSame(a: AdvisoryEventRow, b: AdvisoryEventRow): boolean {
  return equals(AdvisoryEventSchema, eventToProto(a), eventToProto(b));
}

// An import skips a row that was updated after its record.
function computeUpdateTime({ updateTimeMs }: AdvisoryRow, nowMs: number): number {
  return Math.max(updateTimeMs, nowMs);
}
