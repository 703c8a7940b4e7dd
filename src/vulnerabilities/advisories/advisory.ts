// What an advisory is, and how a stored one is shown.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Advisory,
  type AdvisoryEvent,
  AdvisoryEventSchema,
  AdvisorySchema,
  EventTypeFilter,
  type Severity,
  SeveritySchema,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { defineResource } from "../../resource/define.js";
import type { AdvisoryEventRow, AdvisoryRow } from "../../store/port.js";

/** The advisory resource. Version 2 of the API changes nothing of it. */
export const advisories = defineResource({
  noun: "advisory",
  type: "vulnerabilities.chainguard.dev/Advisory",
  message: AdvisorySchema,
  sort: ["uid", "created_at", "updated_at"],
  mutable: {},
});

const eventTypes: Readonly<Record<NonNullable<AdvisoryEvent["type"]["case"]>, EventTypeFilter>> = {
  detection: EventTypeFilter.DETECTION,
  truePositiveDetermination: EventTypeFilter.TRUE_POSITIVE_DETERMINATION,
  fixed: EventTypeFilter.FIXED,
  falsePositiveDetermination: EventTypeFilter.FALSE_POSITIVE_DETERMINATION,
  analysisNotPlanned: EventTypeFilter.ANALYSIS_NOT_PLANNED,
  fixNotPlanned: EventTypeFilter.FIX_NOT_PLANNED,
  pendingUpstreamFix: EventTypeFilter.PENDING_UPSTREAM_FIX,
  patched: EventTypeFilter.PATCHED,
};

/**
 * The row that holds an event; what the message says of its uid and times is ignored.
 *
 * @param uid the uid of the advisory, a slash and a segment of its own
 * @param timeMs when it was created, in epoch milliseconds
 */
export function eventRow(advisoryUid: string, uid: string, event: AdvisoryEvent, timeMs: number): AdvisoryEventRow {
  const { findings, issue, type, author, reviewer, reviewState } = event;
  const said = create(AdvisoryEventSchema, { findings, type, ...(issue !== undefined && { issue }) });
  return {
    uid,
    advisoryUid,
    type: type.case === undefined ? EventTypeFilter.UNSPECIFIED : eventTypes[type.case],
    author,
    reviewer,
    reviewState,
    data: toJson(AdvisoryEventSchema, said) as JsonObject,
    createTimeMs: timeMs,
    updateTimeMs: timeMs,
  };
}

/** A stored event as version 2 shows it. */
export function eventView(row: AdvisoryEventRow): AdvisoryEvent {
  const event = fromJson(AdvisoryEventSchema, row.data as JsonObject, { ignoreUnknownFields: true });
  event.uid = row.uid;
  event.createTime = timestampFromMs(row.createTimeMs);
  event.author = row.author;
  event.reviewer = row.reviewer;
  event.reviewState = row.reviewState;
  return event;
}

/** Severities as they are stored: the JSON of their messages. */
export function severitiesToJson(severities: readonly Severity[]): JsonObject[] {
  return severities.map((severity) => toJson(SeveritySchema, severity) as JsonObject);
}

/** A stored advisory as version 2 shows it, with its events, oldest first. */
export function advisoryView(row: AdvisoryRow, events: readonly AdvisoryEventRow[]): Advisory {
  return create(AdvisorySchema, {
    uid: row.uid,
    advisoryId: row.advisoryId,
    createTime: timestampFromMs(row.createTimeMs),
    updateTime: timestampFromMs(row.updateTimeMs),
    ...(row.deleteTimeMs !== null && { deleteTime: timestampFromMs(row.deleteTimeMs) }),
    author: row.author,
    artifactName: row.artifactName,
    artifactType: row.artifactType,
    artifactArchitecture: row.artifactArchitecture,
    componentName: row.componentName,
    componentLocation: row.componentLocation,
    componentType: row.componentType,
    aliases: row.aliases,
    events: events.map(eventView),
    ...(row.legacyAdvisoryId !== "" && { legacyAdvisoryId: row.legacyAdvisoryId }),
    severities: (row.severities as JsonObject[]).map((json) =>
      fromJson(SeveritySchema, json, { ignoreUnknownFields: true }),
    ),
  });
}
