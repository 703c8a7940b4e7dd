// The advisory resource: its definition, its events, how they are stored, and how version 2 shows them.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { Advisories } from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import { AdvisoriesService as StableAdvisoriesService } from "#gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js";
import {
  type Advisory,
  type AdvisoryEvent,
  AdvisoryEventSchema,
  AdvisorySchema,
  EventTypeFilter,
  type Severity,
  SeveritySchema,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import type { ResourceKind } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { MAX_COUNTED } from "../../pipeline/resource/delete.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import { type AdvisoryRow, advisoryKind } from "../../store/advisories/advisories.js";
import type { AdvisoryEventRow } from "../../store/tables/advisories.js";
import type { Tx } from "../../store/transaction.js";
import { isLineField, isLines, isRequiredLine } from "./advisory-rules.js";

/** The largest number of withdrawn advisories that are deleted with a group. */
const MAX_WITHDRAWN = 1_000;

/** The advisory resource. Only version 1 of the API changes advisories. */
export const advisories = defineResource({
  displayName: "advisory",
  type: "vulnerabilities.chainguard.dev/Advisory",
  plural: "advisories",
  message: AdvisorySchema,
  kind: advisoryKind,
  // A withdrawn advisory cannot be deleted by itself, so it does not keep the group.
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: {
      restrict: async (tx, uid) => (await readAdvisories(tx, uid)).kept,
      async cascade(tx, uid) {
        const { kept, uids } = await readAdvisories(tx, uid);
        if (kept === 0) for (const one of uids) await tx.table(advisoryKind).delete(one);
      },
    },
  },
  createdBy: [createsInScope(Advisories.method.create)],
  stable: StableAdvisoriesService,
  mutable: {
    artifactName: isRequiredLine,
    artifactType: isRequiredLine,
    artifactArchitecture: isRequiredLine,
    componentName: isLineField,
    componentLocation: isLineField,
    componentType: isLineField,
    aliases: isLines,
    legacyAdvisoryId: (value = "", field) => isLineField(value, field),
  },
});

// The advisories of a group, and how many of them keep it: those that are not withdrawn, or all where there are too many.
async function readAdvisories(tx: Tx, groupUid: string): Promise<{ kept: number; uids: readonly string[] }> {
  const uids = await tx.table(advisoryKind).findUidsWhere("groupUid", groupUid, MAX_WITHDRAWN + 1);
  if (uids.length > MAX_WITHDRAWN) return { kept: uids.length, uids };
  let kept = 0;
  for (const one of uids) {
    if ((await tx.table(advisoryKind).find(one))?.deleteTimeMs === null) kept++;
    if (kept > MAX_COUNTED) break;
  }
  return { kept, uids };
}

/** The events of advisories, as errors name them. */
export const eventKind: ResourceKind = {
  displayName: "advisory event",
  type: "vulnerabilities.chainguard.dev/AdvisoryEvent",
};

const eventTypes: Readonly<Record<NonNullable<AdvisoryEvent["type"]["case"]>, EventTypeFilter>> = {
  detection: EventTypeFilter.DETECTION,
  truePositiveDetermination: EventTypeFilter.TRUE_POSITIVE_DETERMINATION,
  fixed: EventTypeFilter.FIXED,
  falsePositiveDetermination: EventTypeFilter.FALSE_POSITIVE_DETERMINATION,
  analysisNotPlanned: EventTypeFilter.ANALYSIS_NOT_PLANNED,
  fixNotPlanned: EventTypeFilter.FIX_NOT_PLANNED,
  pendingUpstreamFix: EventTypeFilter.PENDING_UPSTREAM_FIX,
  patched: EventTypeFilter.PATCHED,
  componentLocationChanged: EventTypeFilter.COMPONENT_LOCATION_CHANGED,
};

/**
 * Builds the row of an event. The uid and the times of the message are ignored.
 *
 * @param uid the uid of the advisory, a slash and a segment of its own
 * @param timeMs when it was created, in epoch milliseconds
 */
export function buildEventRow(
  advisoryUid: string,
  uid: string,
  event: AdvisoryEvent,
  timeMs: number,
): AdvisoryEventRow {
  const { findings, issue, type, author, reviewer, reviewState } = event;
  const stored = create(AdvisoryEventSchema, { findings, type, ...(issue !== undefined && { issue }) });
  return {
    uid,
    advisoryUid,
    type: type.case === undefined ? EventTypeFilter.UNSPECIFIED : eventTypes[type.case],
    author,
    reviewer,
    reviewState,
    data: toJson(AdvisoryEventSchema, stored) as JsonObject,
    createTimeMs: timeMs,
    updateTimeMs: timeMs,
  };
}

/** Converts a stored event to version 2. */
export function eventToProto(row: AdvisoryEventRow): AdvisoryEvent {
  const event = fromJson(AdvisoryEventSchema, row.data as JsonObject, { ignoreUnknownFields: true });
  event.uid = row.uid;
  event.createTime = timestampOf(row.createTimeMs);
  event.author = row.author;
  event.reviewer = row.reviewer;
  event.reviewState = row.reviewState;
  return event;
}

/** Converts severities to what is stored: the JSON of their messages. */
export function severitiesToJson(severities: readonly Severity[]): JsonObject[] {
  return severities.map((severity) => toJson(SeveritySchema, severity) as JsonObject);
}

/** Converts a stored advisory to version 2, with its events, oldest first. */
export function advisoryToProto(row: AdvisoryRow, events: readonly AdvisoryEventRow[]): Advisory {
  return create(AdvisorySchema, {
    uid: row.uid,
    advisoryId: row.advisoryId,
    createTime: timestampOf(row.createTimeMs),
    updateTime: timestampOf(row.updateTimeMs),
    ...(row.deleteTimeMs !== null && { deleteTime: timestampOf(row.deleteTimeMs) }),
    author: row.author,
    artifactName: row.artifactName,
    artifactType: row.artifactType,
    artifactArchitecture: row.artifactArchitecture,
    componentName: row.componentName,
    componentLocation: row.componentLocation,
    componentType: row.componentType,
    aliases: row.aliases,
    events: events.map(eventToProto),
    ...(row.legacyAdvisoryId !== "" && { legacyAdvisoryId: row.legacyAdvisoryId }),
    severities: (row.severities as JsonObject[]).map((json) =>
      fromJson(SeveritySchema, json, { ignoreUnknownFields: true }),
    ),
  });
}
