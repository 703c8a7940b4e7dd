// Advisories and their events between versions 1 and 2.
import {
  create,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Advisory,
  type AdvisoryEvent,
  AdvisoryEventSchema,
  AdvisorySchema,
  type ReviewStatus,
} from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import {
  type Advisory as AdvisoryV2,
  AdvisorySchema as AdvisoryV2Schema,
  type AdvisoryEvent as EventV2,
  AdvisoryEventSchema as EventV2Schema,
  type ReviewState,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import type { FieldNames } from "../../pipeline/operations.js";
import type { AdvisoryEventRow, AdvisoryRow } from "../../store/port.js";
import { advisoryView, eventView, movedIn } from "./advisory.js";
import type { SaidEvent } from "./advisory-rules.js";

/** What version 1 calls the fields of version 2. */
export const namesInV1: FieldNames = {
  uid: "id",
  legacyAdvisoryId: "legacyAdvisoryID",
  createTime: "timestamp",
  reviewState: "status",
  subpackage: "subpackageName",
  component: "componentName",
  artifactNames: "artifactName",
  artifactTypes: "artifactType",
  artifactArchitectures: "artifactArchitecture",
  componentNames: "componentName",
  componentTypes: "componentType",
  componentLocations: "componentLocation",
  eventReviewStates: "eventStatuses",
  eventAuthors: "eventAuthor",
  eventReviewers: "eventReviewer",
  excludeEventAuthors: "excludeEventAuthor",
};

/** A stored advisory as version 1 shows it, with its events, oldest first. */
export function advisoryV1(row: AdvisoryRow, events: readonly AdvisoryEventRow[]): Advisory {
  const { uid, createTime, updateTime, deleteTime, legacyAdvisoryId, ...same } = advisoryView(row, []);
  const { artifactType, artifactName, artifactArchitecture, aliases, advisoryId, author } = same;
  const { componentName, componentLocation, componentType } = same;
  const view: MessageInitShape<typeof AdvisorySchema> = {
    ...{ id: uid, artifactType, artifactName, artifactArchitecture, aliases, advisoryId, author },
    ...(componentName !== "" && { componentName }),
    ...(componentLocation !== "" && { componentLocation }),
    ...(componentType !== "" && { componentType }),
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
    ...(deleteTime && { deletedAt: deleteTime }),
    ...(legacyAdvisoryId !== undefined && { legacyAdvisoryID: legacyAdvisoryId }),
    events: events.map(eventV1),
  };
  return create(AdvisorySchema, view);
}

/** What version 1 sends of an advisory; the rest is not the caller's to set. */
export function sentAdvisory(advisory: Advisory = create(AdvisorySchema)): AdvisoryV2 {
  const { id, artifactType, artifactName, artifactArchitecture, aliases, legacyAdvisoryID } = advisory;
  const { componentName = "", componentLocation = "", componentType = "" } = advisory;
  return create(AdvisoryV2Schema, {
    ...{ uid: id, artifactType, artifactName, artifactArchitecture, aliases },
    ...{ componentName, componentLocation, componentType },
    ...(legacyAdvisoryID !== undefined && { legacyAdvisoryId: legacyAdvisoryID }),
  });
}

/** A stored event as version 1 shows it. */
export function eventV1(row: AdvisoryEventRow): AdvisoryEvent {
  const { uid, createTime, findings, author, reviewer, reviewState, issue, type } = eventView(row);
  const moved = movedIn(row);
  const event = create(AdvisoryEventSchema, {
    ...{ id: uid, findings, author, reviewer, status: reviewState as number as ReviewStatus },
    ...(createTime && { timestamp: createTime, createdAt: createTime }),
    ...(issue !== undefined && { issue }),
    updatedAt: timestampFromMs(row.updateTimeMs),
  });
  if (moved) event.type = { case: "componentLocationChanged", value: moved };
  else if (type.case !== undefined) event.type = typeBetween(EventV2Schema, AdvisoryEventSchema, type);
  return event;
}

/** What version 1 sends of an event; the rest is not the caller's to set. */
export function sentEvent(event: AdvisoryEvent = create(AdvisoryEventSchema)): SaidEvent {
  const { id, timestamp, findings, status, issue, type } = event;
  const said = create(EventV2Schema, {
    ...{ uid: id, findings, reviewState: status as number as ReviewState },
    ...(timestamp && { createTime: timestamp }),
    ...(issue !== undefined && { issue }),
  });
  if (type.case === "componentLocationChanged") return { event: said, moved: type.value };
  if (type.case !== undefined) said.type = typeBetween(AdvisoryEventSchema, EventV2Schema, type);
  return { event: said };
}

type TypeOf<M extends { type: { case?: string | undefined } }> = Exclude<M["type"], { case?: undefined }>;

// What happened goes by the same names in both versions; its messages have some fields by other names,
// but all by the same numbers. So have the states of reviews and the reasons of false positives.
function typeBetween(
  from: typeof EventV2Schema,
  to: typeof AdvisoryEventSchema,
  type: TypeOf<EventV2>,
): TypeOf<AdvisoryEvent>;
function typeBetween(
  from: typeof AdvisoryEventSchema,
  to: typeof EventV2Schema,
  type: TypeOf<AdvisoryEvent>,
): TypeOf<EventV2>;
function typeBetween(from: DescMessage, to: DescMessage, type: { case: string; value: Message }): object {
  const bytes = toBinary(messageOf(from, type.case), type.value);
  return { case: type.case, value: fromBinary(messageOf(to, type.case), bytes) };
}

function messageOf(event: DescMessage, type: string): DescMessage {
  const field = event.field[type];
  if (field?.fieldKind !== "message") throw new TypeError(`${event} has no type ${type}`);
  return field.message;
}
