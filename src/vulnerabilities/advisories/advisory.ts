// What an advisory is, and how a stored one is shown.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AdvisoryEvent_ComponentLocationChanged as ComponentMoved,
  AdvisoryEvent_ComponentLocationChangedSchema as ComponentMovedSchema,
  EventTypeFilter as EventTypeFilterV1,
} from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
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
import { defineResource } from "../../pipeline/resource/define.js";
import type { AdvisoryEventRow, AdvisoryRow } from "../../store/port.js";
import { isLineField, isLines, isRequiredLine } from "./advisory-rules.js";

/** The advisory resource. Version 2 of the API changes nothing of it, version 1 does. */
export const advisories = defineResource({
  noun: "advisory",
  type: "vulnerabilities.chainguard.dev/Advisory",
  message: AdvisorySchema,
  sort: ["uid", "created_at", "updated_at"],
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

/** What errors call the events of advisories. */
export const eventKind: ResourceKind = {
  noun: "advisory event",
  type: "vulnerabilities.chainguard.dev/AdvisoryEvent",
};

/** What errors call the groups that advisories lie in. */
export const groupKind: ResourceKind = { noun: "group", type: "iam.chainguard.dev/Group" };

// Beside what version 2 knows of an event, under the name that version 1 has for it.
const MOVED = "componentLocationChanged";

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
 * @param moved that the component has moved: the type that version 2 lacks, in place of the message's
 */
export function eventRow(
  advisoryUid: string,
  uid: string,
  event: AdvisoryEvent,
  timeMs: number,
  moved?: ComponentMoved,
): AdvisoryEventRow {
  const { findings, issue, type, author, reviewer, reviewState } = event;
  const said = create(AdvisoryEventSchema, { findings, type, ...(issue !== undefined && { issue }) });
  const data = toJson(AdvisoryEventSchema, said) as JsonObject;
  if (moved) data[MOVED] = toJson(ComponentMovedSchema, moved);
  const known = type.case === undefined ? EventTypeFilter.UNSPECIFIED : eventTypes[type.case];
  return {
    uid,
    advisoryUid,
    type: moved ? EventTypeFilterV1.COMPONENT_LOCATION_CHANGED : known,
    author,
    reviewer,
    reviewState,
    data,
    createTimeMs: timeMs,
    updateTimeMs: timeMs,
  };
}

/**
 * A stored event as version 2 shows it. That a component has moved it cannot say: such an event has no
 * type there, and all else.
 */
export function eventView(row: AdvisoryEventRow): AdvisoryEvent {
  const event = fromJson(AdvisoryEventSchema, row.data as JsonObject, { ignoreUnknownFields: true });
  event.uid = row.uid;
  event.createTime = timestampFromMs(row.createTimeMs);
  event.author = row.author;
  event.reviewer = row.reviewer;
  event.reviewState = row.reviewState;
  return event;
}

/** What a stored event says of a component that has moved; undefined for events of other types. */
export function movedIn({ data }: AdvisoryEventRow): ComponentMoved | undefined {
  const moved = (data as JsonObject)[MOVED];
  return moved === undefined ? undefined : fromJson(ComponentMovedSchema, moved, { ignoreUnknownFields: true });
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
